"""One finding for each thing: however often and from whatever side verify meets a wrong part, it is counted once."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from sync_rules.audit import verifier
from sync_rules.language.load import parse_rules
from tests.support import every_kind
from tests.support.builders import n, s
from tests.support.verifying import verify
from tests.support.worlds import Scene

MIRRORS = {
    "mails": "{mirror: user, into: by_email, attributes: [name, rank]}",
    "tagged": "{mirror: order, into: by_tag, each: {tag: tags}, attributes: [total]}",
    "whole": "{mirror: post, into: by_title}",
}
ENTITIES = """\
  by_title: {table: shop, key: {PK: "TITLE#{title}", SK: TITLE}}
  by_tag:   {table: shop, key: {PK: "TAG#{tag}", SK: "OF#{user_id}#{order_id}"}}
"""
FOREIGN = [s("x"), s("1"), s("2"), s("p0"), n(7)]


def at_rest(users: int = 12) -> Scene:
    text = every_kind.text_of(every_kind.RULES | MIRRORS, entities=every_kind.ENTITIES + ENTITIES)
    scene = Scene(parse_rules(text))
    for i in range(users):
        scene.put("shop", every_kind.user(str(i), name=s("Ada"), rank=n(1), email=s(f"{i}@x")))
        scene.put("shop", every_kind.order(str(i), "o", i, tags={"SS": ["t", "u"]}, status=s("OPEN")))
        scene.put("posts", every_kind.post(f"p{i}", str(i), f"T{i}"))
        scene.put("parts", every_kind.part(f"c{i}", f"c{i - 1}" if i % 4 else None))
    scene.rest()
    return scene


def tamper(scene: Scene, random: Random, share: float) -> None:
    """Change or take one attribute of some of the items, not their keys."""
    for table in ("shop", "posts", "parts", "ledger"):
        for item in [*scene.memory.items(table)]:
            key = scene.rules.tables[table].key_of(item)
            names = [name for name in item if name not in key.attributes()]
            if not names or random.random() > share:
                continue
            name, value = random.choice(names), random.choice([None, *FOREIGN[:4]])
            now = {**item, name: value} if value is not None else {k: v for k, v in item.items() if k != name}
            scene.there(table, now)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("candidates", [1, 10_000])
def test_each_thing_is_found_once(monkeypatch, seed, candidates):
    """Random damage to items of all kinds: no two findings are of one thing, in one batch of looks or in many; a
    mirror is found once, whatever was changed on it; and what is repaired is counted once as well.
    """
    monkeypatch.setattr(verifier, "CANDIDATES_MAX", candidates)
    monkeypatch.setattr(verifier, "PAGE_MAX_ITEMS", 7)
    scene = at_rest()
    tamper(scene, Random(seed), 0.3)
    findings, tally = verify(scene)
    things = Counter(one.difference.thing for one in findings)
    assert set(things.values()) == {1}
    assert tally.drift.total() == len(things)
