"""The beginnings of rules that call: noted once, read by everybody, carried over by a rename, lost by nothing."""

from __future__ import annotations

import pytest
from tenacity import Retrying, stop_after_attempt

from sync_rules.adapters import aws, beginnings, retries
from sync_rules.adapters.beginnings import (
    CallsSince,
    describe_beginnings,
    list_beginnings,
    note_in_table,
    read_beginnings,
    read_deploy_time_ms,
)
from sync_rules.adapters.function_calls import FunctionCaller, RememberedInTable, import_function
from sync_rules.jobs.consume.run_start import RunBeginnings
from sync_rules.language.load import parse_rules
from sync_rules.model.errors import StoreError, UserError
from sync_rules.model.items import Call, Change
from tests.support.every_kind import order, text_of
from tests.support.worlds import Scene, Telephone
from tests.unit.adapters.test_dynamodb import Client, failed

FUNCTION = "tests.support.every_kind.told"
NOON_MS = 1_700_000_000_000


def rules_of(**names: str):
    return parse_rules(text_of({name: f"{{call: {FUNCTION}, on: order{more}}}" for name, more in names.items()}))


@pytest.fixture
def client(table_of_ids):
    return table_of_ids("calls")


def made_call(client, rules) -> None:
    """A call of a version that noted no beginnings."""
    scene = Scene(rules)
    scene.put("shop", order("1", "a", 1))
    import_function.cache_clear()
    FunctionCaller(RememberedInTable(client, "calls")).call(Call("tell", FUNCTION, scene.records[0]))


# ---------------------------------------------------------------- which changes call
def test_beginnings_changes_from_before_do_not_call():
    """A new mapping brings records from before the rule's beginning, which do not call; a tie within the second does, and so does a record without a time, and everything with `since: horizon`."""
    rules = rules_of(tell="", all=", since: horizon")
    phone = Telephone()
    caller = CallsSince(phone, list_beginnings(rules, {"tell": NOON_MS + 900, "all": NOON_MS}))
    scene = Scene(rules)
    at = scene.put("shop", order("1", "a", 1))
    image = scene.item(at)
    for created_ms in (0, NOON_MS - 1, NOON_MS, NOON_MS + 5_000, None):
        change = Change(at, None, image, f"1{created_ms or 7}", created_ms)
        for name in ("tell", "all"):
            caller.call(Call(name, FUNCTION, change))
    made = {name: [call.change.created_ms for call in phone.calls if call.rule == name] for name in ("tell", "all")}
    assert made == {
        "tell": [NOON_MS, NOON_MS + 5_000, None],
        "all": [0, NOON_MS - 1, NOON_MS, NOON_MS + 5_000, None],
    }


# ---------------------------------------------------------------- noted once
def test_beginnings_are_noted_once(client):
    """The first process notes the beginning; later ones, and later deployments, read it; a new rule gets its own."""
    assert note_in_table(client, rules_of(tell=""), "calls", lambda: NOON_MS) == {"tell": NOON_MS}
    assert note_in_table(client, rules_of(tell="", new=""), "calls", lambda: NOON_MS + 9) == {
        "tell": NOON_MS,
        "new": NOON_MS + 9,
    }
    made_call(client, rules_of(tell=""))
    both = rules_of(tell="", new="", third="")
    assert note_in_table(client, both, "calls", lambda: NOON_MS + 20)["third"] == NOON_MS + 20
    assert read_beginnings(client, both, "calls") == {"tell": NOON_MS, "new": NOON_MS + 9, "third": NOON_MS + 20}
    assert read_beginnings(client, rules_of(other=""), "calls") == {"other": 0}


def test_beginnings_are_carried_over_by_a_rename(client):
    """A renamed rule keeps the beginning of its former name, also where the new name was noted before."""
    note_in_table(client, rules_of(old=""), "calls", lambda: NOON_MS)
    renamed = rules_of(new=", renamed_from: old")
    assert note_in_table(client, renamed, "calls", lambda: NOON_MS + 9) == {"new": NOON_MS}
    note_in_table(client, rules_of(late=""), "calls", lambda: NOON_MS + 9)
    assert note_in_table(client, rules_of(late=", renamed_from: old"), "calls", lambda: NOON_MS + 20) == {
        "late": NOON_MS
    }


def test_beginnings_lose_no_call_between_versions(client):
    """Rules that called before beginnings were noted have none; rules that come later have one."""
    made_call(client, rules_of(tell=""))
    assert note_in_table(client, rules_of(tell=""), "calls", lambda: NOON_MS) == {"tell": 0}
    assert note_in_table(client, rules_of(tell="", new=""), "calls", lambda: NOON_MS)["new"] == NOON_MS
    assert describe_beginnings(rules_of(tell="", new=""), {"tell": 0, "new": NOON_MS}) == {
        "tell": "all changes in the streams",
        "new": "changes since 2023-11-14 22:13:20 UTC",
    }


def test_beginnings_that_may_not_be_read_are_a_mistake():
    """If a role may not read the table, the error names what to allow. A table without an answer is another error."""
    with pytest.raises(UserError, match="dynamodb:Scan"):
        note_in_table(Client(failed("AccessDeniedException")), rules_of(tell=""), "calls", lambda: NOON_MS)
    with pytest.raises(StoreError):
        note_in_table(Client(failed("ValidationException")), rules_of(tell=""), "calls", lambda: NOON_MS)


def test_beginnings_are_the_deployment_on_lambda(monkeypatch):
    """On Lambda it is when the function was deployed, and not when its first process happened to start."""

    class Lambdas:
        answer = "2023-11-14T22:13:20.000+0000"

        def get_function_configuration(self, **parameters):
            assert parameters == {"FunctionName": "stack-StreamFunction"}
            return {"LastModified": self.answer}

    monkeypatch.setattr(beginnings, "read_clock_ms", lambda: NOON_MS + 7)
    assert read_deploy_time_ms() == NOON_MS + 7
    monkeypatch.setenv(beginnings.FUNCTION_NAME, "stack-StreamFunction")
    monkeypatch.setattr(aws, "lambdas", lambda _endpoint: Lambdas())
    assert read_deploy_time_ms() == NOON_MS
    monkeypatch.setattr(Lambdas, "answer", "?")
    assert read_deploy_time_ms() == NOON_MS + 7


@pytest.mark.parametrize(
    ("code", "raises", "words"),
    [
        ("TooManyRequestsException", StoreError, "stack-StreamFunction"),
        ("AccessDeniedException", UserError, "allow lambda:"),
    ],
)
def test_beginnings_are_not_noted_before_lambda_has_said_when(client, monkeypatch, code, raises, words):
    """A beginning is noted for ever: if it were now, the change that started this process would never call."""
    monkeypatch.setenv(beginnings.FUNCTION_NAME, "stack-StreamFunction")
    monkeypatch.setattr(aws, "lambdas", lambda _endpoint: Client(*[failed(code)] * 2))
    monkeypatch.setattr(retries, "make_retry", lambda *_args: Retrying(stop=stop_after_attempt(1), reraise=True))
    with pytest.raises(raises, match=words):
        note_in_table(client, rules_of(tell=""), "calls", read_deploy_time_ms)
    assert read_beginnings(client, rules_of(tell=""), "calls") == {"tell": beginnings.NOT_KNOWN_MS}
    monkeypatch.setattr(beginnings, "read_clock_ms", lambda: NOON_MS)
    if raises is StoreError:
        assert read_deploy_time_ms("http://127.0.0.1:8000") == NOON_MS  # an emulator of DynamoDB alone


# ---------------------------------------------------------------- of a run


@pytest.mark.parametrize("calls_table", [None, "calls"])
def test_beginnings_of_a_run(client, calls_table):
    """A run begins when it is first started, and keeps that; one that resumes an older checkpoint calls for all."""
    rules = rules_of(tell="", new="")
    of = RunBeginnings(rules_of(tell=""), client, calls_table).of
    began = of(None, resumes=False, started_ms=NOON_MS)
    assert began == {"tell": NOON_MS}
    assert of(began, resumes=True, started_ms=NOON_MS + 9) == began
    run = RunBeginnings(rules, client, calls_table)
    later = run.of(began, resumes=True, started_ms=NOON_MS + 9)
    assert later == {"tell": NOON_MS, "new": NOON_MS + 9}
    assert run.notices(later) == [
        f"new calls {FUNCTION} for changes since 2023-11-14 22:13:20 UTC",
        f"tell calls {FUNCTION} for changes since 2023-11-14 22:13:20 UTC",
    ]
    other = RunBeginnings(rules_of(other=""), client, calls_table and "calls")
    assert other.of(None, resumes=True, started_ms=NOON_MS) == (
        {"other": 0} if calls_table is None else {"other": NOON_MS}
    )
