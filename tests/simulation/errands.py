"""Work that people start: backfills, verifies, redrives. Each is a worker, and may die at any request.

Invariant: an errand is the code of production, in whole. A backfill that dies resumes from its checkpoints; the others
begin anew.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any
from unittest.mock import patch
from uuid import UUID

from sync_rules.audit import verifier as verify
from sync_rules.audit.compare import Difference, Drift
from sync_rules.audit.verifier import Verifier
from sync_rules.audit.verify_tally import DriftFinding
from sync_rules.jobs.backfill import backfill_run, page, throttle
from sync_rules.jobs.backfill.backfill_run import BackfillRun
from sync_rules.jobs.backfill.page import Selection, segments
from sync_rules.jobs.backfill.progress import load_unfinished
from sync_rules.jobs.redrive.redriver import Redriver
from sync_rules.model.errors import StoreError, UserError
from sync_rules.model.items import Change, ItemKey
from sync_rules.model.limits import Bounds
from sync_rules.pipeline.requests import NULL_PORTS
from sync_rules.pipeline.requests import World as Outside
from sync_rules.rules.ruleset import Rules
from sync_rules.rules.selection import Share
from tests.simulation.breaking import Work
from tests.simulation.stops import Asking, Documents, Save, Shelf, Together, Wait, as_work, ask

GRACE_SECONDS = 1.0  # on a clock that stands still: whoever must wait waits once, for as long as the scheduler likes
Seen = Counter[tuple[str, str]]


@dataclass
class Errand:
    """Work that a person started. `since` is the clock of its last wait, `documents` outlive it."""

    rules: Rules
    names: frozenset[str]
    seen: Seen
    documents: dict[str, str] = field(default_factory=dict)
    since: int = 0
    at_work: bool = False
    finished: bool = False

    kind = ""
    settles = False  # whether it waits for as long as an index may lag

    def work(self) -> Work:
        """The work, from where it stands."""
        self.at_work, self.finished = True, False
        return as_work(self.run)

    def run(self) -> bool:
        """Run the command. Returns true if it reached its end."""
        raise NotImplementedError

    def died(self) -> None:
        self.at_work = False
        self.seen[self.kind, "died"] += 1

    def ended(self, done: bool) -> None:
        self.at_work, self.finished = False, done
        self.seen[self.kind, "done" if done else "not done"] += 1

    def save(self, request: Save) -> None:
        """A document is safe, or gone, from now on."""
        self.seen[self.kind, "saved"] += 1
        if request.document is None:
            self.documents.pop(request.name, None)
        else:
            self.documents[request.name] = request.document

    def __str__(self) -> str:
        return f"a {self.kind} of {', '.join(sorted(self.names))}"


@dataclass
class Backfill(Errand):
    """One backfill, however often it dies. `documents` are its checkpoints; `stops` returns true to stop it."""

    bounds: Bounds = field(default_factory=Bounds)
    segments: int = 1
    workers: int = 1
    stops: Callable[[], bool] = lambda: False
    clock: Callable[[], float] = lambda: 0.0
    stopped: bool = False

    kind = "backfill"

    def run(self) -> bool:
        state = Documents(self.documents)
        self.seen["backfill", "began" if load_unfinished(state) is None else "went on"] += 1
        self.stopped = False
        run = BackfillRun(
            Selection(self.rules, self.names),
            Asking(),
            Asking(),
            state,
            {"rules": sorted(self.names), "segments": self.segments},
            supplies=segments(self.rules, self.segments),
            completes=self.names,
            workers=self.workers,
            bounds=self.bounds,
            stopping=self._stopping,
            sleep=lambda _seconds: ask(Wait()),
            clock=self.clock,
        )
        try:
            return run.run()
        except StoreError:  # a checkpoint could not be saved: the command ends
            return False
        finally:
            self.seen["backfill", "wrote"] += run.totals.wrote > 0
            self.seen["backfill", "left a segment"] += bool(run.left)
            self.seen["backfill", "stopped"] += self.stopped

    def _stopping(self) -> bool:
        self.stopped = self.stopped or self.stops()
        return self.stopped


@dataclass
class Verify(Errand):
    """One verify of everything or, with `key`, of one item. `accused` is asked about each finding."""

    repair: bool = True
    key: ItemKey | None = None
    workers: int = 1
    accused: Callable[[DriftFinding], None] = lambda _finding: None
    findings: list[DriftFinding] = field(default_factory=list)

    kind = "verify"

    def run(self) -> bool:
        self.seen["verify", "one" if self.key else "began"] += 1
        verifier = Verifier(
            self.rules,
            Outside(Asking(), NULL_PORTS, Asking()),
            self.names,
            repair=self.repair,
            share=Share(self.workers, tuple(range(self.workers))),
            workers=self.workers,
            grace_seconds=GRACE_SECONDS,
            sleep=lambda _seconds: ask(Wait()),
            clock=lambda: 0.0,
        )
        try:
            for finding in verifier.sweep() if self.key is None else verifier.one(self.key):
                self.findings.append(finding)
                self.seen["repaired" if finding.repaired else "found", finding.difference.drift.value] += 1
                self.accused(finding)
        except (StoreError, UserError):  # the command ends
            return False
        self.seen["verify", "lag"] += verifier.tally.lag.total() > 0
        return True

    def drift(self) -> list[Difference]:
        """The differences found that are wrong by the rules: all but orphans that the rules leave to people."""
        found = (one.difference for one in self.findings)
        return [one for one in found if one.repairable or one.drift is not Drift.ORPHAN]


@dataclass
class Redrive(Errand):
    """One redrive of all that lies on the shelf, its `documents`. With `queued`, what is for later goes to the queue."""

    queued: bool = False
    wrote: bool = False
    time: float = 1_700_000_000.0

    kind = "redrive"
    settles = True

    def run(self) -> bool:
        self.seen["redrive", "began"] += 1
        queue = Asking() if self.queued else None
        outside = Outside(Asking(), Asking(), Asking())
        redriver = Redriver(self.rules, outside, queue=queue, clock=lambda: self.time, sleep=self._sleep)
        try:
            redriver.take(Shelf(self.documents))
            redriver.rest()
        except StoreError:  # the command ends
            return False
        finally:
            self.wrote = redriver.tally.written > 0
            for name in ("done", "again", "unreadable", "written", "parked"):
                self.seen["redrive", name] += getattr(redriver.tally, name)
        return True

    def _sleep(self, seconds: float) -> None:
        ask(Wait())
        self.time += seconds


@contextmanager
def one_at_a_time(pick: Callable[[int], int]) -> Iterator[None]:
    """Errands without threads, which soon set aside what keeps failing."""
    runs = count()  # their names: the same each time that a history is played
    with ExitStack() as stack:
        stack.enter_context(patch.object(page, "TRIES_MAX", 2))
        stack.enter_context(patch.object(backfill_run, "uuid4", lambda: UUID(int=next(runs))))
        for module in (throttle, verify):
            stack.enter_context(patch.object(module, "ThreadPoolExecutor", partial(Together, pick)))
        yield


def titled(rules: Rules, titles: Collection[str]) -> frozenset[str]:
    """The rules of these names in the rules file, each with its parts."""
    return frozenset(name for name, rule in rules.rules.items() if rule.title in titles)


# ---------------------------------------------------------------- what was given up, as it is kept
def batch_text(changes: Sequence[Change], rules: Rules) -> str:
    """A batch as Lambda keeps it in S3: the whole event as text."""
    arn = f"arn:aws:dynamodb:eu-west-1:123456789012:table/{rules.tables[changes[0].key.table].physical_name}/stream/now"
    span = {"streamArn": arn, "shardId": "one", "startSequenceNumber": changes[0].position}
    records = [_record(change, arn) for change in changes]
    info = {**span, "endSequenceNumber": changes[-1].position, "batchSize": len(changes)}
    return json.dumps({"DDBStreamBatchInfo": info, "payload": json.dumps({"Records": records})})


def _record(change: Change, arn: str) -> dict[str, Any]:
    images = {name: image for name, image in (("OldImage", change.old), ("NewImage", change.new)) if image is not None}
    stream = {"SequenceNumber": change.position, "Keys": change.key.attributes(), **images}
    if change.in_order:
        return {"eventSourceARN": arn, "dynamodb": stream}
    wrapped = json.dumps({"tableName": arn.split("/")[1], "dynamodb": stream})
    return {"kinesis": {"sequenceNumber": change.position, "data": base64.b64encode(wrapped.encode()).decode()}}
