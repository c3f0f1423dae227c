"""Proved access patterns: lines for people, the matrix of the DynamoDB guide in Markdown, rows for programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from sync_rules.cli.show.output import escape_markdown
from sync_rules.cli.show.text import format_count
from sync_rules.deploy.yamltext import format_yaml
from sync_rules.extras.design.patterns.answers import PatternAnswer, ProvedRequest
from sync_rules.extras.design.patterns.declarations import (
    GetPattern,
    GraphPattern,
    SearchPattern,
    TreePattern,
    WritePattern,
)
from sync_rules.extras.design.patterns.hot_keys import Hot
from sync_rules.extras.design.patterns.keepers import Keeper
from sync_rules.extras.design.patterns.prover import Proof
from sync_rules.model.values import escape_invisible

STATED: Final = ("description", "priority", "peak hours")  # by the file alone
COLUMNS: Final = (
    "pattern", "description", "priority", "read or write", "finds", "peak hours", "entity", "request",
    "table or index", "key condition", "filter", "projection", "consistency", "cost",
)  # fmt: skip
CURES_MAX: Final = 3
ROLES: Final = {
    "item": "each item of",
    "key": "key attribute",
    "returned": "returns",
    "tested": "tests",
    "path": "path attribute",
    "set": "set",
}
Kept = Mapping[str, Iterable[Keeper]]  # by name of a pattern


def classify(answer: PatternAnswer) -> tuple[str, ...]:
    """The cells of a pattern that the file states, and those that follow from its form."""
    pattern = answer.pattern
    write = isinstance(pattern, WritePattern)
    one = write or getattr(pattern, "one", False) or (answer.is_served and answer.steps[0].request == "GetItem")
    kinds = "write" if write else "read", "one" if one else "many"
    return pattern.description, pattern.priority, *kinds, pattern.peak_hours


def describe_pattern(answer: PatternAnswer) -> str:
    pattern = answer.pattern
    match pattern:
        case GetPattern():
            by = f" by {', '.join(pattern.by)}" if pattern.by else ""
            within = f", {pattern.within.form} {pattern.within.attribute}" if pattern.within else ""
            order = f", in the order of {pattern.order}{' desc' * pattern.backward}" if pattern.order else ""
            where = f" where {pattern.where.text}" if pattern.where is not None else ""
            return f"{' and '.join(pattern.entities)}{by}{where}{within}{order}"
        case GraphPattern():
            return f"{pattern.node} of {pattern.start} through {pattern.edge}"
        case TreePattern():
            return f"{pattern.entity} {pattern.direction} {pattern.field}"
        case SearchPattern():
            return f"{pattern.entity} near a vector" + (f" by {', '.join(pattern.by)}" if pattern.by else "")
        case WritePattern():
            return f"{pattern.operation} {pattern.entity}"


def list_proof_lines(proof: Proof, hots: tuple[Hot, ...], places: Mapping[str, str], kept: Kept) -> Iterator[str]:
    """List the lines of a proof for people. `places` has the file and line of each pattern, `kept` the attributes of
    some patterns.
    """
    for name, answer in proof.answers.items():
        yield from map(escape_invisible, list_pattern_lines(name, answer, places.get(name, "")))
        yield from (escape_invisible(f"  {_format_keeper(one)}") for one in kept.get(name, ()))
        yield ""
    yield from map(escape_invisible, list_remark_lines(proof, hots))
    yield format_summary(proof, hots)


def list_remark_lines(proof: Proof, hots: tuple[Hot, ...]) -> Iterator[str]:
    """List the lines about a whole proof: copies that no pattern reads, idle indexes, hot keys."""
    if len(proof.unserved_answers) > 1:
        yield "Apply one cure at a time: the next run takes it into account."
    for title in proof.unread:
        yield f"no pattern reads what rule {title} keeps"
    for table, index in proof.idle:
        yield f"no pattern and no rule uses index {index} of table {table}"
    for one in hots:
        yield _format_hot_key(one)


def _format_keeper(one: Keeper) -> str:
    """An attribute that a pattern reads, with the rule that keeps it."""
    here = one.place.endswith(f".{one.name}") or one.place == one.name
    made_of = f" from {', '.join(one.made_of)}" if one.made_of else ""
    rule = one.rule
    by = "written by the application" if rule is None else f"kept by rule {rule.title} ({rule.kind}){made_of}"
    return f"{ROLES[one.role]} {one.place if here else f'{one.name} = {one.place}'}: {by}"


def list_pattern_lines(name: str, answer: PatternAnswer, place: str) -> Iterator[str]:
    """List the lines of one pattern: its requests and remarks, or the reason and cures."""
    if answer.is_served:
        cost = "" if answer.steps[0].writes else f": {format_cost(answer)}"
        yield f"{name} ({describe_pattern(answer)}){cost}"
        yield from _list_statements(answer)
        yield from (f"  {format_request(step)}" for step in answer.steps)
        yield from (f"  note: {remark}" for remark in answer.remarks)
        return
    yield f"{name} ({describe_pattern(answer)}): NOT SERVED"
    yield f"  {place}: {answer.reason}        [SR490]"
    for number, cure in enumerate(answer.cures[:CURES_MAX], 1):
        yield f"  cure {number}: {cure.title}; it costs {cure.price}"
        yield from (f"    {line}" for line in format_yaml(cure.entries).splitlines())


def _list_statements(answer: PatternAnswer) -> Iterator[str]:
    one = answer.pattern
    stated = [one.description, one.priority and f"{one.priority} priority", one.peak_hours and f"peak {one.peak_hours}"]
    if text := ", ".join(filter(None, stated)):
        yield f"  {text}"


def format_request(step: ProvedRequest) -> str:
    """Return a request with its table or index and its key condition as text."""
    parts = [f"{step.request} {step.place}", step.condition]
    parts += ["backward"] if step.backward else []
    parts += [f"filter {step.filters}"] if step.filters else []
    parts += [f"only {', '.join(step.projects)}"] if step.projects else []
    parts += ["consistent"] if step.consistent else []
    return ", ".join(parts)


def format_cost(answer: PatternAnswer) -> str:
    """Return the requests and read units of a page as text."""
    units = answer.units
    text = format_count(answer.requests, "request")
    text += " and the bytes of a search" if answer.steps[0].request == "SearchVectors" else ""
    if units is None:
        return f"{text}, read units not known: {_name_missing_statement(answer)}"
    return f"{text}, {units:g} read unit{'s' * (units != 1)}"


def _name_missing_statement(answer: PatternAnswer) -> str:
    for step in answer.steps:
        if step.size_bytes is None:
            return f"state entities.{step.entity.name}.size"
    return "state the items of one call"


def _format_hot_key(one: Hot) -> str:
    names = ", ".join(one.patterns)
    units = f"{one.units:,.0f} {one.kind} units a second"
    if not one.certain:
        return (
            f"{names}: {units} on {one.place}: a key that has more than {one.share:.0%} of them is hot "
            f"(a partition takes {one.limit:,}); state `busiest`"
        )
    key = f"{one.key} key" if one.key == "the busiest" else f"key {one.key}"
    hot = f"HOT: {key} of {one.place} takes {units} ({names}), and a partition {one.limit:,}"
    if not one.spread_by:
        return f"{hot}: a single item cannot be spread; cache it, or keep {one.shards} copies of it"
    shard = f"{{{one.spread_by}:shard({one.shards})}}"
    return (
        f"{hot}: spread it over {one.shards} shards, such as {shard} at the end of what makes it, and ask each of them"
    )


def format_summary(proof: Proof, hots: tuple[Hot, ...]) -> str:
    """Return the counts as a line."""
    unserved = len(proof.unserved_answers)
    parts = [format_count(len(proof.answers), "pattern"), f"{len(proof.answers) - unserved} served"]
    parts += [f"{unserved} not served"] if unserved else []
    parts += [format_count(len(proof.unread), "rule") + " unread"] if proof.unread else []
    parts += [format_count(len(proof.idle), "index", "indexes") + " idle"] if proof.idle else []
    certain = sum(one.certain for one in hots)
    parts += [format_count(certain, "hot key")] if certain else []
    return ", ".join(parts)


# ---------------------------------------------------------------- the matrix
def list_rows(answer: PatternAnswer, name: str) -> Iterator[tuple[str, ...]]:
    """Yield the rows of a pattern: a row for each request, or a row with the reason why no request serves it."""
    of_pattern = classify(answer)
    if not answer.is_served:
        yield name, *of_pattern, describe_pattern(answer), "none", "", answer.reason, "", "", "", ""
        return
    for number, step in enumerate(answer.steps):
        first = number == 0
        consistency = "" if step.writes else "strong" if step.consistent else "eventual"
        cost = ("" if step.writes else format_cost(answer)) if first else ""
        projection = "" if step.writes else "all" if step.projects is None else ", ".join(step.projects)
        yield (
            name if first else "",
            *(of_pattern if first else [""] * len(of_pattern)),
            " and ".join(one.name for one in (step.entity, *step.beside)),
            step.request,
            step.place,
            step.condition + (", backward" if step.backward else ""),
            step.filters,
            projection,
            consistency,
            cost,
        )


def format_markdown(proof: Proof) -> str:
    """Return the access-pattern matrix as a table in Markdown. A column is left out if no pattern states its value."""
    rows = [row for name, answer in proof.answers.items() for row in list_rows(answer, name)]
    shown = [at for at, name in enumerate(COLUMNS) if name not in STATED or any(row[at] for row in rows)]
    lines = [f"| {' | '.join(escape_markdown(row[at]) for at in shown)} |" for row in (COLUMNS, *rows)]
    return "\n".join([lines[0], f"|{'---|' * len(shown)}", *lines[1:]]) + "\n"


# ---------------------------------------------------------------- for programs
def make_document(proof: Proof, hots: tuple[Hot, ...], places: Mapping[str, str], kept: Kept) -> dict[str, Any]:
    """Return the proof as a JSON document."""
    return {
        "patterns": [
            make_pattern_row(name, answer, places.get(name, "")) | _make_attributes(kept, name)
            for name, answer in proof.answers.items()
        ],
        "unread": [*proof.unread],
        "idle": [{"table": table, "index": index} for table, index in proof.idle],
        "hot": [
            {
                "place": one.place,
                "key": one.key,
                "kind": one.kind,
                "units_per_second": one.units,
                "limit": one.limit,
                "patterns": [*one.patterns],
                "certain": one.certain,
                "share": one.share,
                "shards": one.shards,
            }
            for one in hots
        ],
    }


def _make_attributes(kept: Kept, name: str) -> dict[str, Any]:
    rows = [
        {
            "attribute": one.name,
            "place": one.place,
            "role": one.role,
            "rule": None if one.rule is None else one.rule.name,
            "kind": None if one.rule is None else one.rule.kind,
            "made_of": [*one.made_of],
        }
        for one in kept.get(name, ())
    ]
    return {"attributes": rows} if name in kept else {}


def make_pattern_row(name: str, answer: PatternAnswer, place: str) -> dict[str, Any]:
    return {
        "pattern": name,
        **dict(zip(("description", "priority", "does", "finds", "peak_hours"), classify(answer), strict=True)),
        "at": place,
        "served": answer.is_served,
        "requests": [
            {
                "request": step.request,
                "entity": step.entity.name,
                **({"beside": [one.name for one in step.beside]} if step.beside else {}),
                "table": step.entity.table.name,
                "index": None if step.index is None else step.index.name,
                "condition": step.condition,
                "backward": step.backward,
                "filter": step.filters,
                "projection": None if step.projects is None else [*step.projects],
                "consistent": step.consistent,
                "requests": step.requests,
                "read_units": step.units,
            }
            for step in answer.steps
        ],
        "reason": answer.reason,
        "notes": [*answer.remarks],
        "cures": [vars(cure) for cure in answer.cures],
    }
