"""`where`: a JMESPath expression that decides whether a rule applies to a source and its target.

Invariant: an expression only sees the paths that it names, so exactly these must be watched. Bare names are attributes
of the target (the item the copy is written on); the source is reached by its entity's name, `user.active`.

A condition that cannot be evaluated never counts as false: it raises an error, which is reported for the item.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, cast

import jmespath
from jmespath.exceptions import JMESPathError, JMESPathTypeError
from jmespath.functions import TYPES_MAP, Functions, signature
from jmespath.visitor import Options, TreeInterpreter

from sync_rules.model.entities import Entity
from sync_rules.model.errors import ConditionError, UserError
from sync_rules.model.python_values import make_jmespath_value
from sync_rules.model.values import Item, Path

STEPS = (
    "index_expression", "projection", "filter_projection", "value_projection", "flatten", "pipe", "slice",
)  # fmt: skip

WHERE_FAILED: Final = "WhereFailed"  # begins the reason of a failure record
SAID: Final = {"unknown": "binary", "bytes": "binary", "null": "nothing"}  # types of JMESPath in other words
WHERE_MAX_LEVELS: Final = 100  # levels of an expression: evaluating one takes some frames of Python's stack for each
WHOLE: Final = "close each quote and bracket, and write both sides of each comparison, such as status == 'OPEN'"
WITH_A_LIST: Final = """for many values, compare with a list, such as contains(`["OPEN", "PAID"]`, status)"""


class _Functions(Functions):
    @signature({"types": ["array", "string"]}, {"types": []})
    def _func_contains(self, subject: Any, search: Any) -> bool:
        """JMESPath's own raises for a text that is searched for a number: it contains none."""
        if isinstance(subject, str):
            return isinstance(search, str) and search in subject
        return any(TreeInterpreter.COMPARATOR_FUNC["eq"](one, search) for one in subject)


def _find_order_kind(value: Any) -> str:
    """The kind of values among which an order is defined; "" for none."""
    return "text" if isinstance(value, str) else "number" if type(value) in (int, float) else ""


class _Interpreter(TreeInterpreter):
    """Evaluates JMESPath: what cannot be compared compares as null by itself, and empty binary is as false as text."""

    def visit_comparator(self, node: Any, value: Any) -> Any:
        left, right = (self.visit(child, value) for child in node["children"])
        if node["value"] in ("eq", "ne") or _find_order_kind(left) == _find_order_kind(right) != "":
            return self.COMPARATOR_FUNC[node["value"]](left, right)
        return None

    def visit_not_expression(self, node: Any, value: Any) -> bool:
        return self._is_false(self.visit(node["children"][0], value))

    def _is_false(self, value: Any) -> bool:  # asked by JMESPath's own && and ||
        return value is None or value is False or value in ("", b"", [], {})

    def holds(self, tree: Any, seen: Mapping[str, Any]) -> bool:
        """True if what an expression finds counts as true."""
        return not self._is_false(self.visit(tree, seen))


_INTERPRETER: Final = _Interpreter(Options(custom_functions=_Functions()))


@dataclass(frozen=True)
class Where:
    """A compiled condition. `source_paths` and `target_paths` are the top-level attributes that it reads of each
    item.
    """

    text: str
    source_name: str
    source_paths: tuple[Path, ...]
    target_paths: tuple[Path, ...]

    @cached_property
    def paths(self) -> tuple[Path, ...]:
        """The fields that a condition over one item reads. It may name them with or without the item's entity."""
        return (*self.source_paths, *self.target_paths)

    @cached_property
    def _tree(self) -> Any:
        return jmespath.compile(self.text).parsed

    def holds_for(self, item: Item, entity: Entity) -> bool:
        view = entity.view(item, self.paths)
        return self.holds(view, view)

    def holds(self, source: Item, target: Item) -> bool:
        """True if the condition holds for this pair. The false values of JMESPath (null, "", [], {}) are false, and so
        is empty binary.

        Raises:
            ConditionError: when it cannot be evaluated, such as length() of an attribute that is missing.
        """
        try:
            seen = _select_attributes(target, self.target_paths)
            if self.source_paths:
                seen[self.source_name] = _select_attributes(source, self.source_paths)
            return _INTERPRETER.holds(self._tree, seen)
        except JMESPathTypeError as error:
            found = TYPES_MAP.get(error.actual_type, error.actual_type)
            raise ConditionError(f"{WHERE_FAILED}: {error.function_name}() of {SAID.get(found, found)}") from None
        except (ValueError, TypeError, ArithmeticError, LookupError, AttributeError, RecursionError) as error:
            raise ConditionError(f"{WHERE_FAILED}: {type(error).__name__}") from None


def _select_attributes(item: Item, paths: tuple[Path, ...]) -> dict[str, Any]:
    return {name: make_jmespath_value(item[name]) for (name,) in paths if name in item}


def compile_where(text: str, source_name: str, types: Mapping[str, str] | None = None) -> Where:
    """Compile a `where` of a rule whose source entity has the given name. `types` are those of DynamoDB, by the name of
    the attribute, as far as they are known: a comparison that can never match is refused.

    Raises:
        UserError: when it is not JMESPath, calls a function that JMESPath has not, or not with such arguments, compares
            what can never match, reads `@`, or reads the source without naming an attribute.
    """
    from sync_rules.model import where_check  # noqa: PLC0415 - a function loads compiled rules and never needs it

    try:
        parsed = cast("dict[str, Any]", jmespath.compile(text).parsed)
    except JMESPathError as error:
        first = str(error).splitlines()[0].removeprefix("Bad jmespath expression: ").rstrip(":")
        cure = where_check.suggest_cure(text) or WHOLE
        raise UserError(f"{text!r} is not a JMESPath expression: {first}", cure) from error
    except RecursionError:
        parsed = None
    except ValueError as error:  # such as a number of 5,000 digits
        raise UserError(f"`where` is not a JMESPath expression: {error}", "write a shorter number") from error
    if parsed is None or where_check.count_levels(parsed) > WHERE_MAX_LEVELS:
        raise UserError(f"`where` nests more than {WHERE_MAX_LEVELS} levels", WITH_A_LIST)
    if wrong := where_check.find_mistake(parsed, types or {}):
        raise UserError(f"{text!r}: {wrong.found}", wrong.cure)
    source: dict[Path, None] = {}
    target: dict[Path, None] = {}
    for names in _list_roots(parsed):
        if not names:
            raise UserError(f"{text!r} reads the whole item", "name the attributes that decide")
        if names[0] != source_name:
            target[names[:1]] = None
        elif len(names) == 1:
            raise UserError(
                f"{text!r} reads all of {source_name!r}", f"name an attribute, such as {source_name}.active"
            )
        else:
            source[names[1:2]] = None
    return Where(text, source_name, tuple(source), tuple(target))


def _list_roots(node: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """The names each path of the expression starts with, read off JMESPath's syntax tree; () stands for `@`."""
    kind, children = node["type"], node["children"]
    leading = _find_leading_names(node)
    if leading is not None:
        yield leading[0]
    elif kind in ("current", "identity"):
        yield ()
    elif kind in (*STEPS, "subexpression"):  # what follows the first part reads that part, not the item
        yield from _list_roots(children[0])
    else:  # comparators, and, or, not, functions, multi-selects: each part stands alone; literals read nothing
        for child in children:
            yield from _list_roots(child)


def _find_leading_names(node: dict[str, Any]) -> tuple[tuple[str, ...], bool] | None:
    """The attribute names a path starts with and whether they are all of it; None when it is not a path of names."""
    kind, children = node["type"], node["children"]
    if kind == "field":
        return (node["value"],), True
    if kind in STEPS:
        first = _find_leading_names(children[0])
        return first and (first[0], False)
    if kind != "subexpression":
        return None
    names: tuple[str, ...] = ()
    for child in children:
        part = _find_leading_names(child)
        if part is None:  # such as a function of what the names lead to
            return (names, False) if names else None
        names += part[0]
        if not part[1]:
            return names, False
    return names, True
