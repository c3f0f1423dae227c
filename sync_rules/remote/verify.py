"""A verify in the account: each call looks at a segment of the tables, or adds up the ledgers; the end adds it all up.

Law: what a call found counts once it is saved as a whole, rows and figures together: a call that dies, or comes twice,
counts once. A part is seen from both its sides, and so by two calls: it is reported once. Nobody repairs a copy before
what it is made from has been: each step of the cascade, and each round of it, ends before the next begins.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import IO, Any, Final, Protocol
from uuid import uuid4

from sync_rules.asked import chosen
from sync_rules.balance import ledgers
from sync_rules.cascade import Step, cascade, swept_tables
from sync_rules.compare import Drift
from sync_rules.errors import StoreError, UserError
from sync_rules.findings import SAMPLE_SEGMENTS, Share, Tally
from sync_rules.remote.documents import Held, SharedState
from sync_rules.remote.figures import add, is_new, take_out, tally_body, tally_of
from sync_rules.remote.protocol import (
    TIME_RESERVED_MS,
    Answer,
    Body,
    left_of,
    require_deployed,
    require_time,
    require_units,
)
from sync_rules.reports.drift_report import ending, header, row
from sync_rules.rules import Rules
from sync_rules.store import World
from sync_rules.verify import Verifier

SEGMENT_ITEMS: Final = 100_000  # of all tables together: minutes of a call, were it only 500 a second
SEGMENTS_MAX: Final = 1_000
LEDGERS: Final = "ledgers"  # the unit that adds up
CURE: Final = "Run it again, with more --segments where the reason is OutOfTime"


class Reports(Protocol):
    """Where reports lie. Each call raises StoreError."""

    def write(self, name: str, file: IO[bytes]) -> None:
        """Returns once it is safe."""
        ...

    def lines(self, name: str) -> Iterator[bytes]:
        """A report's lines, without their ends."""
        ...


@dataclass(frozen=True)
class Stage:
    """Where a verify is: the step down the cascade, the round in it, and whether its ledgers are being added up."""

    step: int = 0
    round: int = 0
    adding_up: bool = False


class VerifyWork:
    """A Work. `sizes` gives the number of items of each table of some rules, and raises UserError where the tables are
    not as they need them. `on_end` is told what it all came to, once it is over.
    """

    def __init__(
        self,
        rules: Rules,
        world: World,
        state: SharedState,
        reports: Reports,
        sizes: Callable[[frozenset[str]], Mapping[str, int]],
        *,
        remaining_ms: Callable[[], int],
        on_end: Callable[[Tally, frozenset[str]], object] = lambda _tally, _names: None,
        sleep: Callable[[float], None] | None = None,
    ) -> None:
        self._rules = rules
        self._world = world
        self._state = state
        self._reports = reports
        self._sizes = sizes
        self._remaining_ms = remaining_ms
        self._on_end = on_end
        self._sleep = {} if sleep is None else {"sleep": sleep}

    # ------------------------------------------------------------ the machine's questions
    def begin(self, asked: Body, execution: str) -> Answer:
        require_deployed(asked["prints"], self._rules)
        held = Held(self._state)
        found = held.load(head_of(execution))
        if found is None:
            names = chosen(self._rules, asked["rules"])
            if not names:
                raise UserError("all rules are of kinds that act on changes: nothing could be verified")
            share = self._share(asked, sum(self._sizes(names).values()))
            steps = tuple(cascade(self._rules, names)) if asked["repair"] else (Step(names),)
            found = {
                "asked": dict(asked),
                "names": sorted(names),
                "share": asdict(share),
                "steps": [[sorted(step.names), step.max_rounds] for step in steps],
                "stage": asdict(Stage()),
                "at": datetime.now(UTC).isoformat(),
                "tally": tally_body(Tally()),
                "counted": [],  # the tables whose items are
                "mended": 0,  # in this round
                "reports": [],
                "report": "",
            }
            require_units(units_of(found))
            held.save(head_of(execution), found)
        return self._next(found, execution)

    def unit(self, unit: str, run: Body) -> bool:
        require_time(self._remaining_ms())
        execution, stage = run["execution"], Stage(**run["stage"])
        found = self._state.load(head_of(execution)) or {}
        if found.get("stage") != run["stage"] or found.get("report"):
            return True  # another call has seen this stage to its end
        name = unit_of(execution, unit)
        before = self._state.load(name) or {}
        again = before.get("stage") == run["stage"]
        if again and before["done"]:
            return True
        broken = again  # a call began and did not end: what it mended is counted nowhere
        self._state.save(name, {"stage": run["stage"], "done": False, "reason": "", "broken": broken})
        try:
            body = self._looked(unit, found, stage, f"{execution}/{stage.step}-{stage.round}-{unit}-{uuid4().hex[:8]}")
        except (StoreError, UserError) as error:
            failed = {"stage": run["stage"], "done": False, "reason": str(error), "broken": True}
            self._state.save(name, failed)
            raise
        self._state.save(name, {"stage": run["stage"], "done": True, "reason": "", "broken": broken, **body})
        return True

    def end(self, run: Body) -> Answer:
        execution = run["execution"]
        held = Held(self._state)
        found = held.load(head_of(execution))
        if found is None:
            raise UserError(f"nothing is known of {execution}: it began too long ago")
        if found["stage"] != run["stage"] or found["report"]:  # another call has ended it
            return self._next(found, execution)
        units = units_of(found)
        names = {unit: unit_of(execution, unit) for unit in units}
        done = self._state.load_many(names.values())
        of_units = {unit: done.get(name, {}) for unit, name in names.items()}
        of_units = {unit: one for unit, one in of_units.items() if one.get("stage") == run["stage"] and one.get("done")}
        if left := [
            (unit, done.get(names[unit], {}).get("reason") or "NotFinished") for unit in units if unit not in of_units
        ]:
            return left_of(left, CURE)
        found = self._added(found, list(of_units.values()), execution)
        if found["over"]:
            found["report"] = self._whole(execution, found)
        held.save(head_of(execution), found)
        if found["over"]:
            self._on_end(tally_of(found["tally"]), frozenset(found["names"]))
        for name in names.values():
            self._state.remove(name)
        return self._next(found, execution)

    def _next(self, found: Body, execution: str) -> Answer:
        if found["report"]:
            return Answer()
        units = units_of(found)
        run = {"execution": execution, "stage": found["stage"]}
        return Answer(more=True, units=units, workers=max(1, min(found["asked"]["workers"], len(units))), run=run)

    # ------------------------------------------------------------ one unit
    def _looked(self, unit: str, found: Body, stage: Stage, name: str) -> dict[str, Any]:
        """Look at a unit: its figures, and where its rows lie."""
        names = frozenset(found["steps"][stage.step][0])
        share = Share(found["share"]["segments"], tuple(found["share"]["numbers"]))
        only = share if unit == LEDGERS else Share(share.segments, (int(unit),))

        def progress(_tally: Tally, _doing: str) -> None:
            if self._remaining_ms() < TIME_RESERVED_MS:
                what = "the ledgers are" if unit == LEDGERS else f"segment {unit} of {share.segments} is"
                raise StoreError("OutOfTime", f"{what} too much for one call")

        verifier = Verifier(
            self._rules,
            self._world,
            names,
            repair=found["asked"]["repair"],
            share=only,
            grace_seconds=found["asked"]["grace_seconds"],
            on_progress=progress,
            **self._sleep,  # type: ignore[arg-type]
        )
        findings = verifier.add_up(names) if unit == LEDGERS else verifier.look_over(names, found["counted"])
        with tempfile.TemporaryFile() as file:
            rows = 0
            for rows, finding in enumerate(findings, start=1):  # noqa: B007 -- how many there were
                file.write(json.dumps(row(finding)).encode() + b"\n")
            if rows:
                file.seek(0)
                self._reports.write(name, file)
        return {"tally": tally_body(verifier.tally), "report": name if rows else ""}

    # ------------------------------------------------------------ the end of a stage
    def _added(self, found: Body, units: list[Mapping[str, Any]], execution: str) -> dict[str, Any]:
        """What is known after a stage, and where it goes on; `over` if nowhere."""
        stage = Stage(**found["stage"])
        names, max_rounds = found["steps"][stage.step]
        tally = tally_of(found["tally"])
        if stage.round and not stage.adding_up:
            for name in names:
                tally.start_over(name)
        here = Tally()
        for one in units:
            add(here, tally_of(one["tally"]))
        reports = [one["report"] for one in units if one["report"]]
        name = f"{execution}/{stage.step}-{stage.round}{'-ledgers' if stage.adding_up else ''}"
        if reports:
            self._merge(name, reports, here)
        mended = found["mended"] + here.repaired.total() + sum(one["broken"] for one in units)
        add(tally, here)
        counted = sorted({*found["counted"], *(table.name for table in swept_tables(self._rules, frozenset(names)))})
        sampled = Share(found["share"]["segments"], tuple(found["share"]["numbers"])).sampled
        adds_up = not sampled and any(True for _ in ledgers(self._rules, frozenset(names)))
        if not stage.adding_up and adds_up:
            there: Stage | None = replace(stage, adding_up=True)
        elif found["asked"]["repair"] and mended and stage.round + 1 < max_rounds:
            there, mended = Stage(stage.step, stage.round + 1), 0
        else:
            there = Stage(stage.step + 1) if stage.step + 1 < len(found["steps"]) else None
            mended = 0
        return {
            **found,
            "tally": tally_body(tally),
            "counted": counted,
            "mended": mended,
            "reports": [*found["reports"], *([name] if reports else ())],
            "stage": found["stage"] if there is None else asdict(there),
            "over": there is None,
        }

    def _merge(self, name: str, reports: Iterable[str], tally: Tally) -> None:
        """The rows of a stage as one report; what one of them tells again is taken out of the figures."""
        known: set[int] = set()
        with tempfile.TemporaryFile() as file:
            for line in self._rows(reports):
                body = json.loads(line)
                if is_new(body, known):
                    file.write(line + b"\n")
                else:
                    take_out(tally, body["rule"], Drift(body["drift"]), repaired=body["repaired"])
            file.seek(0)
            self._reports.write(name, file)

    def _rows(self, reports: Iterable[str]) -> Iterator[bytes]:
        for name in reports:
            yield from self._reports.lines(name)

    def _whole(self, execution: str, found: Body) -> str:
        """The report of everything, as `verify --json` prints it. Gives its name."""
        names, tally = frozenset(found["names"]), tally_of(found["tally"])
        share = Share(found["share"]["segments"], tuple(found["share"]["numbers"]))
        head = header(self._rules, names, datetime.fromisoformat(found["at"]), share) | {"seed": found["asked"]["seed"]}
        name = f"{execution}/report"
        with tempfile.TemporaryFile() as file:
            file.write(json.dumps(head).encode() + b"\n")
            for line in self._rows(found["reports"]):
                file.write(line + b"\n")
            file.write(json.dumps(ending(tally, names, datetime.now(UTC))).encode() + b"\n")
            file.seek(0)
            self._reports.write(name, file)
        return name

    def _share(self, asked: Body, items: int) -> Share:
        """Which segments: those of the sample, or as many as make each small enough for one call."""
        if asked["numbers"] is not None:
            return Share(SAMPLE_SEGMENTS, tuple(asked["numbers"]))
        segments = asked["segments"] or min(SEGMENTS_MAX, max(1, -(-items // SEGMENT_ITEMS)))
        return Share(segments, tuple(range(segments)))


def head_of(execution: str) -> str:
    """The document that says how far a verify is."""
    return f"verify/{execution}"


def unit_of(execution: str, unit: str) -> str:
    """The document of one unit of it."""
    return f"verify/{execution}/{unit}"


def units_of(found: Body) -> list[str]:
    """The units of the stage that a verify is in."""
    return [LEDGERS] if found["stage"]["adding_up"] else [str(number) for number in found["share"]["numbers"]]
