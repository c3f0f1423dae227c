"""The probes of whole tables where no engine leads: other refusals, an export that does not end, an older botocore."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from botocore.exceptions import ClientError

from sync_rules.extras.proof.probe import Polling, ProbeVerdict, run_probe
from sync_rules.extras.proof.probes import table_facts


def site(**calls):
    """A site whose DynamoDB answers these calls."""
    shape = SimpleNamespace(members=calls.pop("members", {"FilterSpecification": {}}))
    model = SimpleNamespace(shape_for=lambda _: shape)
    db = SimpleNamespace(meta=SimpleNamespace(region_name="us-east-1", service_model=model), **calls)
    return SimpleNamespace(
        name="it", db=db, table="it-{}".format, outputs={"ItemsArn": "arn"}, put=lambda _: None, waiting=Polling(0),
        ask=lambda call, **asked: call(**asked),
    )  # fmt: skip


def refuse(code, message):
    def call(**asked):
        assert asked["ReplicaUpdates"] == [{"Create": {"RegionName": "us-east-2"}}]
        raise ClientError({"Error": {"Code": code, "Message": message}}, "UpdateTable")

    return call


@pytest.mark.parametrize(
    ("code", "message", "verdict", "words"),
    [
        ("ValidationException", "TTL is on in table/it of 123456789012", ProbeVerdict.HOLDS, "table/it of ACCOUNT"),
        ("ValidationException", "three Regions are needed", ProbeVerdict.NOT_TESTED, "three Regions are needed"),
        ("AccessDeniedException", "no", ProbeVerdict.NOT_TESTED, "may not make replicas"),
        ("InternalServerError", "", ProbeVerdict.FAILED, "run it again"),
    ],
)
def test_strong_consistency_holds_only_by_its_own_reason(code, message, verdict, words):
    """A refusal for another reason, or for a right, says nothing about Time to Live."""
    found = run_probe(73, lambda: table_facts.probe_strong_consistency(site(update_table=refuse(code, message))))
    assert (found.verdict, words in found.seen) == (verdict, True)


def test_export_that_does_not_end_is_not_tested(monkeypatch):
    """An export that runs on, or failed, is no verdict on the fact."""
    monkeypatch.setattr(table_facts, "EXPORT_SECONDS", 0)
    begun = {"ExportDescription": {"ExportArn": "arn"}}
    for status in ("IN_PROGRESS", "FAILED"):
        answer = {"ExportDescription": {"ExportStatus": status}}
        asked = site(export_table_to_point_in_time=lambda **_: begun, describe_export=lambda answer=answer, **_: answer)
        found = run_probe(63, lambda asked=asked: table_facts.probe_filtered_export(asked))
        assert (found.verdict, found.seen) == (ProbeVerdict.NOT_TESTED, f"an export is {status}")


def test_export_needs_a_botocore_that_knows_filters():
    """An older botocore would start an export without the filter."""
    found = run_probe(63, lambda: table_facts.probe_filtered_export(site(members={})))
    assert (found.verdict, "upgrade boto3" in found.seen) == (ProbeVerdict.NOT_TESTED, True)
