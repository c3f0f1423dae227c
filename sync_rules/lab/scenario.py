"""Scenarios: what an application does, step by step, and what must be true each time the pipeline has come to rest.

A scenario is a folder with `rules.yaml`, `data.yaml` (what is there at first, by table) and `scenario.yaml`, or a file
of any name that says where its rules are:

```yaml
# data.yaml
shop:                                        # a table, by its name in rules.yaml; then its items
  - {PK: USER#1, SK: PROFILE, name: Ada}
  - {PK: USER#1, SK: ORDER#1, total: 9.90}

# scenario.yaml
rules: ../rules.yaml                         # seen from here; if it is not said: rules.yaml beside this file
data:                                        # as in data.yaml, which is not read then
  shop: [{PK: USER#1, SK: PROFILE, name: Ada}]
expect:                                      # once the data were loaded
  shop: {PK: USER#1, SK: ORDER#1, user_name: Ada}
steps:
  - say: Ada marries                         # what the step is called; each step may do several things, in this order:
    put:    {shop: {PK: USER#1, SK: ORDER#2, total: 5}}                                   # write whole items
    update: {shop: {key: {PK: USER#1, SK: PROFILE}, set: {name: Ada King}, remove: [title]}}  # change some, at paths
    delete: {shop: {PK: USER#1, SK: ORDER#1}}
    expire: {shop: {PK: USER#1, SK: CART}}   # a delete, as Time to Live does it
    expect:                                  # an item by its key, and what it must hold at these paths
      shop:
        - {PK: USER#1, SK: ORDER#2, user_name: Ada King, old_name: <absent>}
    expect_gone: {shop: {PK: USER#1, SK: ORDER#1}}
    expect_objects: {carts-to-s3: [{PK: USER#1, SK: CART}]}   # all that an archive rule has kept so far, in any order
    expect_calls: {told: 2}                                   # how often a call rule has called its function so far
    expect_failures: {addresses: TooManyItems}                # what this step had reported; nothing else may be
answers:                                     # in the end: what `read` in read.py finds, by question
  orders of Ada: [ORDER#2]
```

Where there is one item, key or reason it need not be in a list. Values are plain YAML: numbers are exact, `!set [a, b]`
is a set, `!!binary` is binary, null is NULL, and an unquoted `<absent>` is nothing: what `expect` finds, or `set`
leaves. A path is `a.b` as in rules; the names of `put` and of data are taken as they are.

Law: a scenario knows tables, items and the names of rules, and not how a pipeline works. `scenariofile` reads it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

from sync_rules.language.problems import Location
from sync_rules.model.items import ItemKey
from sync_rules.model.python_values import plain_of
from sync_rules.model.values import AttributeValue, Item, Path, get, same, show_path
from sync_rules.model.writes import Delete, Put, Update
from sync_rules.rules.ruleset import Rules

Wanted = Mapping[Path, AttributeValue | None]  # what must stand at each path; None: nothing
Reported = tuple[str, str]  # a rule and a reason


class Marker(Enum):
    """What stands in a file for no value."""

    ABSENT = "<absent>"


@dataclass(frozen=True, slots=True)
class Expire:
    """Delete an item as Time to Live does."""

    key: ItemKey


Action = Put | Update | Delete | Expire  # of an application, so without guards


@dataclass(frozen=True, slots=True)
class ExpectedItem:
    """What an item must hold, and where that is written; `wanted` is None for an item that must not be there."""

    spot: Location
    key: ItemKey
    wanted: Wanted | None


@dataclass(frozen=True, slots=True)
class ExpectedObjects:
    """What an archive rule must have kept so far: an object for each of these, and no other."""

    spot: Location
    rule: str
    items: tuple[Wanted, ...]


@dataclass(frozen=True, slots=True)
class ExpectedCalls:
    """How often a call rule must have called its function so far."""

    spot: Location
    rule: str
    times: int


@dataclass(frozen=True)
class Step:
    """One step. `reports`: the failures that it must lead to, and no others; `spot` is where they are written."""

    say: str
    spot: Location = field(default_factory=Location)
    actions: tuple[Action, ...] = ()
    items: tuple[ExpectedItem, ...] = ()
    objects: tuple[ExpectedObjects, ...] = ()
    calls: tuple[ExpectedCalls, ...] = ()
    reports: frozenset[Reported] = frozenset()


@dataclass(frozen=True)
class Scenario:
    """A scenario file and its rules. The first step loads the data. `answers` are spots and answers, by question."""

    file: str
    rules: Rules
    steps: tuple[Step, ...]
    answers: Mapping[str, tuple[Location, Any]] = field(default_factory=dict)


class Stage(Protocol):
    """Where a scenario is played: tables with a pipeline behind them. Any call may raise StoreError."""

    def do(self, action: Action) -> None:
        """Do what the application does."""
        ...

    def rest(self) -> bool:
        """Let the pipeline work until nothing is left to do. False when that took too long."""
        ...

    def item(self, key: ItemKey) -> Item | None:
        """An item as it is now."""
        ...

    def objects(self, rule: str) -> Sequence[Item]:
        """The items that an archive rule has kept."""
        ...

    def calls(self, rule: str) -> int:
        """For how many changes a call rule has called its function."""
        ...

    def reports(self) -> Sequence[Reported]:
        """The failure records, oldest first."""
        ...


def play(scenario: Scenario, stage: Stage) -> Iterator[tuple[Step, tuple[str, ...]]]:
    """Each step, and what is not as it must be after it, in words."""
    for step in scenario.steps:
        before = len(stage.reports())
        for action in step.actions:
            stage.do(action)
        rested = stage.rest()
        restless = () if rested else (f"{at(scenario.file, step)}\n  the pipeline did not come to rest",)
        yield step, (*restless, *step_differences(scenario.file, step, stage, before))


# ---------------------------------------------------------------- what is wrong
def step_differences(file: str, step: Step, stage: Stage, reports_before: int) -> Iterator[str]:
    """What is not as a step has it: where that is written, then what was expected and what was found."""
    for expected in step.items:
        for path, want, found in _differences(expected, stage.item(expected.key)):
            place = f"{expected.key} {show_path(path)}".strip()
            yield _wrong(file, expected.spot, f"{step.say} · {place}", want, found)
    for kept in step.objects:
        for want, found in _unmatched(kept.items, stage.objects(kept.rule)):
            yield _wrong(file, kept.spot, f"{step.say} · objects of {kept.rule}", want, found)
    for called in step.calls:
        times = stage.calls(called.rule)
        if times != called.times:
            yield _wrong(file, called.spot, f"{step.say} · calls of {called.rule}", str(called.times), str(times))
    reported = frozenset(stage.reports()[reports_before:])
    for rule, reason in sorted(step.reports ^ reported):
        missing = (rule, reason) in step.reports
        texts = (reason, "no such failure") if missing else ("no failure", reason)
        yield _wrong(file, step.spot, f"{step.say} · failures of {rule}", *texts)


def wrong_answers(scenario: Scenario, found: Mapping[str, Any]) -> Iterator[str]:
    """The questions that are answered otherwise than the scenario has it, by plain values."""
    for question in dict.fromkeys((*scenario.answers, *found)):
        spot, want = scenario.answers.get(question, (Location(), Marker.ABSENT))
        answer = found.get(question, Marker.ABSENT)
        if want != answer:
            yield _wrong(scenario.file, spot, question, show_plain(want), show_plain(answer))


def at(file: str, step: Step) -> str:
    """Where a step stands, and what it is called."""
    return f"{file}:{step.spot.line}:{step.spot.column} · {step.say}"


def _wrong(file: str, spot: Location, place: str, want: str, found: str) -> str:
    return f"{file}:{spot.line}:{spot.column} · {place}\n  expected {want}\n  found    {found}"


def _differences(expected: ExpectedItem, item: Item | None) -> Iterator[tuple[Path, str, str]]:
    """Each path where an item is not as it must be."""
    if item is None or expected.wanted is None:
        if (item is None) != (expected.wanted is None):
            yield (), *(("no item", "an item") if expected.wanted is None else ("an item", "no item"))
        return
    for path, want in expected.wanted.items():
        for inner, wants, found in _apart(path, want, get(item, path)):
            yield inner, show(wants), show(found)


def _apart(
    path: Path, want: AttributeValue | None, found: AttributeValue | None
) -> Iterator[tuple[Path, AttributeValue | None, AttributeValue | None]]:
    """Where two values differ, as deep inside maps as it can be told."""
    if same(want, found):
        return
    if want is None or found is None or "M" not in want or "M" not in found:
        yield path, want, found
        return
    for name in dict.fromkeys((*want["M"], *found["M"])):
        yield from _apart((*path, name), want["M"].get(name), found["M"].get(name))


def _unmatched(wanted: Iterable[Wanted], found: Iterable[Item]) -> Iterator[tuple[str, str]]:
    """What is kept for none that is expected, and the other way round."""
    left = list(found)
    for want in wanted:
        match = next((item for item in left if all(same(v, get(item, path)) for path, v in want.items())), None)
        if match is None:
            shown = ", ".join(f"{show_path(path)}: {show(value)}" for path, value in want.items())
            yield f"an object with {shown}", "none"
        else:
            left.remove(match)
    for item in left:
        yield "no other object", ", ".join(f"{name}: {show(value)}" for name, value in sorted(item.items()))


def show(value: AttributeValue | None) -> str:
    """A value as a scenario file has it."""
    return Marker.ABSENT.value if value is None else show_plain(plain_of(value))


def show_plain(value: Any) -> str:
    """A plain value as a scenario file has it, on one line."""
    match value:
        case Marker():
            return str(value.value)
        case str() | bool() | None:
            return json.dumps(value, ensure_ascii=False)
        case bytes():
            return f"{len(value)} bytes"
        case Mapping():
            return f"{{{', '.join(f'{name}: {show_plain(inner)}' for name, inner in sorted(value.items()))}}}"
        case set() | frozenset():
            return f"!set [{', '.join(sorted(map(show_plain, value)))}]"
        case list() | tuple():
            return f"[{', '.join(map(show_plain, value))}]"
    return str(value)
