"""The work that a batch asks for: any relevant change counts, only the image is the newest, all else costs nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sync_rules.adapters.host import THIS_PROCESS
from sync_rules.model.entities import Ref
from sync_rules.model.items import Change
from sync_rules.pipeline.consumer import Consumer
from sync_rules.pipeline.messages import ChunkMessage, PullMessage, PushMessage
from sync_rules.pipeline.requests import World
from sync_rules.pipeline.tasks import Pull, list_chunks, list_pushes, make_tasks
from tests.support.builders import (
    book_item,
    key,
    library,
    mapping,
    n,
    order_item,
    rules_of,
    s,
    shop,
    user_item,
)
from tests.support.worlds import Inbox, Parked, Untouchable, event_of

SHOP = shop()
NAMES = SHOP.rules["user-name-on-orders"]
USER = key(SHOP.tables["shop"], "USER#1", "PROFILE")
ORDER = key(SHOP.tables["shop"], "USER#1", "ORDER#1")


def user(old, new, **given) -> Change:
    images = [None if name is None else user_item("1", name=s(name)) for name in (old, new)]
    return Change(USER, *images, **given)


def order(old, new, **given) -> Change:
    images = [None if name is None else order_item("1", "1", user_name=s(name)) for name in (old, new)]
    return Change(ORDER, *images, **given)


# ---------------------------------------------------------------- what counts


def test_plan_reads_a_target_again_when_records_may_overtake():
    """The image of a Kinesis record may not be the newest, a removal neither: the target is read."""
    plan = make_tasks([order(None, "Ada", in_order=False), order("Ada", None, in_order=False)], SHOP)
    assert plan.pulls == (Pull(ORDER, None, (NAMES,), settles=True),)


def test_plan_lists_the_targets_of_one_source_once():
    """Rules that find the same targets in the same way share one push; those of another link have their own."""
    emails = replace(NAMES, name="emails", mapping=mapping(email="user_email"))
    payers = replace(NAMES, name="payers", mapping=mapping(name="payer"), link=(("user_id", Ref("payer", ("payer",))),))
    pushes = make_tasks([user(None, "Ada")], rules_of(NAMES, payers, emails)).pushes
    assert [push.rules for push in pushes] == [(NAMES, emails), (payers,)]


def test_plan_measures_lag_from_the_oldest_change():
    """Per rule, the time of the oldest change in the batch that concerned it; others do not count."""
    changes = [user("Ada", "Bea", created_ms=20), user("Bea", "Cid", created_ms=30), user("Cid", "Cid", created_ms=10)]
    assert make_tasks(changes, SHOP).since_ms == {NAMES.name: 20}


# ---------------------------------------------------------------- what does not
IRRELEVANT = {
    "source-other-attribute": (SHOP, Change(USER, user_item("1", age=n(1)), user_item("1", age=n(2)))),
    "target-other-attribute": (SHOP, Change(ORDER, order_item("1", "1", a=n(1)), order_item("1", "1", a=n(2)))),
    "target-removed": (SHOP, order("Ada", None)),
    "source-removed-and-kept": (SHOP, user("Ada", None)),
    "source-of-a-snapshot": (shop(mode="snapshot"), user("Ada", "Bea")),
    "equal-numbers": (
        shop(mapping=mapping(age="user_age")),
        Change(USER, user_item("1", age=n("1.0")), user_item("1", age=n("1"))),
    ),
    "key-of-no-entity": (
        SHOP,
        Change(key(SHOP.tables["shop"], "SHOP#1", "X"), None, {"PK": s("SHOP#1"), "SK": s("X"), "name": s("Ada")}),
    ),
}


@pytest.mark.parametrize(("rules", "change"), IRRELEVANT.values(), ids=IRRELEVANT)
def test_plan_irrelevant_records_cost_no_store_call(rules, change):
    """A record that changes nothing a rule reads or writes is answered without a single request."""
    queue, parked = Inbox(), Parked()
    consumer = Consumer(rules, World(Untouchable(), queue, parked), THIS_PROCESS)
    change = replace(change, position="1")
    assert consumer.handle_event(event_of(rules, change), lambda: 60_000) == {"batchItemFailures": []}
    assert (queue.messages, parked.failures) == ([], [])
    assert not consumer.telemetry.outcomes


# ---------------------------------------------------------------- from messages and scans
def test_plan_of_chunks_is_of_items_that_the_rules_list():
    """A chunk asks for those of its targets that its rules still list, and for nothing where none is left."""
    order = key(SHOP.tables["shop"], "USER#1", "ORDER#1")
    message = ChunkMessage((NAMES.name, "gone"), USER, (order, USER, order._replace(table="gone")), removed=True)
    (chunk,) = list_chunks(message, SHOP)
    assert chunk.targets == (order,)
    assert (chunk.push.source, chunk.push.rules, chunk.push.removed) == (USER, (NAMES,), True)
    assert list_chunks(replace(message, rules=("gone",)), SHOP) == ()
    assert list_chunks(replace(message, source=order), SHOP) == ()
    assert list_chunks(replace(message, targets=(USER,)), SHOP) == ()


def test_plan_of_messages_of_before_a_change_of_the_rules():
    """A message whose rule has another source by now, or whose table is gone, asks for nothing; where the listing
    changed, it starts from the beginning; rules that are listed apart now are two pushes.
    """
    rules = library()
    author = key(rules.tables["authors"], "a1")
    at = {"book_id": s("b1"), "author_id": s("a1")}
    message = PushMessage(("author-on-books",), author, cursor=book_item("b1", "a1"))
    consumer = Consumer(rules, World(Untouchable(), Inbox(), Parked()), THIS_PROCESS)
    for source in (key(rules.tables["books"], "b1"), author._replace(table="gone")):
        consumer.handle_message(replace(message, source=source))
    consumer.handle_message(PullMessage(author._replace(table="gone")))
    assert [push.cursor for push in list_pushes(message, rules)] == [at]
    assert [push.cursor for push in list_pushes(replace(message, cursor={"other": s("x")}), rules)] == [None]
    (one,) = rules.rules.values()
    apart = rules_of(one, replace(one, name="apart", link=(("author_id", Ref("editor_id", ("editor_id",))),)))
    assert len(list_pushes(replace(message, rules=(one.name, "apart")), apart)) == 2
