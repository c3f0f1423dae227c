"""`sync-rules demo`: the whole story on the embedded engine, with no account, no docker and nothing left behind.

Exit code 0 when every copy is right at the end, 1 when one is not.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from importlib.resources import files
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.live import Live
from rich.table import Table as Grid

from infra.tables import create_tables
from sync_rules import aws
from sync_rules.attempts import MappingSettings
from sync_rules.batch import Consumer
from sync_rules.commands.run import stream_arns
from sync_rules.commands.verify import as_line, grid
from sync_rules.demo.story import Application, tell
from sync_rules.dynamodb import DynamoStore
from sync_rules.engine import ministack
from sync_rules.failure_log import FailureLog
from sync_rules.local_run import Files, LocalRun, wall_clock_ms
from sync_rules.model import Outcome
from sync_rules.pump import WAIT_SECONDS
from sync_rules.rulefile import parse_rules
from sync_rules.rules import Rules
from sync_rules.store import World
from sync_rules.streams import DynamoDBStreams
from sync_rules.verify import Verifier

BATCH_SIZE: Final = 500
POLL_IDLE_MS: Final = 20
OLD_RECORDS_MAX: Final = 100  # per stream
GRACE_SECONDS: Final = 2.0
RULES: Final = files("sync_rules.demo").joinpath("rules.yaml")


def demo() -> int:
    """Show the whole story on an embedded engine: no account, no docker."""
    console = Console()
    rules = parse_rules(RULES.read_text(), name="sync_rules/demo/rules.yaml", environ={})
    console.print(
        f"{len(rules.rules)} rules over {len(rules.tables)} tables, in an embedded DynamoDB on this machine:\n"
    )
    for rule in rules.rules.values():
        sources = ", ".join(f"{rule.source.name}.{'.'.join(path)}" for path, _ in rule.mapping)
        targets = ", ".join(f"{rule.target.name}.{'.'.join(path)}" for _, path in rule.mapping)
        console.print(f"  {rule.name}: {sources} → {targets}", highlight=False)
    console.print()
    with tempfile.TemporaryDirectory(prefix="sync-rules-demo-") as directory, ministack() as endpoint:
        local = LocalPipeline(rules, endpoint, Path(directory))
        _show_story(console, local)
        console.print("verify: every copy against its source\n")
        return _verify(console, local)


class LocalPipeline:
    """The pipeline of `sync-rules run`, in this process, on the demo's engine."""

    def __init__(self, rules: Rules, endpoint: str, directory: Path) -> None:
        self.rules = rules
        self.client = aws.dynamodb(endpoint)
        create_tables(self.client, rules)
        self._arns = stream_arns(self.client, rules)
        self._reader = DynamoDBStreams(aws.dynamodbstreams(endpoint))
        self.store = DynamoStore(self.client, rules.tables)
        self._local = LocalRun(
            stream_arns=self._arns,
            rules_fingerprint=rules.fingerprint,
            reader=self._reader,
            store=self.store,
            make_consumer=lambda world: Consumer(rules, world),
            files=Files(directory / "checkpoint.json", directory / "failures.jsonl"),
            settings=MappingSettings(batch_size=BATCH_SIZE, poll_idle_ms=POLL_IDLE_MS),
        )
        self.failures = FailureLog(directory / "verify.jsonl", wall_clock_ms)
        self.world = World(self.store, self._local.pump.queue, self.failures)
        self._again = Consumer(rules, self.world)

    def drain(self, max_ms: int) -> bool:
        """Work until the streams are read to their end."""
        return self._local.pump.drain(wall_clock_ms() + max_ms)

    def settle(self, max_ms: int) -> bool:
        """Work until no second look waits any more."""
        deadline_ms = wall_clock_ms() + max_ms
        while self._local.pump.drain(deadline_ms) and self._local.pump.queue.waiting:
            time.sleep(WAIT_SECONDS)
        return self._local.pump.idle

    def redeliver(self) -> None:
        """Deliver the oldest records of every stream, twice."""
        for arn in self._arns:
            for shard in self._reader.shards(arn):
                iterator = self._reader.iterator(arn, shard.shard_id, None)
                event = {"Records": list(self._reader.records(arn, iterator, OLD_RECORDS_MAX).records)}
                for _ in range(2):
                    self._again.handle_event(event, lambda: 60_000)

    def figures(self) -> Counter[tuple[str, Outcome]]:
        """How often each rule came to each outcome."""
        return self._local.consumer.telemetry.outcomes + self._again.telemetry.outcomes


def _show_story(console: Console, local: LocalPipeline) -> None:
    table = Grid(box=None, header_style="bold", pad_edge=False)
    table.add_column("what the application does")
    table.add_column("reached")
    for name in ("writes", "already right", "lag ms"):
        table.add_column(name, justify="right")
    with Live(table, console=console, auto_refresh=False) as live:
        for told in tell(Application(local.client, local.rules), local):
            reached = "\n".join(told.reached) or "nothing"
            table.add_row(told.what, reached, str(told.writes), str(told.right), str(told.lag_ms))
            live.refresh()
    console.print()
    if not console.is_terminal:
        console.print()


def _verify(console: Console, local: LocalPipeline) -> int:
    only = frozenset(local.rules.rules)
    verifier = Verifier(local.rules, local.world, only, grace_seconds=GRACE_SECONDS)
    for finding in verifier.sweep():
        console.print(as_line(finding))
    console.print(grid(verifier.tally, only))
    drift = verifier.tally.left
    console.print(f"\n{verifier.tally.items} items checked, {drift} drift" + ("" if drift else ": every copy is right"))
    return 1 if drift else 0
