"""A verify in the account: each call checks a segment of the tables or adds up the ledgers. The end sums all results.

Invariant: a unit counts once. Its rows and figures are saved together, by the worker that holds its document. The
repairs of a call that died are in no figure, and the report says so. Two calls may read one part, from its two sides;
it is reported once. Each step of the cascade, and each round, ends before the next begins: a copy is repaired only
after its sources. A call checks the clock at every page and before every wait. It fails with OutOfTime instead of being
killed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain
from typing import Any, Final
from uuid import uuid4

from sync_rules.adapters.s3 import BucketReports
from sync_rules.adapters.state import LeasedState, SharedState
from sync_rules.audit.drift_report import make_footer, make_header, make_row
from sync_rules.audit.ledger_balance import list_ledgers
from sync_rules.audit.verifier import Verifier
from sync_rules.audit.verify_tally import SAMPLE_SEGMENTS, Tally
from sync_rules.jobs.account.protocol import (
    TIME_RESERVED_MS,
    Answer,
    Body,
    begin_once,
    is_done,
    list_unfinished_units,
    load_units,
    report_leftovers,
    require_units,
)
from sync_rules.jobs.account.verify_unit import (
    LEDGERS,
    VerifyPosition,
    format_line,
    list_units,
    merge,
    name_head,
    name_unit,
    parse_share,
    read_report_lines,
    require_grace,
    write,
)
from sync_rules.model.errors import OUT_OF_TIME, StoreError, UserError
from sync_rules.pipeline.books import begin_all_books, finish_all_books
from sync_rules.pipeline.requests import World, run_work
from sync_rules.rules.ruleset import Rules
from sync_rules.rules.selection import Share, Step, cascade, list_swept_tables, select_rules

SEGMENT_ITEMS: Final = 100_000  # of all tables together: minutes of a call, were it only 500 a second
SEGMENTS_MAX: Final = 1_000
CURE: Final = "Run it again, with more --workers where the reason is OutOfTime"
AFTER: Final = "an earlier step was not checked completely"


@dataclass(eq=False)
class VerifyWork:
    """The Work of a verify. `sizes` returns the item count of each table of some rules. It raises UserError if the
    tables do not fit the rules. `on_end` is called with the totals, the rules, and whether everything was verified.
    """

    rules: Rules
    world: World
    state: SharedState
    reports: BucketReports
    sizes: Callable[[frozenset[str]], Mapping[str, int]]
    remaining_ms: Callable[[], int] = field(kw_only=True)
    on_end: Callable[..., object] = field(default=lambda *_, **_options: None, kw_only=True)
    sleep: Callable[[float], None] = field(default=time.sleep, kw_only=True)

    # ------------------------------------------------------------ the machine's questions
    def begin(self, asked: Body, execution: str) -> Answer:
        def make_head() -> Body:
            require_grace(asked["grace_seconds"], self.remaining_ms())
            names = select_rules(self.rules, asked["rules"])
            if not names:
                raise UserError("no rule keeps a copy that verify could check: all of them only act on changes")
            share = self._share(asked, sum(self.sizes(names).values()))
            steps = tuple(cascade(self.rules, names)) if asked["repair"] else (Step(names),)
            found = {
                "asked": dict(asked),
                "names": sorted(names),
                "share": asdict(share),
                "steps": [[sorted(step.names), step.max_rounds] for step in steps],
                "stage": asdict(VerifyPosition()),
                "at": datetime.now(UTC).isoformat(),
                "tally": Tally().body(),
                "counted": [],  # the tables whose items are
                "mended": 0,  # in this round
                "broken": 0,  # units whose call died while it repaired
                "unlooked": {},  # rules that were not checked in full, and why
                "cure": "",
                "reports": [],
                "report": "",
            }
            require_units(list_units(found))
            if asked["repair"] and not share.is_sample:
                found["books"] = run_work(begin_all_books(self.rules, names), self.world)
            return found

        found = begin_once(LeasedState(self.state), name_head(execution), make_head)
        return self._make_next_answer(found, execution)

    def unit(self, unit: str, run: Body) -> bool:
        execution, stage = run["execution"], VerifyPosition(**run["stage"])
        found = self.state.load(name_head(execution)) or {}
        if found.get("stage") != run["stage"] or found.get("report"):
            return True  # another call has seen this stage to its end
        name = name_unit(execution, stage, unit)
        held = LeasedState(self.state)
        if not is_done(self.state.load(name)):
            held.claim(name, uuid4().hex)
        if is_done(held.load(name)):
            return True
        try:
            body = self._verify(unit, found, f"{name.removeprefix('verify/')}-{uuid4().hex[:8]}")
        except (StoreError, UserError) as error:
            with suppress(StoreError):  # a worker that took the unit over says how it ends
                held.save(name, {"done": False, "reason": str(error)})  # still claimed: its repairs are counted nowhere
            raise
        held.save(name, {"done": True, "reason": "", **body})
        return True

    def _verify(self, unit: str, found: Body, name: str) -> dict[str, Any]:
        """The figures of a unit; its rows are saved as the report `name`. Raises StoreError: OutOfTime for a segment
        too large for one call. For ledgers that are too large, the figures so far, with the reason in `left`.
        """
        stage, asked = VerifyPosition(**found["stage"]), found["asked"]
        names = frozenset(found["steps"][stage.step][0])
        share = parse_share(found)

        def require(wait_seconds: float) -> None:
            if self.remaining_ms() < wait_seconds * 1000 + TIME_RESERVED_MS:
                what = "the ledgers are" if unit == LEDGERS else f"segment {unit} of {share.segments} is"
                raise StoreError(OUT_OF_TIME, f"{what} too much for one call")

        def sleep(seconds: float) -> None:
            require(seconds)
            self.sleep(seconds)

        verifier = Verifier(
            self.rules,
            self.world,
            names,
            repair=asked["repair"],
            rebuild=not share.is_sample,
            share=share if unit == LEDGERS else Share(share.segments, (int(unit),)),
            grace_seconds=asked["grace_seconds"],
            on_progress=lambda _tally, _doing: require(0),
            sleep=sleep,
        )
        left = ""

        def rows() -> Iterator[bytes]:
            nonlocal left
            try:
                for one in verifier.add_up(names) if unit == LEDGERS else verifier.look_over(names, found["counted"]):
                    yield format_line(make_row(one))
            except StoreError as error:
                if unit != LEDGERS or error.reason != OUT_OF_TIME:  # another call would get no further
                    raise
                left = str(error)

        report = write(self.reports, name, rows())
        return {"tally": verifier.tally.body(), "report": report, "left": left}

    def end(self, run: Body) -> Answer:
        execution, stage = run["execution"], VerifyPosition(**run["stage"])
        held = LeasedState(self.state)
        found = held.load(name_head(execution))
        if found is None:
            raise UserError(f"execution {execution} is no longer known: it started too long ago")
        if found["stage"] != run["stage"] or found["report"]:  # another call has ended it
            return self._make_next_answer(found, execution)
        names = {unit: name_unit(execution, stage, unit) for unit in list_units(found)}
        known = load_units(self.state, names)
        if left := list_unfinished_units(names, known):
            now = self.state.load(name_head(execution)) or found
            if now != found:  # another call ends it, and has removed them
                return self._make_next_answer(now, execution)
            if not stage.adding_up:
                return report_leftovers(left, CURE)
        done = [known[unit] for unit in names if is_done(known.get(unit))]
        broken = [one for one in known.values() if one.get("broken") or not is_done(one)]
        reason = next((reason for _, reason in left), "") or "".join(one["left"] for one in done)
        lost = len(broken) if found["asked"]["repair"] else 0
        found = self._add_results(found, execution, done, lost=lost, reason=reason)
        if found["over"]:
            found["report"] = self._write_whole_report(execution, found)
        held.save(name_head(execution), found)
        if found["over"]:
            whole = not (parse_share(found).is_sample or found["broken"] or found["unlooked"])
            self.on_end(Tally.of(found["tally"]), frozenset(found["names"]), whole=whole)
        for name in names.values():
            self.state.remove(name)
        return self._make_next_answer(found, execution)

    def _make_next_answer(self, found: Body, execution: str) -> Answer:
        if found["report"]:
            return report_leftovers(sorted(found["unlooked"].items()), found["cure"]) if found["unlooked"] else Answer()
        units = list_units(found)
        asked: int = found["asked"]["workers"]
        run = {"execution": execution, "stage": found["stage"], "workers": asked}
        return Answer(more=True, units=units, workers=max(1, min(asked, len(units))), run=run)

    # ------------------------------------------------------------ the end of a stage
    def _add_results(
        self, found: Body, execution: str, done: Sequence[Body], *, lost: int, reason: str
    ) -> dict[str, Any]:
        """The head after a stage: its figures, and the next stage; `over` if there is none. `done`: the documents of
        its units that are done; `lost`: the number of others, whose repairs are counted nowhere; `reason`: why ledgers
        were not added up, if they were not.
        """
        stage = VerifyPosition(**found["stage"])
        names, max_rounds = found["steps"][stage.step]
        tally = Tally.of(found["tally"])
        if stage.round and not stage.adding_up:
            for name in names:
                tally.start_over(name)
        here = Tally()
        for one in done:
            here.include(Tally.of(one["tally"]))
        reports = [one["report"] for one in done if one["report"]]
        name = f"{execution}/{stage.step}-{stage.round}{'-ledgers' if stage.adding_up else ''}"
        if reports:
            merge(self.reports, reports, name, here)
        mended = found["mended"] + here.repaired.total() + lost
        tally.include(here)
        adds_up = not parse_share(found).is_sample and any(True for _ in list_ledgers(self.rules, frozenset(names)))
        if not reason and (stage.adding_up or not adds_up):
            begun = {name: number for name, number in found.get("books", {}).items() if name in names}
            right = {name: number for name, number in begun.items() if not tally.wrong(name)}
            mended += run_work(finish_all_books(self.rules, right), self.world) if right else 0
        counted = sorted(
            {*found["counted"], *(table.name for table in list_swept_tables(self.rules, frozenset(names)))}
        )
        if reason:  # nothing that is made from those totals is repaired before they are
            there: VerifyPosition | None = None
        elif not stage.adding_up and adds_up:
            there = replace(stage, adding_up=True)
        elif found["asked"]["repair"] and mended and stage.round + 1 < max_rounds:
            there, mended = VerifyPosition(stage.step, stage.round + 1), 0
        else:
            there = VerifyPosition(stage.step + 1) if stage.step + 1 < len(found["steps"]) else None
            mended = 0
        return {
            **found,
            **(self._list_unverified_rules(found, stage, reason) if reason else {}),
            "tally": tally.body(),
            "counted": counted,
            "mended": mended,
            "broken": found["broken"] + lost,
            "reports": [*found["reports"], *([name] if reports else ())],
            "stage": found["stage"] if there is None else asdict(there),
            "over": there is None,
        }

    def _list_unverified_rules(self, found: Body, stage: VerifyPosition, reason: str) -> dict[str, Any]:
        """Return the rules that were not verified in full, because their ledgers were not added up, and the cure."""
        names = frozenset(found["steps"][stage.step][0])
        after = [name for names, _ in found["steps"][stage.step + 1 :] for name in names]
        totals = [rule.name for _, tallies in list_ledgers(self.rules, names) for rule in tallies]
        unlooked = dict.fromkeys(after, AFTER) | dict.fromkeys(totals, reason)
        cure = "Run it again"
        if reason.startswith(OUT_OF_TIME):
            repair = " --repair" if found["asked"]["repair"] else ""
            titles = sorted({self.rules.rules[name].title for name in unlooked})
            cure = f"Verify from a machine: sync-rules verify{repair}{''.join(f' --rule {title}' for title in titles)}"
        return {"unlooked": unlooked, "cure": cure, "names": sorted({*found["names"]} - {*after})}

    def _write_whole_report(self, execution: str, found: Body) -> str:
        """Write the report of the whole verify, as `verify --format jsonl` prints it. Returns its name."""
        names, name = frozenset(found["names"]), f"{execution}/report"
        head = make_header(self.rules, names, datetime.fromisoformat(found["at"]), parse_share(found))
        end = make_footer(Tally.of(found["tally"]), names, datetime.now(UTC))
        not_in_it = {"broken": found["broken"], "not_looked_at": found["unlooked"]}
        first, last = format_line(head | {"seed": found["asked"]["seed"]}), format_line(end | not_in_it)
        write(self.reports, name, chain([first], read_report_lines(self.reports, found["reports"]), [last]))
        return name

    def _share(self, asked: Body, items: int) -> Share:
        """The segments of the sample; otherwise as many as are asked for, or more, so that one call can check each."""
        if asked["numbers"] is not None:
            return Share(SAMPLE_SEGMENTS, tuple(asked["numbers"]))
        segments = max(asked["segments"] or 1, min(SEGMENTS_MAX, -(-items // SEGMENT_ITEMS)))
        return Share(segments, tuple(range(segments)))
