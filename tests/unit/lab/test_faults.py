"""Faults of the requests of a rehearsed pipeline."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from sync_rules.adapters.memory import MemoryStore
from sync_rules.lab.delivery import Delivery
from sync_rules.lab.faults import DiedError, Faults, FaultyWorld
from sync_rules.model.entities import KeyAttribute, Table
from sync_rules.model.errors import StoreError
from sync_rules.model.items import Failure
from sync_rules.model.writes import Put, Status, expect_value
from sync_rules.pipeline.messages import PullMessage
from sync_rules.pipeline.requests import Apply, Later, Park, Read
from tests.support.builders import key
from tests.support.worlds import Inbox, Parked, Telephone

TABLE = Table("items", "items", KeyAttribute("id", "S"), None, ())
KEYS = tuple(key(TABLE, name) for name in "abcd")
WRITES = tuple(Put(one, one.attributes(), (expect_value(("id",), None),)) for one in KEYS)


def world(seed: int = 0, *, crashes: float = 0.0, throttles: float = 0.0) -> FaultyWorld:
    delivery = Delivery(seed=seed, crashes=crashes, throttles=throttles)
    faults = Faults(delivery, Random(seed), calm=False)
    store = MemoryStore({"items": TABLE})
    return FaultyWorld(store, Inbox(), Parked(), caller=Telephone(), faults=faults)


def there(faulty: FaultyWorld) -> int:
    return sum(item is not None for item in faulty.store.read(Read(KEYS)))


def test_faults_throttled_writes_may_have_happened_or_may_happen_yet():
    """A throttled write is answered as failed, and was made, is made later, or is never made."""
    fates: Counter[str] = Counter()
    for seed in range(20):
        faulty = world(seed, throttles=1)
        assert {result.status for result in faulty.answer(Apply(WRITES))} == {Status.FAILED}
        flying = len(faulty.faults.flying)
        fates.update({"done": there(faulty), "later": flying, "never": len(WRITES) - there(faulty) - flying})
        done = there(faulty)
        assert faulty.land(all_of_them=True) == bool(flying)
        assert there(faulty) == done + flying
        assert faulty.faults.flying == []
    assert min(fates[fate] for fate in ("done", "later", "never")) > 10


def test_faults_a_worker_dies_before_amid_or_after_its_writes():
    """A worker that dies during a request has done none, some or all of its writes."""
    seen = set()
    for seed in range(40):
        faulty = world(seed, crashes=1)
        with pytest.raises(DiedError):
            faulty.answer(Apply(WRITES))
        seen.add(there(faulty))
    assert seen == {0, 1, 2, 3, 4}


def test_faults_a_message_may_be_sent_though_nobody_is_told():
    """A queue that throttles may have taken the message, and so may failures have taken the record."""
    sent = parked = 0
    for seed in range(20):
        faulty = world(seed, throttles=1)
        for request in (Later(PullMessage(KEYS[0])), Park(Failure("rule", KEYS[0], "Reason"))):
            with pytest.raises(StoreError):
                faulty.answer(request)
        sent += len(faulty.queue.messages)  # type: ignore[attr-defined]
        parked += len(faulty.failures.failures)  # type: ignore[attr-defined]
    assert 0 < sent < 20
    assert 0 < parked < 20
