"""A verify in the account: each call looks at a segment of the tables, or adds up the ledgers; the end adds it all up.

Law: what a call found counts once it is saved as a whole, rows and figures together: a call that dies, or comes twice,
counts once, and what one mended that died is in no figure: that much is told. Who works on a unit holds its document,
and who was taken for dead saves nothing over its successor. A part is seen from both its sides, and so by two calls: it
is reported once. Nobody repairs a copy before what it is made from has been: each step of the cascade, and each round
of it, ends before the next begins.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final
from uuid import uuid4

from sync_rules.adapters.state import LeasedState, SharedState
from sync_rules.audit.drift_report import ending, header
from sync_rules.audit.findings import SAMPLE_SEGMENTS, Share, Tally, select_rules
from sync_rules.audit.ledger_balance import ledgers
from sync_rules.jobs.account.protocol import Answer, Body, left_of, require_deployed, require_time, require_units
from sync_rules.jobs.account.verify_report import Reports, add, merge, tally_body, tally_of, write_whole
from sync_rules.jobs.account.verify_unit import (
    OUT_OF_TIME,
    Stage,
    UnitVerifier,
    head_of,
    noted_share,
    require_grace,
    unit_of,
    units_of,
)
from sync_rules.model.errors import StoreError, UserError
from sync_rules.pipeline.requests import World
from sync_rules.rules.order import Step, cascade, swept_tables
from sync_rules.rules.ruleset import Rules

SEGMENT_ITEMS: Final = 100_000  # of all tables together: minutes of a call, were it only 500 a second
SEGMENTS_MAX: Final = 1_000
CURE: Final = "Run it again, with more --segments where the reason is OutOfTime"
AFTER: Final = "comes after what was not looked at"


@dataclass(frozen=True)
class Ended:
    """What the units of a stage left: the documents of those that are done, how many `broken` ones had mended what is
    counted nowhere, and why ledgers were not added up, if they were not.
    """

    done: Sequence[Mapping[str, Any]]
    broken: int = 0
    reason: str = ""


class VerifyWork:
    """A Work. `sizes` gives the number of items of each table of some rules, and raises UserError where the tables are
    not as they need them. `on_end` is told what it all came to, once it is over, and whether everything was looked at.
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
        on_end: Callable[[Tally, frozenset[str], bool], object] = lambda _tally, _names, _whole: None,
        sleep: Callable[[float], None] | None = None,
    ) -> None:
        self._rules = rules
        self._state = state
        self._reports = reports
        self._sizes = sizes
        self._remaining_ms = remaining_ms
        self._on_end = on_end
        self._verifier = UnitVerifier(rules, world, reports, remaining_ms, sleep or time.sleep)

    # ------------------------------------------------------------ the machine's questions
    def begin(self, asked: Body, execution: str) -> Answer:
        require_deployed(asked, self._rules)
        held = LeasedState(self._state)
        found = held.load(head_of(execution))
        if found is None:
            require_grace(asked["grace_seconds"], self._remaining_ms())
            names = select_rules(self._rules, asked["rules"])
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
                "broken": 0,  # units in which a call died while it repaired
                "unlooked": {},  # rules of which not all was looked at, and why
                "cure": "",
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
        name = unit_of(execution, stage, unit)
        held = LeasedState(self._state)
        if not _is_done(self._state.load(name)):
            held.claim(name, uuid4().hex)
        if _is_done(held.load(name)):
            return True
        try:
            body = self._verifier.verify(unit, found, f"{name.removeprefix('verify/')}-{uuid4().hex[:8]}")
        except (StoreError, UserError) as error:
            with suppress(StoreError):  # who took it over says how it ends
                held.save(name, {"done": False, "reason": str(error)})  # in hand: what was mended is counted nowhere
            raise
        held.save(name, {"done": True, "reason": "", **body})
        return True

    def end(self, run: Body) -> Answer:
        execution, stage = run["execution"], Stage(**run["stage"])
        held = LeasedState(self._state)
        found = held.load(head_of(execution))
        if found is None:
            raise UserError(f"nothing is known of {execution}: it began too long ago")
        if found["stage"] != run["stage"] or found["report"]:  # another call has ended it
            return self._next(found, execution)
        names = {unit: unit_of(execution, stage, unit) for unit in units_of(found)}
        known = self._state.load_many(names.values())
        units = {unit: known.get(name, {}) for unit, name in names.items()}
        left = [(unit, one.get("reason") or "NotFinished") for unit, one in units.items() if not _is_done(one)]
        if left:
            now = self._state.load(head_of(execution)) or found
            if now != found:  # another call ends it, and has removed them
                return self._next(now, execution)
            if not stage.adding_up:
                return left_of(left, CURE)
        done = [one for one in units.values() if _is_done(one)]
        broken = [one for one in known.values() if one.get("broken") or not _is_done(one)]
        reason = next((reason for _, reason in left), "") or "".join(one["left"] for one in done)
        ended = Ended(done, len(broken) if found["asked"]["repair"] else 0, reason)
        found = self._added(found, stage, ended, execution)
        if found["over"]:
            found["report"] = self._whole(execution, found)
        held.save(head_of(execution), found)
        if found["over"]:
            whole = not (noted_share(found).sampled or found["broken"] or found["unlooked"])
            self._on_end(tally_of(found["tally"]), frozenset(found["names"]), whole)
        for name in names.values():
            self._state.remove(name)
        return self._next(found, execution)

    def _next(self, found: Body, execution: str) -> Answer:
        if found["report"]:
            return left_of(sorted(found["unlooked"].items()), found["cure"]) if found["unlooked"] else Answer()
        units = units_of(found)
        asked: int = found["asked"]["workers"]
        run = {"execution": execution, "stage": found["stage"], "workers": asked}
        return Answer(more=True, units=units, workers=max(1, min(asked, len(units))), run=run)

    # ------------------------------------------------------------ the end of a stage
    def _added(self, found: Body, stage: Stage, ended: Ended, execution: str) -> dict[str, Any]:
        """What is known after a stage, and where it goes on; `over` if nowhere."""
        names, max_rounds = found["steps"][stage.step]
        tally = tally_of(found["tally"])
        if stage.round and not stage.adding_up:
            for name in names:
                tally.start_over(name)
        here = Tally()
        for one in ended.done:
            add(here, tally_of(one["tally"]))
        reports = [one["report"] for one in ended.done if one["report"]]
        name = f"{execution}/{stage.step}-{stage.round}{'-ledgers' if stage.adding_up else ''}"
        if reports:
            merge(self._reports, reports, name, here)
        mended = found["mended"] + here.repaired.total() + ended.broken
        add(tally, here)
        counted = sorted({*found["counted"], *(table.name for table in swept_tables(self._rules, frozenset(names)))})
        adds_up = not noted_share(found).sampled and any(True for _ in ledgers(self._rules, frozenset(names)))
        if ended.reason:  # nothing that is made from those totals is mended before they are
            there: Stage | None = None
        elif not stage.adding_up and adds_up:
            there = replace(stage, adding_up=True)
        elif found["asked"]["repair"] and mended and stage.round + 1 < max_rounds:
            there, mended = Stage(stage.step, stage.round + 1), 0
        else:
            there = Stage(stage.step + 1) if stage.step + 1 < len(found["steps"]) else None
            mended = 0
        return {
            **found,
            **(self._unlooked(found, stage, ended.reason) if ended.reason else {}),
            "tally": tally_body(tally),
            "counted": counted,
            "mended": mended,
            "broken": found["broken"] + ended.broken,
            "reports": [*found["reports"], *([name] if reports else ())],
            "stage": found["stage"] if there is None else asdict(there),
            "over": there is None,
        }

    def _unlooked(self, found: Body, stage: Stage, reason: str) -> dict[str, Any]:
        """The rules of which not all was looked at, once ledgers could not be added up, and what to do about them."""
        names = frozenset(found["steps"][stage.step][0])
        after = [name for names, _ in found["steps"][stage.step + 1 :] for name in names]
        totals = [rule.name for _, tallies in ledgers(self._rules, names) for rule in tallies]
        unlooked = dict.fromkeys(after, AFTER) | dict.fromkeys(totals, reason)
        cure = "Run it again"
        if reason.startswith(OUT_OF_TIME):
            repair = " --repair" if found["asked"]["repair"] else ""
            titles = sorted({self._rules.rules[name].title for name in unlooked})
            cure = f"Verify from a machine: sync-rules verify{repair}{''.join(f' --rule {title}' for title in titles)}"
        return {"unlooked": unlooked, "cure": cure, "names": sorted({*found["names"]} - {*after})}

    def _whole(self, execution: str, found: Body) -> str:
        """The report of everything. Gives its name."""
        names, name = frozenset(found["names"]), f"{execution}/report"
        head = header(self._rules, names, datetime.fromisoformat(found["at"]), noted_share(found))
        end = ending(tally_of(found["tally"]), names, datetime.now(UTC))
        not_in_it = {"broken": found["broken"], "not_looked_at": found["unlooked"]}
        write_whole(self._reports, found["reports"], name, head | {"seed": found["asked"]["seed"]}, end | not_in_it)
        return name

    def _share(self, asked: Body, items: int) -> Share:
        """Which segments: those of the sample, or as many as make each small enough for one call."""
        if asked["numbers"] is not None:
            return Share(SAMPLE_SEGMENTS, tuple(asked["numbers"]))
        segments = asked["segments"] or min(SEGMENTS_MAX, max(1, -(-items // SEGMENT_ITEMS)))
        return Share(segments, tuple(range(segments)))


def _is_done(unit: Body | None) -> bool:
    return bool(unit and unit.get("done"))
