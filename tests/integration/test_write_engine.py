"""Transactions on the embedded engine do what they do in memory, by requests that the service takes."""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from random import Random

import pytest

from sync_rules.adapters import aws
from sync_rules.adapters.dynamodb import DynamoStore
from sync_rules.language.load import load_rules
from sync_rules.pipeline.books import finish_empty
from sync_rules.pipeline.requests import NULL_PORTS, World, run_work
from sync_rules.write import Transact
from sync_rules.write.document import parse_document
from sync_rules.write.preview import preview_write
from tests.support import engines, every_kind
from tests.support.builders import s
from tests.support.depth import spread_over_night
from tests.support.every_kind import user
from tests.support.transacted import Shop, state_of
from tests.support.worlds import Parked
from tests.unit.write import test_every_kind
from tests.unit.write.test_every_kind import actions_of, transacted

TRANSACTIONS = 40
PAGE = engines.ROOT / "docs/writing.md"


class Site:
    """The shop of every kind on an engine, and a client that counts requests."""

    def __init__(self, endpoint_url: str) -> None:
        self.rules = every_kind.rules_of(prefix=engines.unique_prefix(), effects=False)
        engines.create(endpoint_url, self.rules.tables)
        self.client = aws.dynamodb(endpoint_url)
        self.store = DynamoStore(self.client, self.rules.tables)
        assert run_work(finish_empty(self.rules), World(self.store, NULL_PORTS, Parked())) == ()
        self.requests: list[str] = []
        self.client.meta.events.register("before-call.dynamodb", self._count)

    def _count(self, model, **_):
        self.requests.append(model.name)

    def transact(self, **options) -> Transact:
        return Transact(self.rules, self.client, deadline_seconds=60, **options)


@pytest.fixture
def site(engine):
    return Site(engine)


@pytest.mark.parametrize("seed", spread_over_night(range(3)))
def test_write_engine_the_service_does_what_memory_does(site, seed):
    """Random transactions, one after the other: engine and memory come to the same state."""
    random, shop = Random(seed), Shop(test_every_kind.RULES)
    for _ in range(TRANSACTIONS):
        actions = actions_of(random)
        with shop.transact() as here, site.transact(raw=True) as there:
            for action in actions:
                transacted(here, action)
                transacted(there, action)
        assert here.result == there.result
    assert state_of(site.rules, site.store) == shop.state()


def test_write_engine_a_preview_is_what_is_sent(site):
    """A preview reads the tables, writes nothing, and shows the requests that the transaction then makes."""
    with site.transact(raw=True) as tx:
        tx.put("user", user("7", name=s("Ada")))
    body = {"actions": [{"put": {"entity": "order", "item": {"user_id": "7", "order_id": "9", "total": 12}}}]}
    before = state_of(site.rules, site.store)
    site.requests.clear()
    found = preview_write(site.rules, body, site.client)
    assert site.requests == [operation for operation, _ in found.reads]
    assert state_of(site.rules, site.store) == before
    sent: list[dict] = []
    site.client.meta.events.register_first(
        "provide-client-params.dynamodb.TransactWriteItems", lambda params, **_: sent.append(params)
    )
    with site.transact() as tx:
        parse_document(body).add_to(tx)
    assert [params["TransactItems"] for params in sent] == [[*found.actions]]


def test_write_engine_the_page_shows_what_happens(engine, tmp_path, monkeypatch):
    """Every example of the page, on an engine."""
    text = PAGE.read_text()
    (rules_text,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    prefix = engines.unique_prefix()
    file = Path("rules.yaml")
    file.write_text(re.sub(r"(\w+):( +)\{key: \{PK: S", rf"\1:\2{{name: {prefix}\1, key: {{PK: S", rules_text))
    named = load_rules(file)
    engines.create(engine, named.tables)
    client = aws.dynamodb(engine)
    assert run_work(finish_empty(named), World(DynamoStore(client, named.tables), NULL_PORTS, Parked())) == ()
    example = re.sub(r'(TableName=|"TableName": )"shop"', rf'\1"{prefix}shop"', text)
    test = doctest.DocTestParser().get_doctest(example, {"client": client}, PAGE.name, str(PAGE), 0)
    results = doctest.DocTestRunner().run(test)
    assert results.attempted > 10
    assert not results.failed
