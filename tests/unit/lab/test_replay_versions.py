"""Replay of histories that keep the newest versions alone: what was right on the way is right in the end."""

from __future__ import annotations

import pytest

from sync_rules.lab.recording import Recorded
from sync_rules.lab.recording_replay import replay
from sync_rules.language.load import parse_rules
from sync_rules.model.writes import Delete
from sync_rules.rules.kinds.history import HistoryRule
from sync_rules.rules.ruleset import Rules
from tests.support.builders import key, n, s
from tests.support.tapes import Tape, recorded


def rules_with(keep: str) -> Rules:
    return parse_rules(f"""
tables: {{shop: {{key: {{PK: S, SK: S}}}}}}
entities:
  product: {{table: shop, key: {{PK: "PRODUCT#{{id}}", SK: PRODUCT}}}}
  edition: {{table: shop, key: {{PK: "PRODUCT#{{id}}", SK: "V#{{version:pad(6)}}"}}}}
rules:
  editions: {{history: product, into: edition, attributes: [name]{keep}}}
""")


RULES = rules_with(", keep: {count: 2}")
TABLE = RULES.tables["shop"]


def product(number: str, version: int):
    return {"PK": s(f"PRODUCT#{number}"), "SK": s("PRODUCT"), "version": n(version), "name": s(f"name {version}")}


@pytest.fixture
def records(tmp_path) -> tuple[Recorded, ...]:
    """Versions that come and go: by the rule, by hand, and of an item that is erased and one that begins again."""
    tape = Tape(RULES)
    for version in (1, 2):
        tape.put("shop", product("a", version))
    tape.put("shop", {"PK": s("PRODUCT#a"), "SK": s("V#000090"), "name": s("by hand")})
    tape.put("shop", product("a", 3))
    tape.do(Delete(key(TABLE, "PRODUCT#a", "V#000090"), ()))
    for version in (5, 6):
        tape.put("shop", product("b", version))
    tape.do(Delete(key(TABLE, "PRODUCT#b", "PRODUCT"), ()))
    tape.put("shop", product("b", 1))
    for version in (5, 6):
        tape.do(Delete(key(TABLE, "PRODUCT#b", f"V#00000{version}"), ()))
    tape.put("shop", product("c", 1), product("c", 2))
    tape.do(Delete(key(TABLE, "PRODUCT#c", "PRODUCT"), ()))
    for version in (1, 2):
        tape.do(Delete(key(TABLE, "PRODUCT#c", f"V#00000{version}"), ()))
    return recorded(tmp_path / "r.jsonl", RULES, tape.bodies)


@pytest.mark.parametrize("keep", [", keep: {count: 2}", ", keep: {count: 3}", ""])
@pytest.mark.parametrize("with_copies", [False, True])
def test_replay_of_versions_that_were_deleted_ends_right(records, keep, with_copies):
    """Deleted by the application, or by the recorded pipeline under another count: nobody misses them."""
    assert replay(records, rules_with(keep), with_copies=with_copies) is None


def test_replay_misses_a_version_that_nobody_deleted(records, monkeypatch):
    """A rule that puts no version is found."""
    monkeypatch.setattr(HistoryRule, "write_for", lambda *_given: None)
    found = replay(records, RULES)
    assert found is not None
    assert (found.rule, found.drift) == ("editions", "missing")
