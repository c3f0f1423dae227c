"""`sync-rules explain`: the origin of an item's values and whether they are right, every item that holds a value of an
item, or the effects of a stream record.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from sync_rules.adapters import aws
from sync_rules.adapters.dynamodb import DynamoStore
from sync_rules.audit.compare import Drift
from sync_rules.audit.consequences import Consequence, Standing, list_changed_names, list_consequences, list_standings
from sync_rules.audit.where_used import UsePlace, find_uses
from sync_rules.cli import options as opt
from sync_rules.cli.show.text import Row, format_count, show_rows
from sync_rules.cli.verb import Verb
from sync_rules.lab.recording import read
from sync_rules.language.load import load_rules
from sync_rules.model.errors import UserError
from sync_rules.model.items import Change, ItemKey
from sync_rules.model.values import show_path
from sync_rules.pipeline.failure_records import printable, show_key
from sync_rules.pipeline.requests import NULL_PORTS, Read, World, run_work
from sync_rules.rules.families import PartRule
from sync_rules.rules.key_json import parse_key
from sync_rules.rules.rule import Rule
from sync_rules.rules.ruleset import Rules

VERB: Final = Verb(needs={"--table": ("--key", "--where-used")})


def explain(
    rules_file: opt.RulesFile = opt.RULES_FILE,
    *,
    key: Annotated[
        str | None, typer.Option(metavar="JSON", help="Key of an item: shows where its derived values came from.")
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="File with a stream record, an event, or JSON lines of them: shows what they trigger."
        ),
    ] = None,
    where: Annotated[
        str | None,
        typer.Option("--where-used", metavar="JSON", help="Key of an item: shows every item that holds a value of it."),
    ] = None,
    table: opt.KeyTable = None,
    endpoint_url: opt.Endpoint = None,
    region: opt.Region = None,
    form: opt.Lines = opt.LineForm.TEXT,
) -> int:
    """Explain an item: its values, its users; a record's effects. Reads only."""
    rules = load_rules(rules_file)
    if sum(given is not None for given in (key, record, where)) != 1:
        raise UserError("expected exactly one of --key, --record and --where-used")
    as_json = form is not opt.LineForm.TEXT
    if record is not None:
        show_rows(record_rows(record, rules), as_json=as_json)
        return 0
    store = DynamoStore(aws.dynamodb(endpoint_url, region), rules.tables)
    world = World(store, NULL_PORTS, NULL_PORTS)
    if key is not None:
        show_rows(item_rows(parse_key(key, table, rules), rules, world), as_json=as_json)
    else:
        show_rows(use_rows(parse_key(where or "", table, rules), rules, world), as_json=as_json)
    return 0


# ---------------------------------------------------------------- an item
def item_rows(key: ItemKey, rules: Rules, world: World) -> Iterator[Row]:
    """The derived values of an item, then the rules that copy from it. Raises UserError when it does not exist."""
    (item,) = world.store.read(Read((key,)))
    if item is None:
        raise UserError(f"there is no item {printable(key)}")
    entity = rules.entity_of(key)
    if entity is None:
        yield {"item": _key(key), "entity": None}, f"{printable(key)} matches no entity, so no rule concerns it"
        return
    yield {"item": _key(key), "entity": entity.name}, f"{printable(key)}: entity {entity.name}"
    found = run_work(list_standings(key, item, rules), world)
    for one in found:
        yield _make_row(one)
    if not found:
        yield {"standing": None}, "  no rule writes to it"
    for rule in rules.from_source(entity):
        into = _into(rule)
        yield {"source_of": rule.name, "kind": rule.kind, "into": into}, f"  source of {into} · rule {rule.title}"


def _make_row(one: Standing) -> Row:
    paths = [show_path(path) for path in one.paths]
    state = one.state.value if isinstance(one.state, Drift) else one.state
    row = {
        "rule": one.rule.name,
        "kind": one.rule.kind,
        "paths": paths,
        "element": one.element or None,
        "sources": [_key(source) for source in one.sources],
        "is": state,
        "reason": one.reason or None,
    }
    what = _part(one.element, paths)
    made_of = ", ".join(map(printable, one.sources)) or _describe_origin(one.rule)
    why = f" ({one.reason})" if one.reason else ""
    return row, f"  {what}: {SAID.get(state, state)}{why} · from {made_of} · rule {one.rule.title}"


SAID = {
    "right": "right",
    "kept": "left as it is: the rule does not apply to it now",
    "waiting": "left as it is: the rule waits for a backfill",
    "nothing": "absent, as it should be",
}


def _describe_origin(rule: Rule) -> str:
    """Describe the origin of a value on an item that names no source."""
    if rule.source is rule.target:
        return "the item itself"
    return f"its {rule.source.name} items" if rule.find is not None else f"no {rule.source.name}: the item names none"


# ---------------------------------------------------------------- a record
def record_rows(file: Path, rules: Rules) -> Iterator[Row]:
    """The effects of each record in a file: a recording, an event, an on-failure object, or records alone.

    Raises:
        UserError: when the file or a record cannot be read.
    """
    recording = read(file, rules)
    for recorded in recording:
        yield from change_rows(recorded.change, rules)
    for table, count in recording.others.items():
        line = f"table {table}: {format_count(count, 'record')}, which no rule concerns"
        yield {"table": table, "records": count, "causes": None}, line


def change_rows(change: Change, rules: Rules) -> Iterator[Row]:
    """The effects of one record, each with its reason."""
    entity = rules.entity_of(change.key)
    names = list_changed_names(change.old, change.new) if change.old is not None and change.new is not None else ()
    of = f"entity {entity.name}" if entity else "matches no entity"
    changed = f" · {', '.join(names)} changed" if names else ""
    found = list_consequences(change, rules)
    what = change.event_name
    head = {"record": what, "item": _key(change.key), "entity": entity and entity.name, "changed": list(names)}
    yield {**head, "consequences": len(found)}, f"{what} {printable(change.key)}: {of}{changed}"
    for one in found:
        yield _consequence_row(one)
    if not found:
        why = "no rule concerns it" if entity is None else "no rule reads what changed"
        yield {"causes": None, "because": why}, f"  triggers nothing: {why}"


def _consequence_row(one: Consequence) -> Row:
    row: dict[str, Any] = {
        "rule": one.rule.name,
        "causes": one.does,
        "item": _key(one.subject),
        "because": list(one.because),
    }
    if one.does == "push":
        listed = one.rule.listed_entity
        does = f"checks each {listed.name} that refers to the item, by {_query(one)}"
        row["query"] = one.listing and {"table": one.listing.table, "index": one.listing.index}
    elif one.does == "effect":
        does = "calls a function" if one.rule.calls else f"{one.rule.kind}s it"
        if one.unsure:
            row["unsure"] = one.unsure
            does = f"reports {one.unsure}, and {'calls no function' if one.rule.calls else f'{does} all the same'}"
    else:
        does = f"checks {printable(one.subject)}"
        if one.part is not None:
            element = one.part.rule.label(one.part)
            row["element"] = element or None
            does += f", element {element}" if element else ""
    because = ", ".join(one.because)
    because = CAME_OR_WENT.get(because, f"{because} changed")
    return row, f"  {does} · because {because} · rule {one.rule.title}"


CAME_OR_WENT = {"it came": "the item was inserted", "it went": "the item was removed"}


def _query(one: Consequence) -> str:
    if one.listing is None:
        return "no Query: no item can refer to it"
    names = [name for name, _ in one.listing.conditions.equals]
    names += [one.listing.conditions.begins_with[0]] if one.listing.conditions.begins_with else []
    index = f"index {one.listing.index} of " if one.listing.index else ""
    return f"a Query of {index}table {one.listing.table} on {', '.join(names)}"


# ---------------------------------------------------------------- where it is used
def use_rows(key: ItemKey, rules: Rules, world: World) -> Iterator[Row]:
    """Every item that holds a value of an item, then the rules whose items nothing lists."""
    count = 0
    for use in find_uses(key, rules, world.store):
        count += 1
        yield _use_row(use, key)
    for rule in rules.rules.values():
        if rule.pull_only and rule.source is rules.entity_of(key):
            line = f"perhaps on items of {rule.target.name}, which nothing lists · rule {rule.title}"
            yield {"rule": rule.name, "kind": rule.kind, "unlisted": rule.target.name}, line
    yield (
        {"places": count},
        f"{format_count(count, 'item')} {'holds' if count == 1 else 'hold'} a value of {printable(key)}",
    )


def _use_row(use: UsePlace, asked: ItemKey) -> Row:
    paths = [show_path(path) for path in use.paths]
    row = {
        "rule": use.rule.name,
        "kind": use.rule.kind,
        "target": _key(use.target),
        "paths": paths,
        "element": use.element or None,
        "through": None if use.through == asked else _key(use.through),
    }
    what = _part(use.element, paths)
    through = "" if use.through == asked else f" · through {printable(use.through)}"
    return row, f"{printable(use.target)} {what}{through} · rule {use.rule.title}"


def _part(element: str, paths: list[str]) -> str:
    return f"element {element} of {', '.join(paths)}" if element else ", ".join(paths) or "the whole item"


def _into(rule: Rule) -> str:
    if rule.copies:
        return ", ".join(f"{rule.target.name}.{show_path(path)}" for path in rule.copies)
    return f"{rule.target.name} items" if isinstance(rule, PartRule) else f"what rule {rule.title} does"


def _key(key: ItemKey) -> dict[str, Any]:
    return {"table": key.table, "key": show_key(key)}
