"""Probes of whole tables: an export with a filter, and strong consistency between Regions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final

from sync_rules.adapters import aws_errors
from sync_rules.adapters.preflight import STRONG
from sync_rules.extras.proof.probe import NOT_ALLOWED, RefutedError, UnseenError, is_blocked, make_probe, require
from sync_rules.extras.proof.proof_stack import ProofSite, make_item
from sync_rules.jobs.export_files import Bucket, find_doubt, list_exports, parse_item, read_lines
from sync_rules.model.errors import UserError
from sync_rules.model.values import Item

EXPORT_SECONDS: Final = 600.0  # a small export takes minutes, whatever --wait is
EXPORT_LOOK_SECONDS: Final = 5.0
FOLDER: Final = "export"
OTHER_REGIONS: Final = ("us-east-1", "us-east-2")
EXPIRY: Final = re.compile(r"\bTTL\b|time.?to.?live", re.IGNORECASE)


def begin_export(site: ProofSite) -> None:
    """Start the export early, because it takes minutes. The probe repeats the request, and meets any error again."""
    with suppress(UnseenError, *aws_errors.ERRORS):
        _start_export(site)


def _start_export(site: ProofSite) -> dict[str, Any]:
    """The description of the export that has a filter: a second request with its token starts no other. Raises
    UnseenError where botocore would leave out the filter.
    """
    if "FilterSpecification" not in site.db.meta.service_model.shape_for("ExportDescription").members:
        raise UnseenError("this botocore cannot start an export with a filter: upgrade boto3")
    for item in _list_items(site):
        site.put(item)
    about: dict[str, Any] = site.ask(
        site.db.export_table_to_point_in_time,
        TableArn=site.outputs["ItemsArn"],
        S3Bucket=site.name,
        S3Prefix=FOLDER,
        ExportFormat="DYNAMODB_JSON",
        FilterSpecification={
            "FilterExpression": "exported = :yes",
            "ExpressionAttributeValues": {":yes": {"S": "yes"}},
        },
        ClientToken=site.name,
    )["ExportDescription"]
    return about


def _list_items(site: ProofSite) -> tuple[Item, Item]:
    """An item that the filter lets pass, and one that it does not."""
    return make_item(f"63#{site.name}", "1", exported="yes"), make_item(f"63#{site.name}", "2", exported="no")


@make_probe(63)
def probe_filtered_export(site: ProofSite) -> str:
    """Probe an export with a filter; unseen if the export does not end in time."""
    arn = _start_export(site)["ExportArn"]
    seconds, pause = max(site.waiting.seconds, EXPORT_SECONDS), max(site.waiting.pause, EXPORT_LOOK_SECONDS)
    patient = replace(site.waiting, seconds=seconds, pause=pause)
    ask = partial(site.ask, site.db.describe_export, ExportArn=arn)
    about, _ = patient.until(lambda: ask()["ExportDescription"], lambda found: found["ExportStatus"] != "IN_PROGRESS")
    if about["ExportStatus"] != "COMPLETED":
        raise UnseenError(f"an export is {about['ExportStatus']}")
    try:
        (export,) = list_exports(f"s3://{site.name}/{FOLDER}", Bucket(site.clients.s3, site.name, FOLDER))
        items = [item for name in export.files for item in _read_items(export.shelf, name)]
    except UserError as error:
        raise RefutedError(f"an export has another form: {error}") from error
    require(items == [_list_items(site)[0]], f"an export whose filter lets one item pass holds {len(items)}")
    require(export.table_arn == site.outputs["ItemsArn"], "the manifest does not name the table")
    require("with a filter" in find_doubt(site.db, arn), "DescribeExport does not show the filter")
    return "an export with a filter holds the item that passes, and DescribeExport shows the filter"


def _read_items(shelf: Any, name: str) -> Iterator[Item]:
    for place, line in read_lines(partial(shelf.open, name), name):
        yield parse_item(line, place)


@make_probe(73)
def probe_strong_consistency(site: ProofSite) -> str:
    """Request strong consistency with one other Region on a table with Time to Live. AWS must refuse the two
    together.
    """
    home = site.db.meta.region_name
    (region, *_) = (one for one in OTHER_REGIONS if one != home)
    replica = {"Create": {"RegionName": region}}
    asked = {"TableName": site.table("items"), "MultiRegionConsistency": STRONG, "ReplicaUpdates": [replica]}
    try:
        site.ask(site.db.update_table, **asked)
    except aws_errors.ERRORS as error:
        if aws_errors.read_code(error) in NOT_ALLOWED:
            raise UnseenError("these credentials may not make replicas, which nothing else needs") from error
        if is_blocked(error):
            raise
        said = f"{aws_errors.read_code(error)}: {aws_errors.read_message(error)}"
        if EXPIRY.search(aws_errors.read_message(error)):
            return f"refused with {said}"
        raise UnseenError(f"refused for another reason, {said}") from error
    raise RefutedError(f"accepted with Time to Live: delete the replica in {region}, then the rest with --clean")
