"""`where`: a JMESPath expression that decides whether a rule speaks of a source and its target.

Invariant: an expression only sees the paths that it names, so exactly these must be watched. Bare names are
attributes of the target (the item the copy is written on); the source is reached by its entity's name, `user.active`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import jmespath
from jmespath.exceptions import JMESPathError

from sync_rules.model.entities import Entity
from sync_rules.model.errors import UserError
from sync_rules.model.python_values import jmespath_value
from sync_rules.model.values import Item, Path

STEPS = (
    "index_expression", "projection", "filter_projection", "value_projection", "flatten", "pipe", "slice",
)  # fmt: skip

# For errors at compile time: a function loads compiled rules and never needs these.
OUTSIDE_QUOTES = r"'[^']*'|`[^`]*`|\"[^\"]*\""
SINGLE_EQUALS = r"(?<![=!<>])=(?!=)"
BARE_NUMBER = r"(?:[=<>]\s*-?\d)|(?:(?<![\w.\[])\d+\s*[=<>!])"
SQL_WORD = r"(?i)\b(and|or|not)\b"


@dataclass(frozen=True)
class Where:
    """A compiled condition. `source_paths` and `target_paths` are the top-level attributes it reads of each item."""

    text: str
    source_name: str
    source_paths: tuple[Path, ...]
    target_paths: tuple[Path, ...]

    @cached_property
    def paths(self) -> tuple[Path, ...]:
        """The fields that a condition over one item reads: it may name them by the item's entity or without."""
        return (*self.source_paths, *self.target_paths)

    @cached_property
    def _compiled(self) -> Any:
        return jmespath.compile(self.text)

    def holds_for(self, item: Item, entity: Entity) -> bool:
        """True if a condition over one item, of this entity, holds."""
        view = entity.view(item, self.paths)
        return self.holds(view, view)

    def holds(self, source: Item, target: Item) -> bool:
        """True if the condition holds for this pair. The false values of JMESPath (null, "", [], {}) are false."""
        seen: dict[str, Any] = {name: jmespath_value(target[name]) for (name,) in self.target_paths if name in target}
        if self.source_paths:
            seen[self.source_name] = {
                name: jmespath_value(source[name]) for (name,) in self.source_paths if name in source
            }
        try:
            found = self._compiled.search(seen)
        except (JMESPathError, TypeError, ValueError, ArithmeticError):
            return False  # such as length() of a missing attribute, or text < number: the condition does not hold
        return not (found is None or found is False or found in ("", [], {}))


def compile_where(text: str, source_name: str) -> Where:
    """Compile a `where` of a rule whose source entity has the given name.

    Raises:
        UserError: when it is not JMESPath, reads `@`, or reads the source without naming an attribute.
    """
    try:
        parsed = jmespath.compile(text).parsed
    except JMESPathError as error:
        first = str(error).splitlines()[0].removeprefix("Bad jmespath expression: ").rstrip(":")
        raise UserError(f"{text!r} is not a JMESPath expression: {first}{_cure(text)}") from error
    source: dict[Path, None] = {}
    target: dict[Path, None] = {}
    for names in _roots(cast("dict[str, Any]", parsed)):
        if not names:
            raise UserError(f"{text!r} reads the whole item: name the attributes that decide")
        if names[0] != source_name:
            target[names[:1]] = None
        elif len(names) == 1:
            raise UserError(f"{text!r} reads all of {source_name!r}: name an attribute, such as {source_name}.active")
        else:
            source[names[1:2]] = None
    return Where(text, source_name, tuple(source), tuple(target))


def _cure(text: str) -> str:
    """The cures of the most common mistakes in JMESPath."""
    bare = re.sub(OUTSIDE_QUOTES, " ", text)
    cures = []
    if re.search(SINGLE_EQUALS, bare):
        cures.append("equals is ==, and text stands in single quotes: status == 'OPEN'")
    if re.search(BARE_NUMBER, bare):
        cures.append("a number stands in backticks, such as total > `100`")
    if re.search(SQL_WORD, bare):
        cures.append("and, or, not are &&, ||, !")
    return f". In JMESPath, {'; '.join(cures)}" if cures else ""


def _roots(node: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """The names each path of the expression starts with, read off JMESPath's syntax tree; () stands for `@`."""
    kind, children = node["type"], node["children"]
    leading = _leading_names(node)
    if leading is not None:
        yield leading[0]
    elif kind in ("current", "identity"):
        yield ()
    elif kind in (*STEPS, "subexpression"):  # what follows the first part reads that part, not the item
        yield from _roots(children[0])
    else:  # comparators, and, or, not, functions, multi-selects: each part stands alone; literals read nothing
        for child in children:
            yield from _roots(child)


def _leading_names(node: dict[str, Any]) -> tuple[tuple[str, ...], bool] | None:
    """The attribute names a path starts with and whether they are all of it; None when it is not a path of names."""
    kind, children = node["type"], node["children"]
    if kind == "field":
        return (node["value"],), True
    if kind in STEPS:
        first = _leading_names(children[0])
        return first and (first[0], False)
    if kind != "subexpression":
        return None
    names: tuple[str, ...] = ()
    for child in children:
        part = _leading_names(child)
        if part is None:
            return (names, False) if names else None
        names += part[0]
        if not part[1]:
            return names, False
    return names, True
