"""Mutants of the work: which records are a reason to look, and which targets a push looks at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from sync_rules.model.values import has_changed
from sync_rules.pipeline import consumer, fanout, handover, tasks
from sync_rules.pipeline.requests import List, Request
from sync_rules.rules.kinds.copy import CopyRule
from tests.simulation.breaking import Mutant, Work, answered
from tests.simulation.world import World


# ---------------------------------------------------------------- which records matter
def no_pull_on_insert() -> Any:
    original = CopyRule.pulls
    return patch.object(CopyRule, "pulls", lambda rule, change: change.old is not None and original(rule, change))


def pulls_without(left_out: Callable[[CopyRule], Any]) -> Mutant:
    """Pull on changes of the relevant attributes but some."""

    def pulls(rule: CopyRule, change: Any) -> bool:
        paths = [path for path in rule.relevant_paths if path not in left_out(rule)]
        return change.new is not None and (change.old is None or has_changed(change.old, change.new, paths))

    return lambda: patch.object(CopyRule, "pulls", pulls)


@contextmanager
def planned(change: Callable[..., Any]) -> Iterator[None]:
    """`make_tasks` replaced by a function of it, the changes and the rules."""
    original = tasks.make_tasks
    with patch.object(consumer, "make_tasks", lambda changes, rules: change(original, list(changes), rules)):
        yield


def net_difference(original: Any, changes: Any, rules: Any) -> Any:
    net: dict[Any, Any] = {}
    for change in changes:
        net[change.key] = replace(change, old=net[change.key].old if change.key in net else change.old)
    return original([change for change in net.values() if change.old != change.new], rules)


def last_record(original: Any, changes: Any, rules: Any) -> Any:
    return original({change.key: change for change in changes}.values(), rules)


def one_rule(original: Any, changes: Any, rules: Any) -> Any:
    planned = original(changes, rules)
    pulls = [
        replace(
            pull,
            rules=tuple(rule for rule in pull.rules if any(c.key == pull.key and rule.pulls(c) for c in changes)),
        )
        for pull in planned.pulls
    ]
    return replace(planned, pulls=tuple(pulls))


def no_push(original: Any, changes: Any, rules: Any) -> Any:
    return replace(original(changes, rules), pushes=())


def ignore_remove(original: Any, changes: Any, rules: Any) -> Any:
    return original([change for change in changes if change.new is not None], rules)


@contextmanager
def own_records_ignored() -> Iterator[None]:
    """Mutant: records of the pipeline's own writes are not looked at."""
    original = World._passes
    with patch.object(World, "_passes", lambda world, record: not world.by_pipeline and original(world, record)):
        yield


# ---------------------------------------------------------------- listing
@contextmanager
def in_both(**functions: Any) -> Iterator[None]:
    """Replace functions both where a listing is processed and where it is sent on."""
    with patch.multiple(fanout, **functions), patch.multiple(handover, **functions):
        yield


@contextmanager
def index_row_as_image() -> Iterator[None]:
    original = fanout.list_page

    def list_page(listing: Any, *args: Any) -> Work:
        rows: dict[Any, Any] = {}
        table = listing.push.rules[0].listed_entity.table

        def ask(request: Request) -> Work:
            whole = replace(request, attributes=None) if isinstance(request, List) else request
            answer = yield whole
            if isinstance(request, List):
                rows.update({table.key_of(item): item for item in answer.items})
            return answer

        found = yield from answered(original(listing, *args), ask)
        return [(key, rows[key]) for key, _ in found]

    with patch.object(fanout, "list_page", list_page):
        yield


@contextmanager
def first_page_only() -> Iterator[None]:
    original = fanout.list_page

    def list_page(listing: Any, *args: Any) -> Work:
        found = yield from original(listing, *args)
        listing.done = True
        return found

    with in_both(list_page=list_page):
        yield


@contextmanager
def second_look_if(allowed: Callable[[Any, Any], bool]) -> Iterator[None]:
    original = fanout.send_second_look_of_push

    def send_second_look_of_push(listing: Any, bounds: Any) -> Work:
        if allowed(listing, bounds):
            yield from original(listing, bounds)

    with in_both(send_second_look_of_push=send_second_look_of_push):
        yield


@contextmanager
def second_look_too_early() -> Iterator[None]:
    """The second look is asked for after the first page, while the others are still to be listed."""
    original, original_page = fanout.send_second_look_of_push, fanout.list_page

    def list_page(listing: Any, *args: Any) -> Work:
        first = listing.cursor is None
        found = yield from original_page(listing, *args)
        if first and not listing.failed:
            yield from original(listing, args[1])
        return found

    def send_second_look_of_push(_listing: Any, _bounds: Any) -> Work:
        return
        yield

    with in_both(list_page=list_page, send_second_look_of_push=send_second_look_of_push):
        yield
