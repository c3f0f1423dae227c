"""An attribute of Time to Live that a rule makes: what verify says of a date that is none."""

from __future__ import annotations

from sync_rules.audit.compare import Drift
from sync_rules.language.load import parse_rules
from tests.support.builders import n, s
from tests.support.verifying import verify
from tests.support.worlds import Scene

RULES = """
tables: {games: {key: {game_id: S}}}
entities: {game: {table: games}}
rules:
  games-expire: {derive: game.expires_at, as: "ttl(ended_at, 60d)"}
"""
REASON = "ended_at is a string that is not a time: expected an ISO 8601 date and time, or seconds since 1970"


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
