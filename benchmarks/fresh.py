"""Measures in fresh interpreters: the start of a process, and its peak memory."""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks.answering import SOURCE
from benchmarks.ours import RULES_FILE, consumer_of, copied, handled, renamed
from benchmarks.running import child
from sync_rules.language.load import load_rules
from sync_rules.rules import compiled_file

KEY: Final = {name: SOURCE[name] for name in ("PK", "SK")}
STARTS: Final = {
    "client": "import boto3; boto3.client('dynamodb')",
    "import": "import handlers.stream",
    "ready": "from handlers.stream import make_consumer; make_consumer()",
    # until the first answer, so with a connection: an item; a record of a copy that is right, whose source is read
    "asked": f"import boto3; boto3.client('dynamodb').get_item(TableName='together', Key={KEY})",
    "handled": "import json, sys; from handlers.stream import handler; handler(json.loads(sys.argv[1]), None)",
}
QUEUE_URL: Final = "https://sqs.us-east-1.amazonaws.com/000000000000/later"  # nobody is asked
STATUS: Final = Path("/proc/self/status")


@contextmanager
def deployed() -> Iterator[Path]:
    """Build a bundle's rules in a temporary folder. Yields the path that the rules file would have there."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / RULES_FILE.name
        compiled_file.name_compiled_file(file).write_bytes(compiled_file.dump(load_rules(RULES_FILE), {}))
        yield file


def run(code: str, rules_file: Path, url: str) -> None:
    """Run a statement in a fresh interpreter, for which the engine is AWS."""
    given = {"SYNC_RULES_FILE": str(rules_file), "SYNC_RULES_QUEUE_URL": QUEUE_URL, "AWS_ENDPOINT_URL_DYNAMODB": url}
    child("-c", code, json.dumps(copied("together", 1)), **given)


def peak_bytes(url: str) -> float:
    """Peak memory of a fresh process that fans one change out to all targets."""
    return float(child("-m", "benchmarks.fresh", url))


def own_peak_bytes() -> int:
    """Peak memory of this process, from /proc where there is one: `ru_maxrss` starts with the peak of the parent."""
    if STATUS.exists():
        (line,) = (line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


if __name__ == "__main__":
    handled(consumer_of(sys.argv[1]), renamed("together"))
    print(own_peak_bytes())
