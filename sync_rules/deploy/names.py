"""Checks that each logical id that the rules file needs is unique in the template.

CloudFormation has one name space for parameters, resources and the resources that SAM adds. A name that would come
twice is an error with the line of the rules file and the present owner of the name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from sync_rules.deploy import resources
from sync_rules.deploy.alarms import alarm_id
from sync_rules.deploy.deployment import Deployment
from sync_rules.deploy.handwritten import at, made_by_sam
from sync_rules.deploy.measures import MEASURES, Of, subjects
from sync_rules.model.errors import UserError

ENVIRONMENT = ("Globals", "Function", "Environment", "Variables")
ITSELF = "the template itself"


def require_distinct(
    whole: Mapping[str, Any], generated: Iterable[str], deployment: Deployment, rules_file: Path, template: Path
) -> None:
    """Refuse names that come twice, given the hand-written part and the ids of the generated resources.

    Raises:
        UserError: with the table, the rule or the variable, its line, and the present owner of the name.
    """
    wanted = [*wanted_ids(deployment)]
    theirs = {name for name, _, _ in wanted}
    own = chain(
        whole.get("Parameters") or {},
        whole.get("Conditions") or {},
        *((name, *made_by_sam(name, resource)) for name, resource in (whole.get("Resources") or {}).items()),
        (name for name in generated if name not in theirs),
    )
    holders = dict.fromkeys(own, (ITSELF, 0))
    for name, who, line in wanted:
        other, other_line = holders.setdefault(name, (who, line))
        if (other, other_line) != (who, line):
            raise _clash(f"{rules_file}:{line}: {who} would be {name} in {template}", other, other_line)
    for variable in deployment.variables:
        if variable.name in {*(at(whole, *ENVIRONMENT) or {}), resources.RULES_DIGEST, resources.VERSION}:
            name = f"{rules_file}:{variable.line}: variable {variable.name}"
            raise _clash(f"{name} would be given to the functions of {template}", ITSELF, 0)


def wanted_ids(deployment: Deployment) -> Iterator[tuple[str, str, int]]:
    """The ids that the rules file needs: each with the part that needs it, and its line (0: not known)."""
    for variable in deployment.variables:
        yield variable.parameter, f"variable {variable.name}", variable.line
    for table in deployment.rules.streamed_tables:
        who, line = f"table {table.name}", deployment.lines.get(("tables", table.name), 0)
        yield resources.stream_parameter(table), who, line
        yield resources.mapping_id(table), who, line
        if not resources.is_elsewhere(table):
            yield resources.table_id(table), who, line
            yield resources.condition_id(table), who, line
    for bucket, title in resources.archive_buckets(deployment).items():
        own, line = resources.bucket_id(bucket), deployment.lines.get(("rules", title), 0)
        for name in (own, f"{own}Policy", resources.days_parameter(bucket), f"Creates{own}", f"Expires{own}"):
            yield name, f"rule {title}", line
    for measure in MEASURES:
        if measure.of in (Of.RULE, Of.KEPT, Of.MAPPING):
            for subject in subjects(deployment, measure):
                kind, _, name = subject.title.partition(" ")
                yield alarm_id(measure, subject), subject.title, deployment.lines.get((f"{kind}s", name), 0)


def _clash(begun: str, other: str, line: int) -> UserError:
    known = f"{other} (line {line})" if line else other
    return UserError(f"{begun}, and {known} has that name: rename it (a table keeps its name in DynamoDB under `name`)")
