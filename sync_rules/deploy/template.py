"""Write the blocks of template.yaml from a deployment, and read the name of its rules file from a template.
CloudFormation has one name space for parameters, resources and the resources that SAM adds. If the rules file needs
a logical id twice, the error names the line and the present owner of the id.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, Final

from sync_rules.adapters.preflight import list_declared_indexes, list_refused_features
from sync_rules.deploy import resources
from sync_rules.deploy.blocks import find_blocks, read_block, replace_blocks
from sync_rules.deploy.dashboard import make_dashboard
from sync_rules.deploy.deployment import Deployment
from sync_rules.deploy.measures import MEASURES, Of, format_alarm_id, list_subjects, make_alarms
from sync_rules.deploy.roles import compute_value_limits, make_roles
from sync_rules.deploy.sam_template import find_value, list_sam_resources, read_machine, read_timeouts_seconds
from sync_rules.deploy.yamltext import read_yaml
from sync_rules.model.errors import UserError

RULES_BLOCK: Final = "rules"
ENVIRONMENT: Final = ("Globals", "Function", "Environment", "Variables")
ITSELF: Final = "the template itself"  # the owner of a name

# The section of the template that contains each block.
BLOCKS: Final[Mapping[str, tuple[str, ...]]] = {
    "parameters": ("Parameters",),
    "conditions": ("Conditions",),
    "environment": ENVIRONMENT,
    "before-streams": ("Resources", "StreamFunction"),
    "streams": ("Resources", "StreamFunction", "Properties", "Events"),
    "tables": ("Resources",),
    "write": ("Resources",),
    "roles": ("Resources",),
    "dashboard": ("Resources",),
    "alarms": ("Resources",),
    "outputs": ("Outputs",),
}
RESOURCES_MAX: Final = 500  # https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html
PARAMETERS_MAX: Final = 200
NEAR: Final = 0.8  # of a limit
GLOBAL: Final = "GlobalSecondaryIndexes"
GLOBAL_TABLE: Final = "AWS::DynamoDB::GlobalTable"
LOCAL: Final = "LocalSecondaryIndexes"
RESERVED: Final = ("AWS_", "LAMBDA_", "_")  # beginnings of names that Lambda reserves


def fill_template(text: str, deployment: Deployment, rules_file: Path, template: Path) -> str:
    """Fill the blocks of a template for this rules file.

    Raises:
        UserError: if a block is missing, a generated name is taken, or numbers of the hand-written part contradict
            each other.
    """
    _require_deployable(deployment, rules_file)
    fixed = read_yaml(empty_blocks(text, template), str(template))
    read_machine(fixed, template)
    longest = compute_value_limits(deployment)
    generated: dict[str, dict[str, Any]] = {
        "parameters": {
            name: {**one, **({"MaxLength": longest[name]} if name in longest else {})}
            for name, one in resources.make_parameters(deployment).items()
        },
        "conditions": resources.make_conditions(deployment),
        "environment": resources.make_environment(deployment),
        "before-streams": resources.make_before_streams(deployment),
        "streams": resources.make_streams(deployment),
        "tables": {
            **resources.make_tables(deployment),
            **resources.make_books(deployment),
        },
        "write": resources.make_write_function(deployment),
        "alarms": make_alarms(
            deployment, read_timeouts_seconds(fixed, template, resources.make_write_function(deployment))
        ),
        "outputs": resources.make_outputs(deployment),
        "roles": make_roles(deployment),
        "dashboard": {"Dashboard": make_dashboard(deployment)},
    }
    new_ids = [one for name, made in generated.items() if BLOCKS[name] == ("Resources",) for one in made]
    require_distinct_ids(fixed, new_ids, deployment, rules_file, template)
    generated[RULES_BLOCK] = _name_rules_file(rules_file, template)
    return replace_blocks(text, generated, str(template))


def empty_blocks(text: str, template: Path) -> str:
    """Return a template with empty blocks. Raises UserError if a block is missing or not known."""
    return replace_blocks(text, {name: {} for name in (RULES_BLOCK, *BLOCKS)}, str(template))


def empty_any_blocks(text: str, template: Path) -> str:
    """Return a template of any version with empty blocks. Raises UserError if the marks are not in order."""
    return replace_blocks(text, {name: {} for name in find_blocks(text, str(template))}, str(template))


def clear_template(text: str, rules_file: Path, template: Path) -> str:
    """Return a template for a rules file that has no rules yet: its blocks hold only the name of the rules file.

    Raises:
        UserError: if a block is missing or not known.
    """
    content = {**{name: {} for name in BLOCKS}, RULES_BLOCK: _name_rules_file(rules_file, template)}
    return replace_blocks(text, content, str(template))


def _name_rules_file(rules_file: Path, template: Path) -> dict[str, Any]:
    path = Path(os.path.relpath(rules_file.absolute(), template.absolute().parent))
    return {"SyncRules": {"Rules": path.as_posix()}}


def find_rules_file(text: str, template: Path) -> Path:
    """Return the path of a template's rules file.

    Raises:
        UserError: if the template names no rules file.
    """
    match read_yaml(read_block(text, RULES_BLOCK, str(template)), str(template)):
        case {"SyncRules": {"Rules": str(path)}}:
            return template.parent / path
    raise UserError(f"{template} names no rules file yet: run `sync-rules infra --rules FILE`")


def warn_of_limits(text: str, template: Path) -> Iterator[str]:
    """Warn of numbers near a limit of CloudFormation."""
    whole = read_yaml(text, str(template))
    count = sum(1 + len([*list_sam_resources(*one)]) for one in whole["Resources"].items())
    for what, number, most in (
        ("resources", count, RESOURCES_MAX),
        ("parameters", len(whole["Parameters"]), PARAMETERS_MAX),
    ):
        if number > NEAR * most:
            yield f"{template}: {number} {what}, and CloudFormation takes {most}: split the rules into several files"


def warn_of_indexes(old: str, new: str, template: Path) -> Iterator[str]:
    """Warn of what CloudFormation would do to indexes of tables that are in both versions of a template."""
    try:
        before, after = (
            read_yaml(read_block(text, "tables", str(template)), str(template)) or {} for text in (old, new)
        )
    except UserError:
        return  # the broken block is written again
    for name in before.keys() & after.keys():
        if _list_indexes(before[name], LOCAL) != _list_indexes(after[name], LOCAL):
            yield (
                f"{template}: the local indexes of {name} have changed, and for that CloudFormation makes a new, empty"
                " table: keep them as they are, or make the new one global"
            )
        yield from _warn_of_expiry(name, before[name], after[name], template)
        was, now = _list_indexes(before[name]), _list_indexes(after[name])
        gone, come = sorted(was.keys() - now.keys()), sorted(now.keys() - was.keys())
        changed = sorted(index for index in was.keys() & now.keys() if was[index] != now[index])
        if gone:
            yield (
                f"{template}: {name} is left without index {', '.join(gone)}: if this stack created the table, the next"
                " deployment deletes that index, even if somebody still reads it"
            )
        if changed:
            yield (
                f"{template}: index {', '.join(changed)} of {name} has changed, and CloudFormation cannot change an"
                " index: give it another name"
            )
        if len(gone) + len(come) > 1:
            yield (
                f"{template}: {name} has {len(gone) + len(come)} indexes more or less ({', '.join([*gone, *come])}),"
                " and CloudFormation makes or deletes one in a deployment: deploy them one by one"
            )


def _warn_of_expiry(name: str, before: Any, after: Any, template: Path) -> Iterator[str]:
    """Warn of a Time to Live that CloudFormation cannot change, and of one that it may leave on."""
    was, now = (find_value(one, "Properties", "TimeToLiveSpecification", "AttributeName") for one in (before, after))
    if was and now and was != now:
        yield (
            f"{template}: the Time to Live of {name} goes from {was} to {now}, and CloudFormation refuses that where"
            " this stack created the table: deploy without one, switch it off by hand, and later deploy the other"
        )
    elif was and not now:
        yield (
            f"{template}: {name} is left without Time to Live on {was}, and it may stay on: if items must no longer"
            " expire, switch it off by hand (aws dynamodb update-time-to-live)"
        )


def _list_indexes(resource: Mapping[str, Any], kind: str = GLOBAL) -> dict[str, Any]:
    indexes = find_value(resource, "Properties", kind) or ()
    return {
        find_value(index, "IndexName"): [find_value(index, part) for part in ("KeySchema", "Projection")]
        for index in indexes
    }


def warn_of_settings(deployment: Deployment, rules_file: Path) -> Iterator[str]:
    """Warn of a Time to Live and of vector indexes of tables that the template does not contain."""
    followed = {table.name for table in deployment.rules.streamed_tables}
    for name, table in deployment.rules.tables.items():
        if name not in followed and (table.ttl or table.vectors):
            yield (
                f"{rules_file}:{deployment.lines['tables', name]}: no rule follows table {name}, so the stack does not"
                " create it, and its ttl and vectors count for `sync-rules tables create` alone"
            )


def warn_of_consistency(text: str, deployment: Deployment, template: Path) -> Iterator[str]:
    """Warn of rules that cannot run on a global table of the template, because of its strong consistency."""
    rules = deployment.rules
    tables = {deployment.fill(table.physical_name): table for table in rules.tables.values()}
    for name, one in read_yaml(text, str(template))["Resources"].items():
        called = find_value(one, "Properties", "TableName")
        table = tables.get(str(find_value(called, "Fn::Sub") or called))
        if one["Type"] == GLOBAL_TABLE and table is not None:
            uses = list_declared_indexes(table)
            for problem in list_refused_features(rules, table, one["Properties"], uses, rules.times_to_live):
                yield f"{template}: {name}: {problem.found}. {problem.cure}"


def warn_of_place(rules_file: Path, template: Path) -> Iterator[str]:
    """Warn of a rules file outside of the template's folder."""
    folder = template.absolute().parent
    if not rules_file.resolve().is_relative_to(folder.resolve()):
        yield (
            f"{rules_file} is outside of {folder}: `sam build` finds it only if it builds in place (build_in_source in"
            " samconfig.toml) on a machine with that file; otherwise, such as in a container, SAM copies that folder"
            " alone. Put the file, and modules that its `call` rules name, into it"
        )


def _require_deployable(deployment: Deployment, rules_file: Path) -> None:
    if not deployment.rules.rules:
        raise UserError(f"{rules_file} has no rules: there is nothing to deploy. Write a rule")
    for variable in deployment.variables:
        if variable.name.startswith(RESERVED):
            raise UserError(
                f"{rules_file}:{variable.line}: Lambda reserves variables that begin with {', '.join(RESERVED)}: give"
                f" {variable.name} another name"
            )


# ---------------------------------------------------------------- logical ids
def require_distinct_ids(
    whole: Mapping[str, Any], generated: Iterable[str], deployment: Deployment, rules_file: Path, template: Path
) -> None:
    """Raise an error for names that come twice, given the hand-written part and the ids of the generated resources.

    Raises:
        UserError: with the table, the rule or the variable, its line, and the present owner of the name.
    """
    wanted = [*list_ids(deployment)]
    theirs = {name for name, _, _ in wanted}
    own = chain(
        whole.get("Parameters") or {},
        whole.get("Conditions") or {},
        *((name, *list_sam_resources(name, resource)) for name, resource in (whole.get("Resources") or {}).items()),
        (name for name in generated if name not in theirs),
    )
    holders = dict.fromkeys(own, (ITSELF, 0))
    for name, who, line in wanted:
        other, other_line = holders.setdefault(name, (who, line))
        if (other, other_line) != (who, line):
            raise _make_clash_error(f"{rules_file}:{line}: {who} would be {name} in {template}", other, other_line)
    for variable in deployment.variables:
        if variable.name in {*(find_value(whole, *ENVIRONMENT) or {}), resources.RULES_DIGEST, resources.VERSION}:
            name = f"{rules_file}:{variable.line}: variable {variable.name}"
            raise _make_clash_error(f"{name} would be given to the functions of {template}", ITSELF, 0)


def list_ids(deployment: Deployment) -> Iterator[tuple[str, str, int]]:
    """List the ids that the rules file needs, each with the part that needs it and its line (0 if unknown)."""
    for variable in deployment.variables:
        yield variable.parameter, f"variable {variable.name}", variable.line
    for table in deployment.rules.streamed_tables:
        who, line = f"table {table.name}", deployment.lines.get(("tables", table.name), 0)
        yield resources.format_stream_parameter(table), who, line
        yield resources.format_mapping_id(table), who, line
        if not resources.is_elsewhere(table):
            yield resources.format_table_id(table), who, line
            yield resources.format_condition_id(table), who, line
    for measure in MEASURES:
        if measure.of in (Of.RULE, Of.KEPT, Of.MAPPING):
            for subject in list_subjects(deployment, measure):
                kind, _, name = subject.title.partition(" ")
                yield format_alarm_id(measure, subject), subject.title, deployment.lines.get((f"{kind}s", name), 0)


def _make_clash_error(begun: str, other: str, line: int) -> UserError:
    known = f"{other} (line {line})" if line else other
    return UserError(f"{begun}, and {known} has that name: rename it (a table keeps its name in DynamoDB under `name`)")
