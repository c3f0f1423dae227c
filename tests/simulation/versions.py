"""Two versions of the rules: counters that are rolled out and back beside a backfill, and workers that share a queue.

Invariant: nothing that counts changes meanwhile. Each version of a counter then has one right number for each parent, and
half of its books, or a mixture of both versions' books, has another. So every number is judged when it is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.simulation.grammar import File, Form, Made, condition, made_of, plain_form
from tests.simulation.oracle import Oracle, children_of, members_of, owned_paths, shown, sums_of
from tests.simulation.plain import same
from tests.simulation.safety import Safety, UnsafeError
from tests.simulation.spec import Body, Entity, Item, Path, Place, Spec, get

COUNTERS = ("count", "sum", "mean", "min", "max", "values")
TRIES_MAX = 6
RENAMED_SHARE = 0.5  # of the versions beside another one; in the others a rule is missing


@dataclass(frozen=True, eq=False)
class Numbers:
    """The numbers of one version: those of rules with books, made of what no other rule writes."""

    oracle: Oracle
    shown: tuple[tuple[Body, Entity, Path], ...]

    @classmethod
    def of(cls, spec: Spec, safety: Safety) -> Numbers:
        steady = [(rule, *spec.ref(rule["into"])) for rule in spec.rules.values() if _steady(spec, rule, safety)]
        found = [(rule, parent, path) for rule, parent, into in steady for path in (into, *sums_of(rule))]
        return cls(Oracle(spec), tuple(found))

    def check(self, place: Place, old: Item, new: Item, items: Mapping[Place, Item]) -> None:
        """Raises UnsafeError for a number that this version does not count."""
        entity = self.oracle.spec.entity_of(place)
        for rule, parent, into in self.shown:
            if parent is not entity or same(get(old, into), get(new, into)):
                continue
            about = f"rule {rule['name']} ({rule['kind']}) on {shown(place)}:"
            for one in self.oracle.look({**items, place: new}).wrong:
                if one.startswith(about):
                    raise UnsafeError(f"a number of books that are not complete: {one}")


def _steady(spec: Spec, rule: Body, safety: Safety) -> bool:
    """True if a rule keeps books of items that only the application makes and changes."""
    if rule["kind"] not in COUNTERS or rule.get("mode") == "recount":
        return False
    child = children_of(spec, rule)
    mirrored = any(one["kind"] == "mirror" and one["into"] == child.name for one in spec.rules.values())
    if mirrored or safety.deletes(child):
        return False
    read = {spot.path[0] for spot in members_of(spec, rule).link.values()}
    names = {path[0] for paths in owned_paths(spec, child).values() for path in paths}
    return not any(name in read or re.search(rf"\b{re.escape(name)}\b", repr(rule)) for name in names)


# ---------------------------------------------------------------- another version of the rules
def other_version(made: Made) -> Made | None:
    """The same file with its counters changed; None if `check` accepts none of some changes."""
    known = made.spec.known
    if ("version", "") not in known:
        known["version", ""] = next(_versions(made), None)
    found: Made | None = known["version", ""]
    return found


def _versions(made: Made) -> Iterator[Made]:
    for attempt in range(TRIES_MAX):
        body = plain_form(made.text)
        file = File(Random(f"version {attempt} {made.text}"), body["tables"], body["entities"], body["rules"])
        for name, rule in made.spec.rules.items():
            if rule["kind"] in COUNTERS and rule.get("mode") != "recount":
                form = {key: value for key, value in rule.items() if key not in ("name", "kind", "values")}
                file.rules[name] = _changed(file, children_of(made.spec, rule).name, rule["kind"], form)
        found, _ = made_of(file.text())
        if found is not None:
            yield found


def _changed(file: File, child: str, kind: str, form: dict[str, Any]) -> Form:
    """A counter that counts otherwise: under another condition, by other weights or attributes, in groups or not."""
    if kind == "values":
        return _other_values(file, child, form)
    how = file.one("where", "where", "weights" if kind == "count" else "amount", "per", "shards")
    if "sums" in form and how in ("weights", "per"):
        shown = [*form["sums"].values()] if isinstance(form["sums"], dict) else form["sums"]
        return {**form, "sums": {file.one("rank", "info.name"): shown[0]}}
    if how == "weights":
        return {
            **form,
            "weights": file.one({"state": {"OPEN": 7, "SENT": 2}}, {"values": {"state": {"OPEN": 7}}, "default": 2}),
        }
    if how == "amount":
        return {**form, kind: f"{child}.{'rank' if form[kind].endswith('.amount') else 'amount'}"}
    if how == "per" and "per" in form:
        return {key: value for key, value in form.items() if key != "per"}
    if how == "per" and kind in ("count", "sum"):
        return {**form, "per": "state"}
    if how == "shards" and kind in ("count", "sum", "mean"):
        return {**form, "shards": 5 if form.get("shards") != 5 else 2}
    if "where" in form:
        return {key: value for key, value in form.items() if key != "where"}
    return {**form, "where": condition(file, child)}


def _other_values(file: File, child: str, form: dict[str, Any]) -> Form:
    """Values of another attribute, of other items, or in another order."""
    match file.one("where", "of", "order"):
        case "of":
            return {**form, "collect": f"{child}.{'title' if form['collect'].endswith('.state') else 'state'}"}
        case "order" if "as" in form or "join" in form:
            return {**form, "order": "rank" if form.get("order") == "-amount" else "-amount"}
    return {**form, "where": condition(file, child)}


# ---------------------------------------------------------------- a version beside this one
def beside(made: Made) -> Made | None:
    """The same file while functions are updated or rolled back: a rule has another name, or is missing."""
    known = made.spec.known
    if ("beside", "") not in known:
        known["beside", ""] = next(_beside(made), None)
    found: Made | None = known["beside", ""]
    return found


def _beside(made: Made) -> Iterator[Made]:
    for attempt in range(TRIES_MAX):
        body, draw = plain_form(made.text), Random(f"beside {attempt} {made.text}")
        name = draw.choice(sorted(made.spec.rules))
        form = {key: value for key, value in made.spec.rules[name].items() if key not in ("name", "kind", "values")}
        del body["rules"][name]
        if former := form.pop("renamed_from", None):
            body["rules"][former] = form
        elif draw.random() < RENAMED_SHARE:
            body["rules"][f"new-{name}"] = {**form, "renamed_from": name}
        found, _ = made_of(File(draw, body["tables"], body["entities"], body["rules"]).text())
        if found is not None and found.rules.rules:
            yield found
