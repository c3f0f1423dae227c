"""Reads what is deployed: the rules of one file, with parameters of the template in place of environment variables.

Invariant: everything generated is computed from a `Deployment` alone, so the same rules file always gives the same
template. A CloudFormation function is a map with its one name, such as {"Ref": "ShopTable"}.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any, Final, Literal

from sync_rules.language.load import parse_rules, read_text
from sync_rules.language.problems import Problems
from sync_rules.language.variables import VARIABLE
from sync_rules.language.yaml_source import Document, read_document
from sync_rules.model.entities import Table
from sync_rules.model.errors import UserError
from sync_rules.rules.ruleset import Rules

Write = Literal["", "function", "url"]
WORD = re.compile(r"[A-Za-z0-9]+")
OF_VARIABLE: Final = "Variable"  # no resource has this suffix: parameters and resources share one name space


@dataclass(frozen=True)
class Variable:
    """An environment variable in a rules file. `mark` replaces it in the names of the rules. `parameter` is the
    template parameter that sets it for the functions. `line` is the line of its first use, or of the first use with
    a default.
    """

    name: str
    default: str
    mark: str
    parameter: str
    line: int


@dataclass(frozen=True)
class Deployment:
    """The rules of one file. Names in `rules` may contain marks, which `text` and `fill` replace. `lines` holds the
    first line of each table and rule: ("tables", "shop") -> 2. `write`: the stack has the write function, with or
    without a Function URL.
    """

    rules: Rules
    variables: tuple[Variable, ...] = ()
    lines: Mapping[tuple[str, str], int] = field(default_factory=dict)
    write: Write = ""

    def fill(self, text: str) -> str:
        """Return a name for use in Fn::Sub: with parameters in place of marks."""
        for variable in self.variables:
            text = text.replace(variable.mark, f"${{{variable.parameter}}}")
        return text

    def text(self, text: str) -> Any:
        """Return a name as a value of the template: Fn::Sub only if it contains marks."""
        filled = self.fill(text)
        return text if filled == text else {"Fn::Sub": filled}

    def table_arn(self, table: Table, suffix: str = "") -> Any:
        """Return the ARN of a table or, with a suffix such as "/index/by_author", of one of its indexes."""
        name = table.physical_name + suffix
        if table.physical_name.startswith("arn:"):
            return self.text(name)
        tables = "arn:${AWS::Partition}:dynamodb:${AWS::Region}:${AWS::AccountId}:table/"
        return {"Fn::Sub": tables + self.fill(name)}


def format_logical_id(name: str) -> str:
    """Return a name in the form that CloudFormation allows for parameters and resources: `shop_table` -> ShopTable."""
    return "".join(word[0].upper() + (word[1:].lower() if word.isupper() else word[1:]) for word in WORD.findall(name))


def read_deployment(path: Path) -> Deployment:
    """Read the deployment of a rules file.

    Raises:
        UserError: if the rules are wrong, or a variable has two defaults.
    """
    text = read_text(path)
    document = read_document(text, Problems()) or Document()  # `parse_rules` below reports its problems
    variables: dict[str, Variable] = {}
    for line, match in _find_variables(document):
        name, default = match[1], match[2] or ""
        found = variables.get(name)
        if found is None or not found.default:
            mark = found.mark if found else f"syncrulesvar{len(variables):03}x"
            variables[name] = Variable(name, default, mark, f"{format_logical_id(name)}{OF_VARIABLE}", line)
        elif default not in ("", found.default):
            raise UserError(
                f"{path}:{line}: variable {name} has the default {default!r}, and {found.default!r} in line"
                f" {found.line}: it is one parameter of the template, which has one default. Write the same in both, or"
                f" ${{{name}}} alone in one"
            )
    rules = parse_rules(text, str(path), {variable.name: variable.mark for variable in variables.values()})
    lines = {
        (section, name): document.key(section, name).line
        for section in ("tables", "rules")
        for name in document.names(section)
    }
    asked = (document.data.get("deploy") or {}).get("write", False)
    write: Write = "url" if asked == "url" else "function" if asked else ""
    return Deployment(rules, tuple(variables.values()), lines, write)


def _find_variables(document: Document) -> Iterator[tuple[int, re.Match[str]]]:
    """The variables in the values of a file, each with its line, in order; comments are left out."""
    for path, location in sorted(document.locations.items(), key=lambda one: (one[1].line, one[1].column)):
        value = reduce(lambda inner, step: inner[step], path, document.data)
        if isinstance(value, str):
            yield from ((location.line, match) for match in VARIABLE.finditer(value))
