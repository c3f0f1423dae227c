"""An export is whole only if DynamoDB says so, to a client that can hear it."""

from __future__ import annotations

import copy

import botocore.session
from botocore.model import ServiceModel
from botocore.stub import Stubber

from sync_rules.jobs.backfill.export_files import find_doubt

ARN = "arn:aws:dynamodb:us-east-1:111122223333:table/shop/export/01700"


def described_by(client: object, answer: dict | None) -> str:
    """The doubt about an export when DescribeExport answers so; without an answer no request may be made."""
    with Stubber(client) as stub:
        if answer is not None:
            stub.add_response("describe_export", {"ExportDescription": answer}, {"ExportArn": ARN})
        return find_doubt(client, ARN)


def test_export_is_whole_only_if_its_description_says_so():
    """No filter in the description of this very export is the proof; a filter, or no manifest, is a doubt."""
    client = botocore.session.Session().create_client("dynamodb", region_name="us-east-1")
    one = {"ExportArn": ARN, "ExportType": "FULL_EXPORT"}
    assert described_by(client, one) == ""
    filters = {"FilterExpression": "a = :a", "ProjectionExpression": "a", "KeyConditionExpression": "a = :a"}
    for name, words in filters.items():
        assert "made with a filter" in described_by(client, {**one, "FilterSpecification": {name: words}})
    assert "no manifest names it" in find_doubt(client, None)
    assert "does not describe it" in described_by(client, {})


def test_export_is_in_doubt_where_botocore_drops_the_filter():
    """An older botocore drops the field, so its answer proves nothing; no request is made, and the cure is an upgrade."""
    session = botocore.session.Session()
    client = session.create_client("dynamodb", region_name="us-east-1")
    older = copy.deepcopy(client.meta.service_model._service_description)
    del older["shapes"]["ExportDescription"]["members"]["FilterSpecification"]
    client.meta._service_model = ServiceModel(older, "dynamodb")
    doubt = described_by(client, None)
    assert f"botocore {botocore.__version__} cannot read the filter" in doubt
    assert "Upgrade boto3, or leave out --from-export" in doubt
