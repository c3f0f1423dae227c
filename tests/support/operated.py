"""The deployed handlers on a store in memory, what they print, and what CloudWatch would make of it."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from handlers import fanout, stream
from sync_rules.adapters import aws_errors
from sync_rules.adapters.host import THIS_PROCESS
from sync_rules.audit.verify_tally import Tally
from sync_rules.functions import logs, metrics, runtime
from sync_rules.functions.logs import CountedQueue, LoggedFailures
from sync_rules.model.items import Alteration, Outcome
from sync_rules.pipeline.consumer import Consumer
from sync_rules.pipeline.messages import format_message
from sync_rules.pipeline.telemetry import SENT_KINDS, Telemetry
from sync_rules.rules.ruleset import Rules
from tests.support.worlds import Scene, Stdout, context, event_of

STACK = {"Ref": "AWS::StackName"}
STACK_NAME = "sync-rules"  # the handlers' service dimension without a stack's name


class Operated:
    """Stream and fan-out handler of one rules file; `lines` gives what they printed since the last look."""

    def __init__(self, rules: Rules, monkeypatch, capsys, **given: Any) -> None:
        self.scene = Scene(rules, **given)
        self.capsys = capsys
        world = self.scene.world
        queue, failures = CountedQueue(world.queue), LoggedFailures(world.failures)
        self.consumer = Consumer(
            rules,
            replace(world, queue=queue, failures=failures),
            THIS_PROCESS,
            runtime.telemetry,
            self.scene.limits,
        )
        for handler in (stream, fanout):
            monkeypatch.setattr(handler, "make_consumer", lambda: self.consumer)
        quiet(monkeypatch)

    def stream(self, *, age_seconds: float = 0, remaining_ms: int = 60_000) -> list[str]:
        """Hand over what was written, as if so long ago. Returns what is to come again."""
        made = int((time.time() - age_seconds) * 1000)
        changes, self.scene.records = [replace(one, created_ms=made) for one in self.scene.records], []
        answer = stream.handler(event_of(self.scene.rules, *changes), context(remaining_ms))
        return [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]

    def fanout(self) -> list[dict[str, str]]:
        """Every message in the queue once; those that fail are back in it. Returns what is to come again."""
        taken, self.scene.queue.messages = self.scene.queue.messages, []
        records = [{"messageId": str(at), "body": format_message(message)} for at, (message, _) in enumerate(taken)]
        failed = fanout.handler({"Records": records}, context())["batchItemFailures"]
        self.scene.queue.messages += [taken[int(failure["itemIdentifier"])] for failure in failed]
        return failed

    def lines(self) -> list[dict[str, Any]]:
        return printed(self.capsys)


def quiet(monkeypatch) -> None:
    """No notes from before, and the log where a test can read it."""
    logs.notes.take()
    runtime.telemetry.clear()
    monkeypatch.setattr(logs.logger.registered_handler, "stream", Stdout())


def printed(capsys) -> list[dict[str, Any]]:
    """The lines printed since the last call, each parsed as JSON."""
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def told(lines: Iterable[dict[str, Any]], message: str) -> list[dict[str, Any]]:
    """The log lines of this message."""
    return [line for line in lines if line.get("message") == message]


# ---------------------------------------------------------------- CloudWatch's view of the metrics
@dataclass(frozen=True)
class Datum:
    """One value of one metric."""

    namespace: str
    metric: str
    dimensions: frozenset[tuple[str, str]]
    value: float
    unit: str


def data_of(lines: Iterable[dict[str, Any]]) -> Iterator[Datum]:
    """The metrics of lines in embedded metric format."""
    for line in lines:
        for directive in line.get("_aws", {}).get("CloudWatchMetrics", ()):
            for names in directive["Dimensions"]:
                dimensions = frozenset((name, line[name]) for name in names)
                for metric in directive["Metrics"]:
                    values = line[metric["Name"]]
                    for value in values if isinstance(values, list) else [values]:
                        yield Datum(directive["Namespace"], metric["Name"], dimensions, value, metric["Unit"])


def figures(lines: Iterable[dict[str, Any]], **dimensions: str) -> dict[str, float]:
    """The sums of the metrics with these dimensions and that of the service."""
    wanted = frozenset({"service": "sync-rules", **dimensions}.items())
    found: Counter[str] = Counter()
    for datum in data_of(lines):
        if datum.dimensions == wanted:
            found[datum.metric] += datum.value
    return dict(found)


def everything(rules: Rules, capsys) -> list[dict[str, Any]]:
    """Lines with every metric that the handlers can write, of every rule and kind."""
    telemetry, tally = Telemetry(), Tally()
    for name in rules.rules:
        telemetry.outcomes.update({(name, outcome): 1 for outcome in Outcome})
        telemetry.alterations.update({(name, each): 1 for each in Alteration})
        telemetry.lags[name] = {0: 1}
        logs.notes.count_failure(name)
        tally.right[name] = 1
    telemetry.unreadable_records = 1
    telemetry.reasons["TableNotFound"] = 1
    for kind in (*aws_errors.THROTTLES, aws_errors.OTHER_THROTTLE):
        logs.notes.count_throttle(kind)
    logs.notes._counts.sent.update(dict.fromkeys(SENT_KINDS, 1))
    metrics.emit(telemetry)
    metrics.emit_drift(tally, list(rules.rules))
    return printed(capsys)
