"""DynamoDB's description of an export to S3: whether the export holds all items of its table.

Invariant: an export is whole only if DynamoDB describes this very export, without a filter, to a client that can read
the filter. Each other answer, and no answer, is a doubt.
https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_ExportDescription.html
"""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Final

from sync_rules.adapters import retries
from sync_rules.model.errors import StoreError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

DENIED: Final = ("AccessDenied", "AccessDeniedException")
FILTER: Final = "FilterSpecification"  # of an ExportDescription
SCAN: Final = "or leave out --from-export to scan the table"


def find_doubt(client: DynamoDBClient, arn: str | None) -> str:
    """Ask DynamoDB whether an export has a filter. Returns the reason why the export may lack items of its table, and a
    cure; "" if it holds all items.
    """
    if arn is None:
        return f"no manifest names it, so its filter cannot be looked up. Give the export with its manifest, {SCAN}"
    shape = client.meta.service_model.shape_for("ExportDescription")
    if FILTER not in getattr(shape, "members", ()):  # botocore drops what its model lacks
        return f"botocore {version('botocore')} cannot read the filter of an export. Upgrade boto3, {SCAN}"
    where = f"export {arn}"
    try:
        answer = retries.ask(retries.retrying(first=True), where, client.describe_export, ExportArn=arn)
    except StoreError as error:
        if error.reason in DENIED:
            denied = "these credentials may not ask DynamoDB for its filter"
            return f"{denied}. Allow dynamodb:DescribeExport on {arn}, {SCAN}"
        return f"DynamoDB does not describe it ({error.reason}), so its filter is unknown. Make another export, {SCAN}"
    description = answer.get("ExportDescription", {})
    if description.get("ExportArn") != arn:
        return f"DynamoDB does not describe it, so its filter is unknown. Make another export, {SCAN}"
    if description.get(FILTER):
        return f"it was made with a filter. Make an export without a filter, {SCAN}"
    return ""
