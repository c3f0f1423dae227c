"""`default`: values that a rules file gives, as DynamoDB has them.

Invariant: a default is the value in the file, digit for digit. A value that DynamoDB could not hold at its place is
reported. Sets and binary values cannot be written in a rules file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel

from sync_rules.language.compiler import PATH_LEVELS_MAX, RuleCompiler
from sync_rules.language.yaml_source import KeyPath, name_type
from sync_rules.model.entities import Entity
from sync_rules.model.errors import UserError
from sync_rules.model.numbers import normalize_number
from sync_rules.model.python_values import make_raw_value
from sync_rules.model.sizes import ITEM_MAX_BYTES, count_value_bytes, find_index_key_limits
from sync_rules.model.suggest import explain_unknown_name
from sync_rules.model.templates import is_possible
from sync_rules.model.values import TYPES, AttributeValue, Path, show_path

OPTION: Final = "default"
PLAIN: Final = re.compile(r"-?(0|[1-9]\d*)?(\.\d*)?([eE][-+]?\d+)?|[-+]?\.(inf|nan)", re.IGNORECASE)
NUMBERS: Final = "write a number of at most 38 digits, or text in quotes"


def has_default(form: BaseModel) -> bool:
    """True if a rule has the option `default`, even if its value is null."""
    return OPTION in form.model_fields_set


def compile_default(
    compiler: RuleCompiler, given: Any, entity: Entity, path: Path, option: KeyPath = (OPTION,)
) -> dict[Path, AttributeValue]:
    """Compile a default, by its path. Return nothing if the path cannot hold the value, which is reported."""
    value = _compile_value(compiler, given, option, PATH_LEVELS_MAX - len(path))
    if value is None or not _is_holdable(compiler, value, entity, path, option):
        return {}
    return {path: value}


def compile_defaults(
    compiler: RuleCompiler, given: Any, entity: Entity, paths: Mapping[Path, Path], what: str = "copy"
) -> dict[Path, AttributeValue]:
    """Compile defaults, by their paths. `paths` maps the names in the file to these paths; `what` is the word for the
    names.
    """
    names = [show_path(name) for name in paths]
    if not isinstance(given, dict) or not given:
        found, value = ("an empty map", None) if given == {} else (name_type(given), given)
        message = f"expected a map with a value for one {what} or more, found {found}"
        quoted, shown = (json.dumps(one, ensure_ascii=False) for one in (names[0], value))
        name_shown = quoted if '"' in names[0] else names[0]
        compiler.add("SR104", OPTION, message, f"default: {{{name_shown}: {shown}}}")
        return {}
    values: dict[Path, AttributeValue] = {}
    for text, value in given.items():
        location = compiler.at_key(OPTION, text)
        name = compiler.path(text, location)
        if name is not None and name not in paths:
            compiler.add(
                "SR102", location, explain_unknown_name(what, text, names, "this rule"), f"give a default to a {what}"
            )
        elif name is not None:
            values |= compile_default(compiler, value, entity, paths[name], (OPTION, text))
    return values


def _compile_value(compiler: RuleCompiler, given: Any, at: KeyPath, levels: int) -> AttributeValue | None:
    """A value of the file; None, with the problem reported, if DynamoDB has none like it. `levels` may be inside it."""
    location = compiler.at(*at)
    if isinstance(given, dict | list):
        if not levels:
            message = f"a value of more than {PATH_LEVELS_MAX} levels with its path: DynamoDB holds no more"
            compiler.add("SR106", location, message, "use a value that is less deep")
            return None
        if "" in given and isinstance(given, dict):
            compiler.add("SR106", location, "an empty name in a map: DynamoDB refuses it", "give the name a letter")
            return None
        names = given if isinstance(given, dict) else range(len(given))
        inner = {name: _compile_value(compiler, given[name], (*at, name), levels - 1) for name in names}
        values = {name: value for name, value in inner.items() if value is not None}
        if len(values) < len(inner):
            return None
        return {"M": values} if isinstance(given, dict) else {"L": [*values.values()]}
    text = compiler.known.document.numbers.get(("rules", compiler.name, *at), "")
    if text and not PLAIN.fullmatch(text):
        read_as = text.replace("_", "") if isinstance(given, float) else str(given)
        message, cure = f"{text} is the number {read_as}", f'write {read_as}, or "{text}" if text is meant'
        compiler.add("SR460", location, message, cure)
    if isinstance(given, float):
        text = text.replace("_", "")
        number = normalize_number(text)
        if number is not None:
            return {"N": number}
        compiler.add("SR106", location, f"expected a number that DynamoDB can hold, found {text}", NUMBERS)
        return None
    try:
        return make_raw_value(given)
    except UserError:
        compiler.add("SR106", location, f"expected a number that DynamoDB can hold, found {given}", NUMBERS)
        return None


def _is_holdable(compiler: RuleCompiler, value: AttributeValue, entity: Entity, path: Path, at: KeyPath) -> bool:
    """True if a path can hold a value; in the key of an index, a value of its type and size."""
    location = compiler.at(*at)
    if count_value_bytes(value) > ITEM_MAX_BYTES:
        compiler.add("SR106", location, "a value of more than 400 KB: no item can hold it", "use a smaller value")
        return False
    limit = find_index_key_limits(entity.table).get(path[0]) if len(path) == 1 else None
    if limit is None:
        return True
    wanted, most = limit
    what, found = f"{entity.name}.{show_path(path)}", next(iter(value))
    if wanted not in value:
        message = f"{what} is part of the key of an index, of type {wanted}: a {TYPES[found]} does not fit"
        cure = "write it in quotes" if (wanted, found) == ("S", "N") else f"give it a default that is a {TYPES[wanted]}"
        cure = cure if wanted != "B" else "remove it: binary values cannot be written here"
        compiler.add("SR312", location, message, cure)
        return False
    if not is_possible(value, most):
        message = (
            f"{what} is part of the key of an index: expected 1 to {most:,} bytes, found {count_value_bytes(value):,}"
        )
        compiler.add("SR106", location, message, "use a text of that size")
        return False
    return True
