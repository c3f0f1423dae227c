"""A stream handler from a folder, on tables of ours: its environment, its modules, and boto3's resource.

Invariant: the code of the handler runs as it is. Powertools' loggers and tracers do nothing, and a module that the folder
lacks has only the facts that its application states. Any request but UpdateItem fails.
"""

from __future__ import annotations

import ast
import importlib
import io
import re
import sys
import tokenize
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from decimal import Decimal
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest import mock

from boto3.dynamodb.types import TypeSerializer

from sync_rules.model.values import AttributeValue, Item
from sync_rules.model.writes import Put
from tests.originals.tables import Gate

VERB = re.compile(r"\b(SET|ADD|REMOVE|DELETE)\b")
COMMA = re.compile(r",(?![^(]*\))")
IF_NOT_EXISTS = re.compile(r"if_not_exists\(\s*([#\w]+)\s*,\s*(:\w+)\s*\)")
OPERAND = r"if_not_exists\([^)]*\)|[#:]?\w+"
CLAUSES = {
    "SET": re.compile(rf"(?P<name>#?\w+)\s*=\s*(?P<left>{OPERAND})(\s*(?P<sign>[+-])\s*(?P<right>{OPERAND}))?"),
    "ADD": re.compile(r"(?P<name>#?\w+)\s+(?P<value>:\w+)"),
}


class Nothing:
    """An object that does nothing: each attribute is itself, and as a decorator it returns the function."""

    def __getattr__(self, name: str) -> Nothing:
        return self

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return arguments[0] if arguments and callable(arguments[0]) else self


class Resource:
    """boto3's resource for tables that have one request, `update_item`. `gate` has the tables of the run."""

    gate: Gate

    def Table(self, name: str) -> SimpleNamespace:  # noqa: N802 -- boto3's name
        return SimpleNamespace(update_item=partial(self._update_item, name))

    def _update_item(
        self,
        table: str,
        *,
        Key: Mapping[str, Any],  # noqa: N803
        UpdateExpression: str,  # noqa: N803
        ExpressionAttributeValues: Mapping[str, Any],  # noqa: N803
        ExpressionAttributeNames: Mapping[str, str] | None = None,  # noqa: N803
    ) -> dict[str, Any]:
        key = self.gate.make_key(table, to_raw(Key))
        before = self.gate.memory.item(key) or key.attributes()
        after = update(before, UpdateExpression, ExpressionAttributeNames or {}, to_raw(ExpressionAttributeValues))
        self.gate.write(Put(key, after, ()))
        return {}


def to_raw(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: TypeSerializer().serialize(value) for name, value in values.items()}


def update(item: Item, expression: str, names: Mapping[str, str], values: Item) -> Item:
    """The item after an update expression of SET and ADD on numbers. A test compares it with moto, which is slow.

    Raises:
        ValueError: for an expression of another form.
    """

    def find(operand: str) -> AttributeValue:
        missing = IF_NOT_EXISTS.fullmatch(operand)
        if missing:
            return item.get(names.get(missing[1], missing[1])) or values[missing[2]]
        return values[operand] if operand.startswith(":") else item[names.get(operand, operand)]

    def add(left: AttributeValue, sign: str, right: AttributeValue) -> AttributeValue:
        other = Decimal(right["N"])
        return {"N": str(Decimal(left["N"]) + (other if sign == "+" else -other))}

    after = dict(item)
    _, *parts = VERB.split(expression.strip())
    for verb, clauses in zip(parts[::2], parts[1::2], strict=True):
        for clause in COMMA.split(clauses.strip()):
            form = CLAUSES[verb].fullmatch(clause.strip()) if verb in CLAUSES else None
            if form is None:
                raise ValueError(expression)
            name = names.get(form["name"], form["name"])
            if verb == "ADD":
                after[name] = add(item.get(name, {"N": "0"}), "+", values[form["value"]])
            else:
                after[name] = find(form["left"])
                if form["sign"]:
                    after[name] = add(after[name], form["sign"], find(form["right"]))
    return after


@contextmanager
def open_original(
    folder: Path, module: str, environment: Mapping[str, str], facts: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[Callable[[Any, Any], Any], Resource]]:
    """Import the handler of a folder, and give it with the resource that it writes to. `facts` are modules that it
    imports, each with its attributes.
    """
    resource = Resource()
    made = {name: ModuleType(name) for name in facts}
    for name, attributes in facts.items():
        vars(made[name]).update(attributes)
        made[name].__path__ = []
    before = set(sys.modules)
    with ExitStack() as stack:
        stack.enter_context(mock.patch.dict(sys.modules, made))
        stack.enter_context(mock.patch.dict("os.environ", environment))
        stack.enter_context(mock.patch("boto3.resource", return_value=resource))
        stack.enter_context(mock.patch.object(sys, "path", [str(folder), *sys.path]))
        stack.enter_context(mock.patch.object(sys, "dont_write_bytecode", True))
        importlib.invalidate_caches()
        yield importlib.import_module(module).lambda_handler, resource
        for name in set(sys.modules) - before:
            if str(folder) in str(getattr(sys.modules[name], "__file__", "")):
                del sys.modules[name]


def count_code_lines(text: str) -> int:
    """Count the lines of a module with code: no comments, no docstrings, no blank lines."""
    texts = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Expr) and is_text(node.value)]
    without = {line for node in texts for line in range(node.lineno, (node.end_lineno or 0) + 1)}
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    without |= {one.start[0] for one in tokens if one.type == tokenize.COMMENT and one.line.lstrip().startswith("#")}
    return sum(bool(line.strip()) for number, line in enumerate(text.splitlines(), 1) if number not in without)


def is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)
