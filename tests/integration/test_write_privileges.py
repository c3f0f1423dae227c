"""The role of the write function: it is enough for every kind of rule, and allows nothing that no transaction does."""

from __future__ import annotations

from random import Random

import pytest

from handlers import write
from sync_rules.deploy.permissions import WRITE
from sync_rules.deploy.roles import format_role_id
from sync_rules.functions import logs
from tests.support import every_kind
from tests.support.cold import start_cold
from tests.support.policy import arn, matches
from tests.support.privileges import Account, Stack, group_of, whole_story
from tests.support.worlds import Stdout, context
from tests.unit.write.test_document import as_document
from tests.unit.write.test_every_kind import actions_of

TRANSACTIONS = 150
ROLE = format_role_id(WRITE)


@pytest.fixture
def account(engine, monkeypatch, tmp_path):
    """A shop of every kind of rule, whose application writes by the function."""
    monkeypatch.setattr(logs.logger.registered_handler, "stream", Stdout())
    start_cold()
    story = whole_story(every_kind.text_of(every_kind.RULES) + "deploy: {write: true}\n", puts={})
    yield Account(Stack(engine), story, tmp_path, monkeypatch.setenv)
    start_cold()


@pytest.mark.night
def test_write_privileges_are_enough_and_nothing_is_spare(account):
    """Random writes of every kind of item: none is refused, and each permission is used."""
    random = Random(7)
    with account.guard.watching(account.stack.dynamodb), account.guard.acting(ROLE):
        for action in ("CreateLogStream", "PutLogEvents"):
            account.guard.require((f"logs:{action}", arn("logs", f"log-group:{group_of(WRITE)}:log-stream:2026/1")))
        documents = (as_document(actions_of(random)) for _ in range(TRANSACTIONS))
        answers = [write.handler(document, context()) for document in documents]
    assert account.guard.denied == []
    assert [one for one in answers if "error" in one] == []
    used = {account.named(pair) for role, pair in account.guard.used if role == ROLE}
    assert {account.named(pair) for pair in account.guard.policies[ROLE]} == used


def test_write_privileges_of_one_table_are_of_no_other(account):
    """A table that no rule and no entity is of is out of reach, and so is a scan."""
    for action in ("dynamodb:Scan", "dynamodb:DeleteTable", "dynamodb:PartiQLUpdate", "sqs:SendMessage"):
        assert not any(one == action for one, _ in account.guard.policies[ROLE])
    other = arn("dynamodb", f"table/{account.prefix}others")
    assert not any(matches(resource, other) for _, resource in account.guard.policies[ROLE])
