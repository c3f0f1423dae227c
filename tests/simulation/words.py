"""A history in words, for the story of a failure."""

from __future__ import annotations

from typing import Any

from sync_rules.model.values import Item
from sync_rules.model.writes import Action, Condition, Delete, Increment, Put, Result, Transaction, Update, Write
from sync_rules.pipeline.requests import Apply, Later, List, Page, Park, Read, Request, Scan
from tests.simulation.errands import Errand
from tests.simulation.facts import Place
from tests.simulation.stops import Save, Wait
from tests.simulation.world import Batch, Note


def place(where: Place) -> str:
    return f"{where[0]}[{', '.join(where[1])}]"


def item(values: Item | None) -> str:
    """An item by what is in its attributes; long texts are cut."""
    return "nothing" if values is None else "{" + ", ".join(f"{name}: {value(v)}" for name, v in values.items()) + "}"


def value(one: Any) -> str:
    if one is None:
        return "nothing"
    ((kind, content),) = one.items()
    if kind == "M":
        return item(content)
    return content if len(str(content)) < 40 else f"{str(content)[:8]}... ({len(content)})"


def origin(of: Batch | Note | Errand) -> str:
    if isinstance(of, Errand):
        return str(of)
    if isinstance(of, Note):
        return f"message {of.text}"
    records = ", ".join(f"{change.position} of {change.key}" for change in of.changes)
    return f"{'' if of.first else 'once more '}records {records}"


def request(of: Request, part: int) -> str:
    match of:
        case Read():
            return f"reads {of.keys[part]}"
        case List():
            start = f" from {item(of.cursor)}" if of.cursor else ""
            return f"lists {of.table}{f' by {of.index}' if of.index else ''}{start}"
        case Scan():
            start = f" from {item(of.cursor)}" if of.cursor else ""
            return (
                f"scans {of.table} ({of.segment + 1}/{of.total_segments}){start}{'' if of.consistent else ', may lag'}"
            )
        case Save():
            return f"saves {of.name}: {of.document}" if of.document else f"removes {of.name}"
        case Wait():
            return "waits"
        case Apply():
            return write(of.writes[part])
        case Later():
            return f"sends {of.message} for {of.delay_seconds} s later"
        case Park():
            return f"parks {of.failure.key}: {of.failure.reason}"
    return str(of)


def write(of: Write) -> str:
    return "; ".join(action(one) for one in of.actions) if isinstance(of, Transaction) else action(of)


def action(of: Action) -> str:
    guard = " and ".join(condition(one) for one in of.guard)
    match of:
        case Update():
            changes = [f"{'.'.join(path)} = {value(new)}" for path, new in of.sets]
            changes += [f"no {'.'.join(path)}" for path in of.removes]
            changes += [f"{value(some)} in {'.'.join(path)}" for path, some in of.adds]
            changes += [f"{value(some)} not in {'.'.join(path)}" for path, some in of.discards]
            return f"sets {', '.join(changes)} on {of.key} if {guard}"
        case Delete():
            return f"deletes {of.key} if {guard}"
        case Put():
            return f"puts {item(of.item)} at {of.key} if {guard}"
        case Increment():
            return f"adds {', '.join(f'{amount} to {name}' for name, amount in of.amounts)} on {of.key}"
    return f"checks {of.key}: {guard}"


def condition(of: Condition) -> str:
    path = ".".join(of.path)
    return f"{path} = {value(of.value)}" if of.value is not None else f"{path} {of.test.value}"


def answer(of: Any) -> str:
    match of:
        case Result():
            return f"{of.status.value}{f' {of.reason}' if of.reason else ''}"
        case Page():
            return ", ".join(item(one) for one in of.items) + (" and more" if of.cursor else "") or "no rows"
        case None:
            return "nothing"
    return item(of) if isinstance(of, dict) else str(of)
