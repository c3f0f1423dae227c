"""`python -m benchmarks.deployed_copy`: the time from a change to its first right copy, deployed on an emulator.

A user with three orders is renamed again and again, at uneven times. The project is built and deployed by sam as in the
tests, so `make engines` must have been run. Each time begins when the emulator has accepted the change, and ends when a
consistent read shows the new name. The share of the function is what the emulator reports of each invocation.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import Any, Final

from tests.deploy.conftest import build
from tests.deploy.stacks import NAME, STAGE, Stack, deployed
from tests.support.builders import order_item, s, user_item

TABLE: Final = f"{STAGE}-shop"
COPIES: Final = 3
LOOK_SECONDS: Final = 0.01
PAUSES_SECONDS: Final = (0.2, 1.2)
PATIENCE_SECONDS: Final = 60.0
USER: Final = "first"
REPORT: Final = re.compile(r"REPORT .*?\tDuration: ([\d.]+) ms")
ORDER: Final = {"PK": f"USER#{USER}", "SK": "ORDER#0"}


class Trial:
    """A user with orders in a stack, and clients that keep their connections."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._table = stack.client("dynamodb")
        self._logs = stack.client("logs")
        stack.put("shop", *(order_item(USER, str(number)) for number in range(COPIES)))

    def copied(self, name: str) -> float:
        """Rename the user; the seconds until an order has the name."""
        self._table.put_item(TableName=TABLE, Item=user_item(USER, name=s(name)))
        return self._waited(name)

    def _waited(self, name: str) -> float:
        began = time.monotonic()
        at: Any = {attribute: s(value) for attribute, value in ORDER.items()}
        while time.monotonic() - began < PATIENCE_SECONDS:
            item = self._table.get_item(TableName=TABLE, Key=at, ConsistentRead=True).get("Item", {})
            if item.get("user_name") == s(name):
                return time.monotonic() - began
            time.sleep(LOOK_SECONDS)
        raise AssertionError("no copy was written")

    def lasted(self) -> list[float]:
        """The milliseconds of each invocation so far, as the emulator reports them."""
        group = f"/aws/lambda/{NAME}/stream"
        pages = self._logs.get_paginator("filter_log_events").paginate(logGroupName=group)
        said = (REPORT.match(event["message"]) for page in pages for event in page["events"])
        return [float(report[1]) for report in said if report]


def measure(changes: int) -> tuple[list[float], list[float]]:
    """The milliseconds until each first copy, and of each invocation: of a change, or of the copies that it caused."""
    with tempfile.TemporaryDirectory(prefix="sync-rules-first-copy-") as folder, build(Path(folder)) as project:
        place = Path(folder) / "stack"
        place.mkdir()
        with deployed(Path(project), place) as found:
            trial = Trial(Stack(**json.loads(found)))
            trial.copied("cold")
            began, copied = len(trial.lasted()), []
            for number in range(changes):
                time.sleep(random.uniform(*PAUSES_SECONDS))
                copied.append(1e3 * trial.copied(f"name {number}"))
            return copied, trial.lasted()[began:]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print both as a Markdown table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.deployed_copy", description=__doc__)
    parser.add_argument("--changes", metavar="N", type=int, default=40)
    copied, lasted = measure(parser.parse_args(arguments).changes)
    print("| deployed on an emulator, ms | median | p95 |\n|---|---:|---:|")
    for name, times in (("from a change to its first copy", copied), ("an invocation of the function", lasted)):
        print(f"| {name} | {median(times):.0f} | {quantiles(times, n=20)[-1]:.0f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
