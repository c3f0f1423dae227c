"""Write generated parts of a template as YAML: functions in short form, small maps and lists on one line.

Invariant: the same value always gives the same text, and reading the text gives the value back. Strings that YAML 1.1,
which CloudFormation reads, would not read as strings are quoted.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from copy import deepcopy
from functools import lru_cache
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq, TaggedScalar
from ruamel.yaml.constructor import SafeConstructor
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import ScalarNode, SequenceNode
from ruamel.yaml.scalarstring import DoubleQuotedScalarString, SingleQuotedScalarString
from ruamel.yaml.tag import Tag

from sync_rules.model.errors import UserError

ONE_LINE_MAX: Final = 90  # characters of Python's repr of a value on one line
CALLED_ONE_LINE_MAX: Final = 150  # the same for the argument of a function, whose short form is much shorter
PLAIN: Final = re.compile(r"[A-Za-z/_$(*][^\"'{}\[\],&#%@`|>!?\n\\]*")
PLAIN_ARGUMENT: Final = re.compile(r"[A-Za-z/$](?:[A-Za-z0-9_.:/*${}-]*[A-Za-z0-9_/*${}-])?")
WORDS: Final = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null", "*"})


def format_yaml(value: Mapping[str, Any], indent: int = 0) -> str:
    """Return a map as indented lines; "" for an empty map."""
    if not value:
        return ""
    yaml = YAML()
    yaml.width = 10_000  # a line is never broken where it means something else
    yaml.indent(mapping=2, sequence=4, offset=2)
    written = io.StringIO()
    yaml.dump(_make_map(value, top=True), written)
    return "".join(f"{' ' * indent}{line}\n" if line else "\n" for line in written.getvalue().splitlines())


def read_yaml(text: str, file: str) -> Any:
    """Read plain values; functions in short form get their long form.

    Raises:
        UserError: if it is not YAML.
    """
    try:
        return deepcopy(_parse(text))
    except YAMLError as error:
        raise UserError(f"{file}: not YAML: {' '.join(str(error).split())}") from error


@lru_cache(maxsize=8)  # a template takes 0.3 s, and is read three times while it is filled
def _parse(text: str) -> Any:
    yaml = YAML(typ="safe", pure=True)
    yaml.Constructor = _Constructor
    return yaml.load(text)


# ---------------------------------------------------------------- writing
def _make_map(value: Mapping[str, Any], *, top: bool = False) -> CommentedMap:
    made = CommentedMap((_make_key(key), _make_value(inner)) for key, inner in value.items())
    if not top and _is_short(value) and not any(_has_parts(inner) for inner in value.values()):
        made.fa.set_flow_style()
    return made


def _make_sequence(value: list[Any]) -> CommentedSeq:
    made = CommentedSeq(_make_value(inner) for inner in value)
    if _is_short(value) and not any(isinstance(inner, Mapping) and _find_function(inner) is None for inner in value):
        made.fa.set_flow_style()
    return made


def _make_value(value: Any) -> Any:
    if isinstance(value, Mapping):
        function = _find_function(value)
        return _make_map(value) if function is None else _make_function(*function)
    if isinstance(value, list | tuple):
        return _make_sequence(list(value))
    return _quote_text(value) if isinstance(value, str) else value


def _find_function(value: Mapping[str, Any]) -> tuple[str, Any] | None:
    if len(value) != 1:
        return None
    ((name, argument),) = value.items()
    if name in ("Ref", "Condition") and isinstance(argument, str):
        return f"!{name}", argument
    if not name.startswith("Fn::"):
        return None
    if name == "Fn::GetAtt" and not isinstance(argument, str):
        argument = ".".join(argument)
    return f"!{name.removeprefix('Fn::')}", argument


def _make_function(tag: str, argument: Any) -> Any:
    if isinstance(argument, str):
        return TaggedScalar(argument, _choose_style(argument), tag)
    made = _make_sequence(list(argument)) if isinstance(argument, list | tuple) else _make_map(argument)
    made.yaml_set_ctag(Tag(suffix=tag))
    if isinstance(made, CommentedSeq) and len(str(argument)) <= CALLED_ONE_LINE_MAX:
        made.fa.set_flow_style()
    return made


def _choose_style(text: str) -> str | None:
    """The quoting of a function's argument; None: unquoted, unless it is in a place where braces have a meaning."""
    if "\n" in text:
        return "|"
    if PLAIN_ARGUMENT.fullmatch(text) and text.lower() not in WORDS:
        return None
    return "'" if '"' in text else '"'


def _make_key(key: str) -> Any:
    return key if key.lower() not in WORDS and re.fullmatch(r"[A-Za-z][A-Za-z0-9_:.-]*", key) else _quote_text(key)


def _quote_text(text: str) -> Any:
    if PLAIN.fullmatch(text) and text.lower() not in WORDS and ": " not in text and text == text.strip():
        return text
    return SingleQuotedScalarString(text) if '"' in text else DoubleQuotedScalarString(text)


def _is_short(value: Any) -> bool:
    return len(str(value)) <= ONE_LINE_MAX and '"' not in str(value)


def _has_parts(value: Any) -> bool:
    """Tell whether a value contains maps or lists, other than those of functions."""
    if isinstance(value, Mapping):
        return _find_function(value) is None
    return isinstance(value, list) and any(isinstance(inner, Mapping | list) for inner in value)


# ---------------------------------------------------------------- reading
class _Constructor(SafeConstructor):
    """Builds plain values; a function in short form gets its long form."""

    def construct_function(self, suffix: str, node: Any) -> dict[str, Any]:
        name = suffix if suffix in ("Ref", "Condition") else f"Fn::{suffix}"
        if isinstance(node, ScalarNode):
            return {name: node.value.split(".", 1) if suffix == "GetAtt" else node.value}
        if isinstance(node, SequenceNode):
            return {name: self.construct_sequence(node, deep=True)}
        return {name: self.construct_mapping(node, deep=True)}


_Constructor.add_multi_constructor("!", _Constructor.construct_function)
