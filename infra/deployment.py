"""What is deployed: the rules of one file, with parameters of the template in place of the environment's variables.

Law: everything generated is computed from this and nothing else, so that the same rules file always gives the same
template. A CloudFormation function is a map with its one name, such as {"Ref": "ShopTable"}.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sync_rules.entities import Table
from sync_rules.errors import UserError
from sync_rules.rulefile import parse_rules, read_text
from sync_rules.rules import Rules
from sync_rules.variables import VARIABLE

WORD = re.compile(r"[A-Za-z0-9]+")


@dataclass(frozen=True)
class Variable:
    """A variable of the environment in a rules file. `mark` stands in its place in the names of the rules; `parameter`
    is the template's, which gives it to the functions.
    """

    name: str
    default: str
    mark: str
    parameter: str


@dataclass(frozen=True)
class Deployment:
    """The rules of one file. Names in `rules` may hold marks: what goes into a template goes through `text`."""

    rules: Rules
    variables: tuple[Variable, ...] = ()

    def text(self, text: str) -> Any:
        """A name as the template says it: with parameters where it holds marks."""
        filled = text
        for variable in self.variables:
            filled = filled.replace(variable.mark, f"${{{variable.parameter}}}")
        return text if filled == text else {"Fn::Sub": filled}

    def table_arn(self, table: Table, suffix: str = "") -> Any:
        """The ARN of a table, or with a suffix such as "/index/by_author" of what belongs to it."""
        name = table.physical_name + suffix
        if table.physical_name.startswith("arn:"):
            return self.text(name)
        whole = {"Fn::Sub": "arn:${AWS::Partition}:dynamodb:${AWS::Region}:${AWS::AccountId}:table/"}
        filled = self.text(name)
        return {"Fn::Sub": whole["Fn::Sub"] + (filled if isinstance(filled, str) else filled["Fn::Sub"])}


def logical(name: str) -> str:
    """A name as CloudFormation allows it for parameters and resources: `shop_table`, `SHOP_TABLE` -> ShopTable."""
    return "".join(word[0].upper() + (word[1:].lower() if word.isupper() else word[1:]) for word in WORD.findall(name))


def deployment_of(path: Path) -> Deployment:
    """The deployment of a rules file.

    Raises:
        UserError: when the rules are wrong, or two variables come to the same parameter.
    """
    text = read_text(path)
    variables: dict[str, Variable] = {}
    for match in VARIABLE.finditer(text):
        name, default = match[1], match[2] or ""
        found = variables.get(name)
        if found is None or not found.default:
            mark = found.mark if found else f"syncrulesvar{len(variables):03}x"
            variables[name] = Variable(name, default, mark, logical(name))
    of_parameter: dict[str, str] = {}
    for variable in variables.values():
        other = of_parameter.setdefault(variable.parameter, variable.name)
        if other != variable.name:
            raise UserError(
                f"{path}: variables {other} and {variable.name} would both be parameter {variable.parameter}"
            )
    rules = parse_rules(text, str(path), {variable.name: variable.mark for variable in variables.values()})
    return Deployment(rules, tuple(variables.values()))
