"""Prints the permissions of each function, as deployed, and the rules that need them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sync_rules.deploy.deployment import Deployment
from sync_rules.deploy.roles import Statement, statements, text_of

PIPELINE = "the pipeline"  # stands for a rule where the pipeline itself needs a permission


def lines(deployment: Deployment, *, explain: bool) -> Iterator[str]:
    """The statements of each role; with `explain`, the reasons below each resource."""
    for role, some in statements(deployment).items():
        yield role
        for statement in some:
            yield f"  {statement.sid}: {', '.join(statement.actions)}"
            for resource in statement.resources:
                yield f"    {shown(resource)}"
                yield from _reasons(statement, resource) if explain else ()
        yield ""


def _reasons(statement: Statement, resource: Any) -> Iterator[str]:
    """One line for each reason to use a resource: the rule, why, and the actions."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for need in statement.needs:
        if text_of(need.resource) == text_of(resource):
            actions = reasons.setdefault((need.rule or PIPELINE, need.why), [])
            actions += [] if need.action in actions else [need.action]
    for (who, why), actions in reasons.items():
        yield f"      {who}: {why} ({', '.join(action.partition(':')[2] for action in actions)})"


def shown(resource: Any) -> str:
    """A resource in a few words: the name of a table, not its whole ARN."""
    match resource:
        case {"Fn::Sub": str(text)}:
            name = text.partition(":table/")[2] or text.partition(":s3:::")[2] or text
            return f"{'table' if ':table/' in text else 'objects'} {name.replace('.Arn}', '}')}"
        case {"Fn::If": [_, {"Fn::GetAtt": [table, _]}, _]}:
            return f"stream of {str(table).removesuffix('Table')}"
        case {"Fn::GetAtt": [name, _]}:
            return str(name)
    return "any" if resource == "*" else str(resource)
