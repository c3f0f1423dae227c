"""A stack on an emulator: deployed by sam, asked through the clients that its user would ask."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeVar

import boto3
from botocore.config import Config

from sync_rules.adapters import aws
from sync_rules.adapters.state import TableState, save_applied_fingerprints
from sync_rules.language.load import load_rules
from sync_rules.model.values import Item
from sync_rules.rules import fingerprints
from tests.deploy.tools import REGION, ministack, run, tool

T = TypeVar("T")
NAME: Final = "sync-rules"
STAGE: Final = "trial"
INVOKE_MAX_SECONDS: Final = 1_800  # as long as Lambda lets a function run
LOOK_SECONDS: Final = 0.1
SAME_LOOKS_MAX: Final = 900  # 90 seconds of an idle machine; a busy one answers fewer of them, as it works less
NOBODY: Final = {"aws_access_key_id": "local", "aws_secret_access_key": "local"}


@dataclass(frozen=True)
class Stack:
    """A deployed stack: where it answers, and what it gives out."""

    url: str
    outputs: Mapping[str, str]

    def client(self, service: str) -> Any:
        """A client of any service of the stack."""
        return aws._make_client(service, self.url, REGION)

    def resources(self) -> dict[str, str]:
        """The physical id of each resource by its logical id."""
        pages = self.client("cloudformation").get_paginator("list_stack_resources").paginate(StackName=NAME)
        found = [summary for page in pages for summary in page["StackResourceSummaries"]]
        assert {summary["ResourceStatus"] for summary in found} == {"CREATE_COMPLETE"}
        return {summary["LogicalResourceId"]: summary["PhysicalResourceId"] for summary in found}

    def put(self, table: str, *items: Item) -> None:
        """Write items, 25 in a request."""
        for first in range(0, len(items), 25):
            puts = [{"PutRequest": {"Item": item}} for item in items[first : first + 25]]
            answer = self.client("dynamodb").batch_write_item(RequestItems={f"{STAGE}-{table}": puts})
            assert not answer["UnprocessedItems"]

    def item(self, table: str, **key: str) -> Item:
        """An item as it is; empty when there is none."""
        at = {name: {"S": value} for name, value in key.items()}
        found: Item = (
            self.client("dynamodb").get_item(TableName=f"{STAGE}-{table}", Key=at, ConsistentRead=True).get("Item", {})
        )
        return found

    def invoke(self, function: str, event: Any) -> Any:
        """A function's answer. Its error fails the test."""
        patient = Config(read_timeout=INVOKE_MAX_SECONDS, retries={"total_max_attempts": 1})
        client = boto3.client("lambda", endpoint_url=self.url, region_name=REGION, config=patient, **NOBODY)
        answer = client.invoke(FunctionName=self.resources()[function], Payload=json.dumps(event))
        body = json.loads(answer["Payload"].read())
        assert "FunctionError" not in answer, body
        return body

    def counted(self, group: str, rule: str) -> Counter[str]:
        """The metrics that a function wrote for a rule, summed; `group` is the last name of its log group."""
        pages = (
            self.client("logs").get_paginator("filter_log_events").paginate(logGroupName=f"/aws/lambda/{NAME}/{group}")
        )
        lines = [event["message"] for page in pages for event in page["events"] if event["message"].startswith("{")]
        sums: Counter[str] = Counter()
        for document in map(json.loads, lines):
            if "_aws" in document and document.get("rule") == rule:
                sums.update({name: sum(value) for name, value in document.items() if isinstance(value, list)})
        return sums


def eventually(look: Callable[[], T], wanted: Callable[[T], object]) -> T:
    """Repeat a look until its result is as wanted, and return it. Fails once `SAME_LOOKS_MAX` looks saw the same."""
    seen, looks = look(), 0
    while not wanted(seen):
        assert looks < SAME_LOOKS_MAX, f"no change in {looks} looks; last seen: {seen}"
        time.sleep(LOOK_SECONDS)
        before, seen = seen, look()
        looks = looks + 1 if seen == before else 0
    return seen


@contextmanager
def deployed(project: Path, place: Path) -> Iterator[str]:
    """Deploy a project that was built; gives the stack as JSON."""
    sam = tool("sam", "bin", "sam")
    with ministack(place) as url:
        overrides = [f"StageVariable={STAGE}", "WriteUnitsPerSecond=1000"]
        options = ["--no-progressbar", "--no-confirm-changeset", "--stack-name", NAME, "--parameter-overrides"]
        run(sam, "deploy", *options, *overrides, given={"AWS_ENDPOINT_URL": url}, cwd=project)
        stack = Stack(url, {})
        (description,) = stack.client("cloudformation").describe_stacks(StackName=NAME)["Stacks"]
        outputs = {output["OutputKey"]: output["OutputValue"] for output in description["Outputs"]}
        state = TableState(stack.client("dynamodb"), outputs["StateTableName"])
        accepted = fingerprints.compute_rule_fingerprints(load_rules(project / "rules.yaml", {"STAGE": STAGE}))
        save_applied_fingerprints(
            state, accepted, datetime.now(UTC)
        )  # as the first `sync-rules backfill --remote` does
        yield json.dumps(asdict(Stack(url, outputs)))
