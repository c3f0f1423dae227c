"""`sync-rules doctor`: examine a deployed stack, and say what is wrong with it and what cures that. It only reads.

Areas: the stack, tables, mappings, queues, versions, roles, alarms, lag; write, where the write function is asked for
or deployed; links, a sample of the items of rules that no backfill has applied; loads, the bulk loads since the last
backfill. The values that the stack was deployed with stand for the variables of the rules file.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from sync_rules.adapters import aws
from sync_rules.adapters.acceptance import find_applied_rules
from sync_rules.adapters.dynamodb import DynamoStore
from sync_rules.adapters.state import TableState, read_applied_time
from sync_rules.cli import options as opt
from sync_rules.cli.link_sample import sample_new_rules
from sync_rules.cli.verb import Verb
from sync_rules.deploy.deployment import read_deployment
from sync_rules.deploy.doctor import Site, StackFinding
from sync_rules.deploy.examination import Examination, NotSeenError, list_resources
from sync_rules.deploy.permissions import FUNCTIONS
from sync_rules.jobs.account.stack import read_stack
from sync_rules.jobs.backfill.bulk_loads import list_bulk_loads
from sync_rules.language.load import parse_rules, read_text
from sync_rules.model.errors import StoreError, UserError

ARN_COLONS: Final = 5

VERB: Final = Verb()


def doctor(
    rules_file: opt.RulesFile = opt.RULES_FILE,
    *,
    stack_name: Annotated[
        str, typer.Option("--stack", metavar="NAME", help="The deployed stack.", envvar=opt.STACK_VARIABLE)
    ] = opt.STACK,
    endpoint_url: opt.Endpoint = None,
    region: opt.Region = None,
    form: opt.Lines = opt.LineForm.TEXT,
) -> int:
    """Examine a deployed stack: each finding with its cure. It only reads."""
    client = partial(aws.find_client, endpoint_url=endpoint_url, region=region)
    well = True
    site = _read_site(client, rules_file, stack_name, opt.list_place_words(endpoint_url, region))
    for area, findings in _examine_areas(site, client):
        well = well and not findings
        if form is not opt.LineForm.TEXT:
            rows = [{"found": one.found, "cure": one.cure} for one in findings]
            print(json.dumps({"area": area, "findings": rows}), flush=True)
            continue
        for line in [f"{area}: {one.found} · {one.cure}" for one in findings] or [f"{area}: well"]:
            print(line, flush=True)
    return int(not well)


def _examine_areas(site: Site, client: Callable[[str], Any]) -> Iterator[tuple[str, list[StackFinding]]]:
    yield from Examination(site, client, datetime.now(UTC)).findings()
    yield "links", _check_links(site, client)
    yield "loads", _check_loads(site, client)


def _check_loads(site: Site, client: Callable[[str], Any]) -> list[StackFinding]:
    """The bulk loads that a backfill may not have seen. The reason why they are unknown goes to standard error."""
    dynamodb, state_table = client("dynamodb"), site.physical("StateTable")
    try:
        at = read_applied_time(TableState(dynamodb, state_table)) if state_table else None
    except StoreError:  # the area of links says so
        return []
    if at is None:
        return []
    loads, unknown = list_bulk_loads(dynamodb, site.rules.streamed_tables, at)
    if unknown:
        print(f"loads: bulk loads are unknown: {unknown}", file=sys.stderr)
    cure = site.format_remote_command("backfill", str(site.rules_file))
    return [StackFinding(one.describe(at), f"{'' if one.end else 'when it has ended: '}{cure}") for one in loads]


def _check_links(site: Site, client: Callable[[str], Any]) -> list[StackFinding]:
    """The findings of a sample of the rules that no backfill in this account has applied. It only reads."""
    dynamodb = client("dynamodb")
    state_table = site.physical("StateTable")
    try:
        applied = find_applied_rules(TableState(dynamodb, state_table), site.rules) if state_table else {}
        store = DynamoStore(dynamodb, site.rules.tables, write_mode="update")  # it writes nothing
        found = sample_new_rules(site.rules, site.rules.keeper_names, applied, (), store)
    except StoreError as error:
        if error.reason == "TableNotFound":  # the area of tables says so
            return []
        cure = "allow dynamodb:GetItem, BatchGetItem and Scan on the tables and the state table for your credentials"
        denied = error.reason.startswith("AccessDenied")
        return [StackFinding(f"could not be checked: {error}", cure if denied else "run it again later")]
    return [StackFinding(f"rule {one.title}: {one.found}", one.cure) for one in found if one.stops]


def _read_site(client: Any, rules_file: Path, stack_name: str, options: list[str]) -> Site:
    """The stack beside the rules. Raises UserError when it is none of ours or may not be looked at, StoreError."""
    deployment = read_deployment(rules_file)
    try:
        stack = read_stack(client("cloudformation"), stack_name)
        resources = list_resources(client, stack_name)
    except StoreError as error:
        if error.reason.startswith("AccessDenied"):
            raise _refuse(stack_name, "cloudformation:DescribeStacks") from error
        raise
    except NotSeenError as refused:
        raise _refuse(stack_name, refused.action) from refused
    missing = [name for name in FUNCTIONS if name not in resources]
    if missing or stack.arn.count(":") < ARN_COLONS:
        lacking = (*missing, "ARN")[0]
        raise UserError(f"stack {stack.name} in {stack.region} has no {lacking}: is it one of sync-rules?")
    values = {one.name: stack.parameters.get(one.parameter) or one.default for one in deployment.variables}
    rules = parse_rules(read_text(rules_file), str(rules_file), values)
    place = (stack.name, stack.arn, stack.status, stack.parameters, resources)
    return Site(*place, deployment, rules, rules_file, options)


def _refuse(stack_name: str, action: str) -> UserError:
    return UserError(f"doctor could not read stack {stack_name}: allow {action} for your credentials")
