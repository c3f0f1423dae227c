"""What is measured in interpreters of its own: how a process starts, and the most memory that one ever had."""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks.ours import RULES_FILE, consumer_of, handled, renamed
from benchmarks.running import child
from sync_rules.language.load import load_rules
from sync_rules.rules import compiled_file

STARTS: Final = {
    "client": "import boto3; boto3.client('dynamodb')",
    "import": "import handlers.stream",
    "rules": "import handlers.stream; from sync_rules.functions.runtime import rules; rules()",
    "ready": "from handlers.stream import consumer; consumer()",
}
QUEUE_URL: Final = "https://sqs.us-east-1.amazonaws.com/000000000000/later"  # nobody is asked
STATUS: Final = Path("/proc/self/status")


@contextmanager
def deployed() -> Iterator[Path]:
    """Where the rules file would be in a bundle: what is there is what the build makes of it."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / RULES_FILE.name
        compiled_file.beside(file).write_bytes(compiled_file.written(load_rules(RULES_FILE), {}))
        yield file


def run(code: str, rules_file: Path) -> None:
    """A statement in a fresh interpreter."""
    child("-c", code, SYNC_RULES_FILE=str(rules_file), SYNC_RULES_QUEUE_URL=QUEUE_URL)


def peak_bytes(url: str) -> float:
    """The most memory a process had that fanned one change out to all targets."""
    return float(child("-m", "benchmarks.fresh", url))


def own_peak_bytes() -> int:
    """Of this process. Not `ru_maxrss` where the kernel tells better: that begins with what the parent had."""
    if STATUS.exists():
        (line,) = (line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


if __name__ == "__main__":
    handled(consumer_of(sys.argv[1]), renamed("together"))
    print(own_peak_bytes())
