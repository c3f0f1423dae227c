"""The stages of the pipeline: one table orders them, and every kind of work runs through it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from sync_rules.audit.verifier import Verifier
from sync_rules.jobs.backfill.page import Selection, process_page
from sync_rules.jobs.redrive.work import work_of
from sync_rules.language.load import parse_rules
from sync_rules.model.items import Failure, ItemKey
from sync_rules.model.limits import Bounds
from sync_rules.pipeline import work
from sync_rules.pipeline.failure_records import failure_record, read_failure_record
from sync_rules.pipeline.messages import PullMessage, PushMessage
from sync_rules.pipeline.requests import Read, Scan, run_work
from sync_rules.pipeline.tasks import tasks_of
from sync_rules.write import fresh
from tests.support.builders import s
from tests.support.every_kind import RULES, order, text_of, user
from tests.support.transacted import Shop

NAMES = parse_rules(text_of({"names": RULES["names"]}))
ALL = Selection(NAMES, frozenset(NAMES.rules))


@pytest.fixture
def shop() -> Shop:
    """A shop with a user and an order of hers that shows another name."""
    shop = Shop(NAMES)
    shop.scene.there("shop", user("7", name=s("Ada")), order("7", "1", 5, user_name=s("Eve")))
    return shop


@pytest.fixture
def asked(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> list[Read]:
    """The requests of a toy stage, which is added in one place: it reads the user and stops there."""
    requests: list[Read] = []

    def toy(_tasks, _rules, _bounds, _report):
        request = Read((a_user(shop),))
        requests.append(request)
        yield request

    monkeypatch.setitem(work.STAGES, "toy", toy)
    return requests


def retry(shop: Shop, failure: Failure) -> None:
    record = read_failure_record(failure_record(failure, datetime(2026, 1, 1, tzinfo=UTC)))
    run_work(work_of(record, NAMES, Bounds()), shop.scene.world)


def a_user(shop: Shop) -> ItemKey:
    return shop.scene.rules.tables["shop"].key_of(user("7"))


def an_order(shop: Shop) -> ItemKey:
    return shop.scene.rules.tables["shop"].key_of(order("7", "1", 5))


def by_record(shop: Shop) -> None:
    shop.scene.put("shop", user("7", name=s("Bob")))
    shop.scene.deliver()


def by_transact(shop: Shop) -> None:
    with shop.transact() as tx:
        tx.update("user", user("7"), set={"name": s("Bob")})


def by_follow(shop: Shop) -> None:
    with shop.follow() as follow:
        follow.change("user", user("7", name=s("Ada")), user("7", name=s("Bob")))


WAYS: dict[str, Callable[[Shop], object]] = {
    "record": by_record,
    "pull message": lambda shop: shop.scene.consumer.handle_message(PullMessage(an_order(shop))),
    "push message": lambda shop: shop.scene.consumer.handle_message(PushMessage(("names",), a_user(shop))),
    "backfill": lambda shop: run_work(process_page(Scan("shop", 10), ALL, Bounds()), shop.scene.world),
    "redrive": lambda shop: retry(shop, Failure("names", an_order(shop), "TooLarge")),
    "redrive without images": lambda shop: retry(shop, Failure("names", a_user(shop), "TooLarge", position="7")),
    "verify": lambda shop: [
        *Verifier(NAMES, shop.scene.world, frozenset({"names"}), repair=True, grace_seconds=0).sweep()
    ],
    "transact": by_transact,
    "follow": by_follow,
    "fresh": lambda shop: fresh(
        NAMES, None, "order", order("7", "1", 5), raw=True, store=shop.scene.memory, deadline_seconds=60.0
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_work_of_every_kind_runs_a_stage_that_is_added_once(shop: Shop, asked: list[Read], way: str):
    """A toy stage is one more line in the table: each kind of work makes its request."""
    WAYS[way](shop)
    assert asked


def test_work_runs_a_stage_in_the_place_of_its_line(shop: Shop, monkeypatch: pytest.MonkeyPatch):
    """Stages run in the order of the table: each of them sees what those before it have written."""
    seen = []

    def first(_tasks, _rules, _bounds, _report):
        seen.append((yield Read((an_order(shop),)))[0]["user_name"])

    monkeypatch.setattr(work, "STAGES", {"first": first, **work.STAGES, "last": first})
    by_record(shop)
    assert seen == [s("Eve"), s("Bob")]


def test_work_leaves_a_stage_to_a_caller_that_does_it_in_its_own_way(shop: Shop):
    """The caller's stage runs instead of the one of the table, and all others run as they are."""
    own: list[int] = []

    def instead(tasks, _rules, _bounds, _report):
        own.append(len(tasks.pushes))
        yield from ()

    shop.scene.put("shop", user("7", name=s("Bob")))
    tasks = tasks_of(shop.scene.records, NAMES)
    run_work(work.do_tasks(tasks, NAMES, Bounds(), {"push": instead}), shop.scene.world)
    assert own == [1]
    assert shop.scene.item(an_order(shop))["user_name"] == s("Eve")
