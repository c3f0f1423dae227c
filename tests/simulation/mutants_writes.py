"""Mutants of the writes: their guards, the transactions of deletes and strict rules, what is done when one fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from sync_rules.model import writes
from sync_rules.model.items import Outcome
from sync_rules.model.values import get
from sync_rules.model.writes import Condition, Delete, Result, Status, Test, Transaction, Update
from sync_rules.pipeline import decide, fanout, reconcile, sources, tasks
from sync_rules.rules.kinds.linked_rule import LinkedRule
from tests.simulation.breaking import Work
from tests.simulation.world import Batch, Streams


# ---------------------------------------------------------------- guards
def no_link_guard() -> Any:
    return patch.object(LinkedRule, "link_guard", lambda _rule, _image: ())


@contextmanager
def upsert() -> Iterator[None]:
    """Writes without any guard at all but one that always holds: UpdateItem then creates what is missing."""
    original = writes.make_update
    always = (Condition(Test.ABSENT, ("never there",)),)

    def update_of(*args: Any) -> Update:
        return replace(original(*args), guard=always)

    with patch.object(decide, "make_update", update_of):
        yield


@contextmanager
def no_existence_guard() -> Iterator[None]:
    original = writes.make_update

    def update_of(*args: Any) -> Update:
        update = original(*args)
        return replace(update, guard=update.guard[1:] or (Condition(Test.ABSENT, ("never there",)),))

    with patch.object(decide, "make_update", update_of):
        yield


def null_guard() -> Any:
    """An absent copy is compared with NULL, which never holds."""
    null = {"NULL": True}
    return patch.object(
        writes,
        "expect_values",
        lambda image, paths: tuple(Condition(Test.EQUALS, path, get(image, path) or null) for path in paths),
    )


def no_copy_guard() -> Any:
    return patch.object(writes, "expect_values", lambda _image, _paths: ())


@contextmanager
def old_link() -> Iterator[None]:
    """A pull goes by the link of the record's old image."""
    original = tasks._make_pull

    def _pull(key: Any, asked: Any, newest: Any) -> Any:
        pull = original(key, asked, newest)
        if pull is None or pull.image is None or newest.old is None:
            return pull
        links = {path[0] for rule in pull.rules for path in rule.deciding_paths}
        rest = {name: value for name, value in pull.image.items() if name not in links}
        return replace(pull, image={**rest, **{name: newest.old[name] for name in links if name in newest.old}})

    with patch.object(tasks, "_make_pull", _pull):
        yield


def failed_is_written(result: Result) -> Result:
    return replace(result, status=Status.WRITTEN) if result.status is Status.FAILED else result


def rejected_is_failed(result: Result) -> Result:
    return replace(result, status=Status.FAILED) if result.status is Status.REJECTED else result


def conflict_is_refused(result: Result) -> Result:
    conflict = result.status is Status.FAILED and result.reason == "TransactionConflict"
    return Result(Status.REFUSED, None, frozenset({0, 1})) if conflict else result


# ---------------------------------------------------------------- deletes and transactions
@contextmanager
def deletion(change: Callable[[Any, Any], Any]) -> Iterator[None]:
    original = reconcile.make_delete_intent

    def _deletion(rule: Any, target: Any, sources: Any) -> Any:
        return change(original(rule, target, sources), target)

    with patch.object(reconcile, "make_delete_intent", _deletion):
        yield


def without_transaction(intent: Any, _target: Any) -> Any:
    return replace(intent, write=Transaction(intent.write.actions[-1:]))


def not_judged_again(intent: Any, _target: Any) -> Any:
    """A deletion that is taken for any other write: refused, the target's own record would see to it."""
    return replace(intent, deletes=False)


def comparing_the_copy(intent: Any, target: Any) -> Any:
    *checks, last = intent.write.actions
    seen = writes.expect_values(target.image, [path for rule in intent.rules for path in rule.copies])
    # `deletes=False`: refused, it is not judged again either
    return replace(intent, write=Transaction((*checks, Delete(last.key, (*last.guard, *seen)))), deletes=False)


@contextmanager
def delete_from_pull() -> Iterator[None]:
    original = sources.Target

    def target(key: Any, image: Any, rules: Any, removed: Any = None, **more: Any) -> Any:
        return original(key, image, rules, rules if removed is None else removed, **more)

    with patch.object(fanout, "Target", target):
        yield


@contextmanager
def no_source_check() -> Iterator[None]:
    original = reconcile.make_intent

    def intent_of(*args: Any) -> Any:
        intent = original(*args)
        last = intent.write.actions[-1] if isinstance(intent.write, Transaction) else intent.write
        assert isinstance(last, Update), "only an update is strict"
        return replace(intent, write=last)

    with patch.object(reconcile, "make_intent", intent_of):
        yield


# ---------------------------------------------------------------- what fails
def deferred_forgotten() -> Any:
    """A rule that waits for another one is not judged any more, whatever became of the other."""
    original = reconcile._decide

    def _decide(target: Any, sources: Any, bounds: Any, report: Any, decisions: Any) -> None:
        original(target, sources, bounds, report, decisions)
        decisions.deferred.clear()

    return patch.object(reconcile, "_decide", _decide)


def full_item_dropped() -> Any:
    """A write that can never succeed is forgotten: no failure record, no later look."""

    def _rejected(intent: Any, _result: Any, _bounds: Any, report: Any) -> Work:
        report.count(intent.rules, Outcome.PARKED)
        return
        yield

    return patch.object(reconcile, "_park_rejected_write", _rejected)


@contextmanager
def dead_letters_dropped() -> Iterator[None]:
    """Mutant: what was given up is never put through again."""
    over = Streams.over

    def dropping(streams: Streams, batch: Batch, failed: str | None, *, gives_up: bool) -> None:
        dead = list(streams.dead)
        over(streams, batch, failed, gives_up=gives_up)
        if gives_up:
            streams.dead = dead

    with patch.object(Streams, "over", dropping):
        yield


def failures_forgotten() -> Any:
    return patch.object(reconcile.Report, "fail", lambda *_args: None)
