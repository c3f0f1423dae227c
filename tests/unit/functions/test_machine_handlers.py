"""The functions of the state machines: what they noted on the way is written out, whatever became of the question."""

from __future__ import annotations

import pytest

from handlers import backfill, redrive, verify
from sync_rules.adapters import aws
from sync_rules.functions import runtime
from sync_rules.functions.logs import notes
from sync_rules.model.errors import StoreError
from tests.support.cold import start_cold
from tests.support.operated import figures, printed, quiet
from tests.support.worlds import context
from tests.unit.functions.test_handlers import BASE_RULES


@pytest.fixture(autouse=True)
def deployed(monkeypatch, tmp_path):
    """A function of a stack without services behind it."""
    (tmp_path / "rules.yaml").write_text(BASE_RULES)
    monkeypatch.setenv(runtime.RULES_FILE, str(tmp_path / "rules.yaml"))
    monkeypatch.setenv(runtime.ENDPOINT_URL, "http://127.0.0.1:9")
    for name in (runtime.STATE_TABLE, runtime.BUCKET):
        monkeypatch.setenv(name, "some")
    quiet(monkeypatch)
    start_cold()
    aws._make_client.cache_clear()
    yield
    start_cold()
    aws._make_client.cache_clear()


@pytest.mark.parametrize("module", [backfill, verify, redrive], ids=["backfill", "verify", "redrive"])
@pytest.mark.parametrize("fails", [False, True], ids=["answers", "fails"])
def test_machine_handlers_write_out_what_was_noted(module, fails, monkeypatch, capsys):
    """Failure records and throttles of each call are metrics, also of one that failed, and none waits for the next."""

    def answer(_event: object, _work: object) -> dict[str, bool]:
        notes.count_failure("names")
        notes.count_throttle("TableWriteKeyRangeThroughputExceeded")
        if fails:
            raise StoreError("Throttled")
        return {"done": True}

    monkeypatch.setattr(module, "answer", answer)
    question = {"do": "unit", "unit": "0", "run": {}}
    if fails:
        with pytest.raises(StoreError):
            module.handler(question, context())
    else:
        assert module.handler(question, context()) == {"done": True}
    lines = printed(capsys)
    assert figures(lines, rule="names")["FailureRecords"] == 1
    assert figures(lines, kind="TableWriteKeyRangeThroughputExceeded") == {"Throttled": 1}
    assert not notes.take().failures


@pytest.mark.parametrize("timeout_seconds", [900, 1_800, 5_400])
def test_redrive_handler_hides_messages_until_its_call_is_over(timeout_seconds, monkeypatch):
    """A redrive hides its messages for a minute longer than its call may still take, whatever its timeout."""
    monkeypatch.setenv(runtime.FAILURES_URL, "http://127.0.0.1:9/failures")
    monkeypatch.setattr(runtime.deadline, "context", context(timeout_seconds * 1000))
    assert redrive._make_queue_store(runtime.FAILURES_URL, "").hidden_seconds == timeout_seconds + 60
