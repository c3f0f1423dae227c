"""An attribute of Time to Live that a rule makes: it follows its date, and a date that is none is told."""

from __future__ import annotations

import pytest

from sync_rules.audit.compare import Drift
from sync_rules.lab.delivery import VARIANTS
from sync_rules.language.load import parse_rules
from tests.support.builders import n, s
from tests.support.verifying import require_scenario, verify
from tests.support.worlds import Scene

RULES = """
tables: {games: {key: {game_id: S}}}
entities: {game: {table: games}}
rules:
  games-expire: {derive: game.expires_at, as: "ttl(ended_at, 60d)"}
"""
SCENARIO = """
rules: rules.yaml
data: {games: {game_id: a, ended_at: "2026-10-24T04:26:40Z"}}
steps:
- say: a game that has not ended stays
  put: {games: {game_id: b}}
  expect: {games: [{game_id: a, expires_at: 1798000000}, {game_id: b, expires_at: <absent>}]}
- say: it ends, and the other one goes on for a second
  update:
    games:
    - {key: {game_id: b}, set: {ended_at: 1792816060}}
    - {key: {game_id: a}, set: {ended_at: "2026-10-24T04:26:41Z"}}
  expect: {games: [{game_id: a, expires_at: 1798000001}, {game_id: b, expires_at: 1798000060}]}
- say: milliseconds are no date, so that the game stays and is reported
  update: {games: {key: {game_id: b}, set: {ended_at: 1792816060000}}}
  expect: {games: {game_id: b, expires_at: <absent>}}
  expect_failures:
    games-expire: "ended_at is a number that is not a time: expected an ISO 8601 date and time, or seconds since 1970"
- say: whoever makes a game live longer needs another date
  update: {games: {key: {game_id: a}, set: {expires_at: 1999999999}}}
  expect: {games: {game_id: a, expires_at: 1798000001}}
- say: the game expires
  expire: {games: {game_id: a}}
  expect_gone: {games: {game_id: a}}
"""
REASON = "ended_at is a string that is not a time: expected an ISO 8601 date and time, or seconds since 1970"


@pytest.mark.parametrize("delivery", VARIANTS, ids=str)
def test_time_to_live_follows_its_date_under_every_delivery(delivery, tmp_path):
    """The number is absent while there is no date, and never of an older one."""
    require_scenario(tmp_path, RULES, SCENARIO, delivery)


def test_time_to_live_of_no_date_is_found_by_verify_and_removed_by_repair():
    """Without its date an item must not go: the number is removed, and the date is reported before and after."""
    scene = Scene(parse_rules(RULES))
    scene.put("games", {"game_id": s("a"), "ended_at": s("soon")}, {"game_id": s("b"), "ended_at": n("1792816000")})
    scene.rest()
    (failure,) = {(one.rule, one.key.values[0][2], one.reason) for one in scene.parked.failures}
    assert failure == ("games-expire", "a", REASON)

    def found(*, repair):
        findings, _ = verify(scene, repair=repair)
        return {(one.difference.target.values[0][2], one.difference.drift) for one in findings}

    assert found(repair=False) == {("a", Drift.STUCK)}
    scene.there("games", {"game_id": s("a"), "ended_at": s("soon"), "expires_at": n("1798000000")})
    scene.there("games", {"game_id": s("b"), "ended_at": n("1792816000"), "expires_at": n("1")})
    assert found(repair=True) == {("a", Drift.STUCK), ("b", Drift.WRONG)}
    items = {item["game_id"]["S"]: item.get("expires_at") for item in scene.memory.items("games")}
    assert items == {"a": None, "b": n("1798000000")}
