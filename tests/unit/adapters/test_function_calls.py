"""Calls of users' functions: once per change and rule, however often delivered; a failure shows its class only."""

from __future__ import annotations

import sys
import traceback
import warnings
from asyncio import CancelledError
from dataclasses import replace
from threading import Event
from types import ModuleType

import pytest

from sync_rules.adapters import aws, retries
from sync_rules.adapters.function_calls import FunctionCaller, RememberedInMemory, RememberedInTable, import_function
from sync_rules.model.errors import StoreError, UserError
from sync_rules.model.items import Call, Change
from tests.support.builders import key, s, table
from tests.support.depth import spread_over_night

AT = key(table("shop", {"PK": "S"}), "a")
CALL = Call("notify", "hooks_of_test.notify", Change(AT, None, {"PK": s("a"), "name": s("SECRET")}, "100"))


class Hooks(ModuleType):
    """A user's module. `before` may raise."""

    def __init__(self) -> None:
        super().__init__("hooks_of_test")
        self.told: list = []
        self.before = lambda _change: None
        self.number = 5

    def notify(self, change):
        self.told.append(change)
        self.before(change)
        return object()  # no JSON

    async def later(self, change):
        pass


@pytest.fixture
def hooks(monkeypatch):
    one = Hooks()
    monkeypatch.setitem(sys.modules, one.__name__, one)
    import_function.cache_clear()
    yield one
    import_function.cache_clear()


@pytest.fixture
def client(table_of_ids, monkeypatch):
    monkeypatch.delenv("POWERTOOLS_IDEMPOTENCY_DISABLED", raising=False)
    return table_of_ids("calls")


@pytest.fixture(params=["memory", "table"])
def memory(request, client):
    """Both ways to remember calls."""
    return RememberedInMemory() if request.param == "memory" else RememberedInTable(client, "calls")


def raising(error: BaseException):
    def raise_it(_change):
        raise error

    return raise_it


# ---------------------------------------------------------------- once
def test_caller_calls_once_per_change_and_rule(hooks, memory):
    """A change is called once per rule, by whichever caller and however often it is delivered."""
    others = [replace(CALL, rule="other"), replace(CALL, change=replace(CALL.change, position="101"))]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # Powertools warns where it does not know how long a call may last
        for call in (CALL, replace(CALL, attempt=4), *others, CALL):
            FunctionCaller(memory).call(call)
    assert [(told.rule, told.id.split(":")[2].split("-")[0]) for told in hooks.told] == [
        ("notify", "100"), ("other", "100"), ("notify", "101"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "error",
    spread_over_night(
        [
            ValueError("SECRET"),
            SystemExit("SECRET"),
            StoreError("SECRET"),
            UserError("SECRET"),
            GeneratorExit("SECRET"),
            CancelledError("SECRET"),
            BaseExceptionGroup("SECRET", [ValueError(), GeneratorExit()]),
        ]
    ),
)
def test_caller_a_failure_is_told_by_its_class_and_comes_again(hooks, memory, error):
    """An exception of the function becomes CallFailed with its class, without its text, and the next try calls again."""
    caller = FunctionCaller(memory)
    hooks.before = raising(error)
    for _ in range(2):
        with pytest.raises(StoreError) as failed:
            caller.call(CALL)
        assert str(failed.value) == f"CallFailed: {type(error).__name__}"
        assert "SECRET" not in "".join(traceback.format_exception(failed.value))  # as a log would have it
    hooks.before = lambda _change: None
    caller.call(CALL)
    caller.call(CALL)
    assert len(hooks.told) == 3


@pytest.mark.parametrize("error", [KeyboardInterrupt(), BaseExceptionGroup("of tasks", [KeyboardInterrupt()])])
def test_caller_lets_the_user_stop_the_process(hooks, memory, error):
    """Ctrl-C within a function is no failure of the function."""
    hooks.before = raising(error)
    with pytest.raises(KeyboardInterrupt):
        FunctionCaller(memory).call(CALL)


def test_caller_gives_a_function_a_time_of_its_own(hooks, memory):
    """A function that hangs fails after its time, which is less than the process has; the next try calls it again."""
    hang = Event()
    hooks.before = lambda _change: hang.wait(60)
    for caller in (FunctionCaller(memory, max_seconds=0.05), FunctionCaller(memory, remaining_ms=lambda: 2_050)):
        with pytest.raises(StoreError) as failed:
            caller.call(CALL)
        assert failed.value.reason == "CallTimedOut"
    hooks.before = lambda _change: None
    FunctionCaller(memory).call(CALL)
    assert len(hooks.told) == 3


def test_caller_knows_a_call_by_the_former_name_of_its_rule(hooks, memory):
    """Changes that called before a rule was renamed do not call again; others call once."""
    caller = FunctionCaller(memory)
    other = replace(CALL, change=replace(CALL.change, position="101"))
    caller.call(CALL)
    for _ in range(2):
        for call in (CALL, other):
            caller.call(replace(call, rule="renamed", former="notify"))
    assert [(told.rule, told.id.split(":")[2].split("-")[0]) for told in hooks.told] == [
        ("notify", "100"), ("renamed", "101"),
    ]  # fmt: skip


def test_caller_keeps_away_from_a_call_that_is_being_made(hooks, memory):
    """A call in progress makes a second caller fail as busy; once made, it is done for both."""
    met = []

    def meanwhile(_change):
        with pytest.raises(StoreError) as busy:
            FunctionCaller(memory).call(CALL)
        met.append(busy.value.reason)

    hooks.before = meanwhile
    FunctionCaller(memory).call(CALL)
    FunctionCaller(memory).call(CALL)
    assert met == ["CallInProgress"]
    assert len(hooks.told) == 1


def test_caller_takes_over_from_the_dead(hooks, memory):
    """A process that ended within a call is waited for as long as the call could have lasted, and no longer."""
    hooks.before = raising(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        FunctionCaller(memory, remaining_ms=lambda: 60_000).call(CALL)
    hooks.before = lambda _change: None
    with pytest.raises(StoreError, match="CallInProgress"):
        FunctionCaller(memory).call(CALL)
    hooks.before = raising(KeyboardInterrupt())
    other = replace(CALL, rule="other")
    with pytest.raises(KeyboardInterrupt):
        FunctionCaller(memory, remaining_ms=lambda: -1_000).call(other)  # its time is over already
    hooks.before = lambda _change: None
    FunctionCaller(memory).call(other)
    assert len(hooks.told) == 3


def test_caller_remembers_a_week_beyond_the_stream(hooks, client):
    """Eight days by default, in the attribute that Time to Live goes by; and no value of the item is in the table."""
    FunctionCaller(RememberedInTable(client, "calls")).call(CALL)
    (item,) = client.scan(TableName="calls")["Items"]
    noted = int(item["in_progress_expiration"]["N"]) // 1000 - 60  # when the call began
    assert 8 * 86_400 <= int(item["expiration"]["N"]) - noted <= 8 * 86_400 + 60
    assert "SECRET" not in str(item)
    assert item["id"]["S"].startswith("sync-rules#")


def test_caller_in_memory_forgets_the_oldest(hooks):
    """The memory of one process has an end."""
    caller = FunctionCaller(RememberedInMemory(max_items=2))
    calls = [replace(CALL, change=replace(CALL.change, position=str(number))) for number in range(3)]
    for call in (*calls, calls[2], calls[0]):
        caller.call(call)
    assert [told.id.split(":")[2].split("-")[0] for told in hooks.told] == ["0", "1", "2", "0"]


# ---------------------------------------------------------------- the table
def test_caller_without_the_table_fails(hooks, client):
    """A call that cannot be noted is not made."""
    with pytest.raises(StoreError, match="TableNotFound"):
        FunctionCaller(RememberedInTable(client, "nowhere")).call(CALL)
    assert hooks.told == []


@pytest.mark.parametrize("operation", ["put_item", "update_item", "delete_item"])
def test_caller_notes_again_what_was_throttled(hooks, client, monkeypatch, operation):
    """A throttle between a function's end and its note must not make the call happen twice."""
    answers = [aws.ClientError({"Error": {"Code": "ThrottlingException"}}, operation)] * 2
    real = getattr(client, operation)

    def throttled(**parameters):
        if answers:
            raise answers.pop()
        return real(**parameters)

    monkeypatch.setattr(client, operation, throttled)
    caller = FunctionCaller(RememberedInTable(client, "calls", retrying=retries.make_retry(sleep=lambda _: None)))
    if operation == "delete_item":
        hooks.before = raising(ValueError())
        with pytest.raises(StoreError, match="CallFailed"):
            caller.call(CALL)
        hooks.before = lambda _change: None
    caller.call(CALL)
    caller.call(CALL)
    assert answers == []
    assert len(hooks.told) == (2 if operation == "delete_item" else 1)


# ---------------------------------------------------------------- finding the function
@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("notify", "expected module.function"),
        ("no_such_module_here.notify", "importing no_such_module_here fails with ModuleNotFoundError"),
        ("hooks_of_test.nothing", "hooks_of_test has no nothing"),
        ("hooks_of_test.number", "it is of type int"),
        ("hooks_of_test.later", "it is async"),
    ],
)
def test_caller_a_function_that_is_not_there_is_the_user_s_mistake(hooks, path, says):
    """A missing function is a UserError at the start with its rule, and a failure if first found by a call."""
    caller = FunctionCaller(RememberedInMemory())
    with pytest.raises(UserError) as error:
        caller.require({"fine": CALL.function, "notify-them": path})
    assert str(error.value).startswith("rule notify-them: ")
    assert path in str(error.value)
    assert says in str(error.value)
    with pytest.raises(StoreError, match="FunctionNotFound"):
        caller.call(replace(CALL, function=path))


def test_caller_a_module_that_fails_is_the_user_s_mistake(tmp_path, monkeypatch):
    """An exception while the user's module is imported is a UserError with its text."""
    (tmp_path / "broken_hooks_of_test.py").write_text("raise OSError('no such queue')\n")
    (tmp_path / "script_of_test.py").write_text("raise SystemExit(0)\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UserError, match="fails with OSError: no such queue"):
        FunctionCaller(RememberedInMemory()).require({"r": "broken_hooks_of_test.notify"})
    with pytest.raises(UserError, match="fails with SystemExit"):  # a script that ends itself must not end `run`
        FunctionCaller(RememberedInMemory()).require({"r": "script_of_test.notify"})
