"""From a deployment to the blocks of template.yaml, and from a template back to the rules file it is for.

Law: what is generated never stands in the way of what is written by hand, nor of itself: a name that comes twice is the
user's mistake, told before anything is written.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from infra import resources
from infra.alarms import alarm_resources
from infra.blocks import Written, inside, replaced
from infra.dashboard import dashboard_resource
from infra.deployment import Deployment, logical
from infra.roles import role_resources
from infra.yamltext import as_yaml, read_yaml
from sync_rules.errors import UserError

RULES_BLOCK: Final = "rules"

# The section of the template in which each block stands, and what is written into it.
BLOCKS: Final[Mapping[str, tuple[tuple[str, ...], Callable[[Deployment], dict[str, Any]]]]] = {
    "parameters": (("Parameters",), resources.parameters),
    "conditions": (("Conditions",), resources.conditions),
    "environment": (("Globals", "Function", "Environment", "Variables"), resources.environment),
    "streams": (("Resources", "StreamFunction", "Properties", "Events"), resources.streams),
    "tables": (("Resources",), resources.tables),
    "roles": (("Resources",), role_resources),
    "dashboard": (("Resources",), lambda deployment: {"Dashboard": dashboard_resource(deployment)}),
    "alarms": (("Resources",), alarm_resources),
}
RESOURCES_MAX: Final = 500  # https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html
PARAMETERS_MAX: Final = 200
NEAR: Final = 0.8  # of a limit
RESERVED: Final = ("AWS_", "LAMBDA_", "_")  # what names of a function's variables may not begin with


def written(text: str, deployment: Deployment, rules_file: Path, template: Path) -> str:
    """The template with its blocks written anew for this rules file.

    Raises:
        UserError: when a block is missing, or something generated has a name that is taken.
    """
    _require_deployable(deployment, rules_file)
    blanks: dict[str, Written] = dict.fromkeys((RULES_BLOCK, *BLOCKS), lambda _indent: "")
    fixed = read_yaml(replaced(text, blanks, str(template)), str(template))
    place = Path(os.path.relpath(rules_file.absolute(), template.absolute().parent)).as_posix()
    blocks: dict[str, Written] = {RULES_BLOCK: partial(as_yaml, {"SyncRules": {"Rules": place}})}
    taken = {section: {*(_at(fixed, section) or {})} for section, _ in BLOCKS.values()}
    for name, (section, generate) in BLOCKS.items():
        made = generate(deployment)
        if twice := taken[section] & made.keys():
            raise UserError(
                f"{rules_file}: {'.'.join(section)} of {template} would have {', '.join(sorted(twice))} twice: call the"
                " table, the rule or the variable by another name (a table's name in DynamoDB stays under `name`)"
            )
        taken[section] |= made.keys()
        blocks[name] = partial(as_yaml, made)
    return replaced(text, blocks, str(template))


def rules_noted(text: str, template: Path) -> Path:
    """The rules file a template is for.

    Raises:
        UserError: when it names none.
    """
    noted = read_yaml(inside(text, RULES_BLOCK, str(template)), str(template))
    match noted:
        case {"SyncRules": {"Rules": str(place)}}:
            return template.parent / place
    raise UserError(f"{template} is for no rules file yet: name it, `sync-rules infra --rules FILE`")


def warnings(text: str, template: Path) -> Iterator[str]:
    """What comes near a limit of CloudFormation."""
    whole = read_yaml(text, str(template))
    count = sum(map(_resources_of, whole["Resources"].values()))
    for what, number, most in (
        ("resources", count, RESOURCES_MAX),
        ("parameters", len(whole["Parameters"]), PARAMETERS_MAX),
    ):
        if number > NEAR * most:
            yield f"{template}: {number} {what}, and CloudFormation takes {most}: split the rules into several files"


def _resources_of(resource: Mapping[str, Any]) -> int:
    """What becomes of a resource when SAM has transformed it: functions bring their mappings, machines their role."""
    properties = resource.get("Properties", {})
    match resource["Type"]:
        case "AWS::Serverless::Function":
            return 1 + len(properties.get("Events") or {}) + ("EventInvokeConfig" in properties)
        case "AWS::Serverless::StateMachine":
            return 2
    return 1


def _require_deployable(deployment: Deployment, rules_file: Path) -> None:
    if not deployment.rules.rules:
        raise UserError(f"{rules_file} has no rules: there is nothing to deploy")
    names: dict[str, str] = {}
    for table in deployment.rules.streamed_tables:
        other = names.setdefault(logical(table.name), table.name)
        if other != table.name:
            raise UserError(f"{rules_file}: tables {other} and {table.name} are the same to CloudFormation: rename one")
    for variable in deployment.variables:
        if variable.parameter in {resources.stream_parameter(table) for table in deployment.rules.streamed_tables}:
            raise UserError(f"{rules_file}: variable {variable.name} and a table's stream would be the same parameter")
        if variable.name.startswith(RESERVED):
            raise UserError(
                f"{rules_file}: Lambda lets nobody set a variable {variable.name} (none that begins with"
                f" {', '.join(RESERVED)}): give it another name"
            )


def _at(whole: Any, road: tuple[str, ...]) -> Any:
    for name in road:
        whole = (whole or {}).get(name)
    return whole
