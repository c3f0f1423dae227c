"""Texts made of an item's attributes, of literals and of values at the end of paths; keys by a template; hierarchies.

A text joins what is there, so each part becomes an attribute of the item: a literal is a derived attribute without
fields, a value at the end of a path is copied onto the item.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from sync_rules.model.values import Path, show_path
from tests.peers import chains, gathers, ways
from tests.peers.builder import Builder, Target, UnsupportedError, path_of
from tests.peers.scenarios import ABSENT

LITERALS: Final = ("lit", "literal", "text", "const", "constant", "value", "string")
JOINED: Final = ("sep", "order", "distinct")  # of a part that is the values of many items
STANDS: Final = ("missing", "default", "empty")
FIELD: Final = re.compile(r"\{([^{}|]+)((?:\|[^{}|]+)*)\}")
FORMATS: Final = {"upper": "upper", "lower": "lower", "nospace": "nospace", "upcase": "upper", "downcase": "lower"}
PADDED: Final = re.compile(r"(pad|shard)[(:]?(\d+)\)?")


def text(builder: Builder, into: Target, rule: Mapping[str, Any]) -> None:
    """Parts that are there, joined. Raises UnsupportedError."""
    if unknown := rule.keys() - {"table", "attr", "text", "sep", *STANDS}:
        raise UnsupportedError(f"text with {', '.join(sorted(map(str, unknown)))}")
    separator = rule.get("sep") or ""
    fields = [show_path(_part(builder, into, part, separator)) for part in rule["text"]]
    derived = {"derive": show_path((into[0], *into[1])), "join": fields, "separator": separator}
    builder.rule(into, derived | stands(rule))


def stands(rule: Mapping[str, Any]) -> dict[str, Any]:
    """The value for what is missing, as an option of ours."""
    found = next((rule[word] for word in STANDS if word in rule), ABSENT)
    return {} if isinstance(found, str) and found == ABSENT else {"default": found}


def _part(builder: Builder, into: Target, part: Any, separator: str) -> Path:
    """The attribute of the item that holds a part."""
    if isinstance(part, Mapping) and len(part) == 1 and (words := [word for word in LITERALS if word in part]):
        part = part[words[0]]
    if isinstance(part, str | int | float):
        return _literal(builder, into[0], str(part))
    if not isinstance(part, Mapping):
        raise UnsupportedError(f"a text's part that is a {type(part).__name__}")
    if "copy" in part:
        part = {**part["copy"], **{word: value for word, value in part.items() if word != "copy"}}
    if "agg" not in part and ("attr" not in part or part.keys() - {"attr", "path", "where", *JOINED, *STANDS}):
        raise UnsupportedError(f"a text's part of {', '.join(sorted(map(str, part)))}")
    if not {"agg", "path"} & part.keys() and not stands(part):
        return path_of(part["attr"])
    helper = builder.helper(into[0], ("part", repr(part)), (*into[1], "part"))
    _made(builder, (into[0], helper), part, separator)
    return helper


def _made(builder: Builder, into: Target, part: Mapping[str, Any], separator: str) -> None:
    """The rules that make a part which is not on the item already."""
    table, helper = into
    if "agg" in part:
        gathers.gather(builder, into, {"table": table, "attr": show_path(helper), **part})
        return
    way = ways.read(builder, table, part.get("path") or [], part.get("where"))
    if all(hop.forward for hop in way.hops):
        chains.follow(builder, into, way, path_of(part["attr"]), **stands(part))
        return
    joined = helper if not stands(part) else builder.helper(table, ("joined", repr(part)), (*helper, "joined"))
    what = gathers.Gathered(
        "join",
        path_of(part["attr"]),
        order=part.get("order"),
        separator=part.get("sep", separator),
        distinct=bool(part.get("distinct")),
    )
    gathers.make(builder, (table, joined), way, what)
    if joined != helper:
        ways.copy(builder, into, (), joined, **stands(part))


def _literal(builder: Builder, table: str, said: str) -> Path:
    """The helper that holds a literal, on every item of a table."""
    if "{" in said or "}" in said or not said:
        raise UnsupportedError(f"a literal like {said!r}")
    helper = builder.helper(table, ("literal", said), ("literal", "text"))
    builder.rule((table, helper), {"derive": show_path((table, *helper)), "as": said})
    return helper


# ---------------------------------------------------------------- keys
def key(builder: Builder, into: Target, rule: Mapping[str, Any]) -> None:
    """A key by a template: whole, or absent. Raises UnsupportedError."""
    if unknown := rule.keys() - {"table", "attr", "key", *STANDS}:
        raise UnsupportedError(f"key with {', '.join(sorted(map(str, unknown)))}")
    formula = FIELD.sub(lambda found: _field(found[1], found[2]), rule["key"])
    builder.rule(into, {"derive": show_path((into[0], *into[1])), "as": formula, **stands(rule)})


def _field(name: str, formats: str) -> str:
    said = [_format(one.strip()) for one in formats.split("|")[1:]]
    return "{" + ":".join([show_path(path_of(name.strip())), *said]) + "}"


def _format(said: str) -> str:
    if said in FORMATS:
        return FORMATS[said]
    if padded := PADDED.fullmatch(said):
        return f"{padded[1]}({padded[2]})"
    raise UnsupportedError(f"a key's format {said!r}")


# ---------------------------------------------------------------- hierarchies
def tree(builder: Builder, into: Target, rule: Mapping[str, Any]) -> None:
    """The way from the root, by ids or by names. Raises UnsupportedError."""
    said, table = rule["tree"], into[0]
    if unknown := said.keys() - {"parent", "name", "sep", "lead", "tail"}:
        raise UnsupportedError(f"tree with {', '.join(sorted(map(str, unknown)))}")
    identity, parent = builder.id_of(table), path_of(said["parent"])
    parent = builder.lifted(table, parent)
    builder.lists_by(table, parent[0], builder.keys[table][identity])
    lead, tail = said.get("lead") or "", said.get("tail") or ""
    around = bool(lead or tail)
    way = builder.helper(table, ("tree", repr(said)), (*into[1], "way")) if around else into[1]
    rule = {
        "path": show_path((table, *way)),
        "parent": show_path(parent),
        "separator": said.get("sep", "/"),
        "on_delete": "clear",
    }
    if said.get("name", identity) != identity:
        ids = builder.helper(table, ("tree ids", repr(said)), (*into[1], "ids"))
        rule |= {"by": show_path(path_of(said["name"])), "ids": show_path(ids)}
    builder.rule((table, way), rule)
    if around:
        formula = f"{lead}{{{show_path(way)}}}{tail}"
        builder.rule(into, {"derive": show_path((table, *into[1])), "as": formula})
