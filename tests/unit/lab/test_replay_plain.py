"""Replay of plain writes: whatever an application writes on items of rules of any kind, its recording replays right."""

from __future__ import annotations

from random import Random

import pytest

from sync_rules.adapters.memory import MemoryStore
from sync_rules.lab.delivery import VARIANTS
from sync_rules.lab.recording_replay import Replay
from sync_rules.language.load import parse_rules
from sync_rules.model.items import Change, ItemKey
from sync_rules.model.values import Item
from sync_rules.rules.ruleset import Rules
from tests.support import every_kind
from tests.support.builders import m, n, s
from tests.support.tapes import Tape, recorded
from tests.support.worlds import record_of

MORE = {
    "paths": "{path: part.path, parent: parent_id, depth: depth, carry: [owner, spec.model]}",
    "titles": "{mirror: post, into: by_title}",
    "tagged": "{mirror: order, into: by_tag, each: {tag: tags}, attributes: [total]}",
    "by_status": "{count: order, into: user.by_status, per: status, shards: 2}",
    "bought": "{copy: user.name, into: order.buyer.name, mode: snapshot}",
}
ENTITIES = """\
  by_title: {table: shop, key: {PK: "TITLE#{title}", SK: TITLE}}
  by_tag:   {table: shop, key: {PK: "TAG#{tag}", SK: "OF#{user_id}#{order_id}"}}
"""


def all_kinds() -> Rules:
    entities = every_kind.ENTITIES + ENTITIES
    return parse_rules(every_kind.text_of({**every_kind.RULES, **every_kind.EFFECTS, **MORE}, entities=entities))


class Application:
    """Random writes on items of every entity: roots and children, items under the keys of mirrors, moves, deletes."""

    def __init__(self, rules: Rules, seed: int) -> None:
        self.tables, self.random = rules.tables, Random(seed)

    def item(self) -> tuple[str, Item]:
        pick = self.random.choice
        user_id, order_id, part_id = pick("12"), pick("xy"), pick("abc")
        name, mail, title = s(pick(("Ada", "Bea"))), s(pick(("a@b", "c@d"))), pick(("T", "U"))
        some = {"owner": name, "spec": pick((m(model=title and s(title)), m(x=n(1)), s("no map")))}
        made: tuple[tuple[str, Item], ...] = (
            ("shop", every_kind.user(user_id, name=name, rank=n(pick((1, 2))), email=mail)),
            (
                "shop",
                every_kind.order(user_id, order_id, pick((5, 0, -3)), status=s(pick(("OPEN", "VOID"))))
                | pick(({}, {"tags": {"SS": ["t", "u"]}}, {"tags": {"L": [s("t")]}})),
            ),
            ("posts", every_kind.post(pick("pq"), user_id, title)),
            ("parts", every_kind.part(part_id, pick((None, None, "a", "b", "c"))) | pick(({}, some))),
            ("shop", {"PK": s(f"EMAIL#{mail['S']}"), "SK": s("EMAIL"), "name": name, "own": n(1)}),
            ("shop", {"PK": s(f"TITLE#{title}"), "SK": s("TITLE"), "title": s("own")}),
            ("shop", {"PK": s("TAG#t"), "SK": s(f"OF#{user_id}#{order_id}"), "total": n(77)}),
        )
        return pick(made)

    def write(self, store: MemoryStore) -> None:
        """Put, change or delete one item."""
        table, item = self.item()
        at = self.tables[table].key_of(item)
        assert at is not None
        present, chance = store.item(at), self.random.random()
        if present is not None and chance < 0.2:
            store.delete(at)
        elif present is None or chance < 0.6:
            store.put(table, item)
        else:
            name = self.random.choice([*item])
            changed = {**present, name: item[name]}
            if self.random.random() < 0.2 and name not in at.attributes():
                del changed[name]
            store.put(table, changed)


def recorded_plain(rules: Rules, seed: int, writes: int) -> list[dict]:
    """Records of an application that writes where no pipeline runs."""
    bodies: list[dict] = []

    def note(at: ItemKey, old: Item | None, new: Item | None) -> None:
        change = Change(at, old, new, str(1_000 + len(bodies)), 1_700_000_000_000)
        bodies.append({"eventID": f"e{len(bodies)}", **record_of(rules, change)})

    application, store = Application(rules, seed), MemoryStore(rules.tables, note)
    for _ in range(writes):
        application.write(store)
    return bodies


def recorded_beside(rules: Rules, seed: int, writes: int) -> list[dict]:
    """Records of the same application beside a pipeline, which comes to rest now and then."""
    tape, application = Tape(rules), Application(rules, seed)
    for _ in range(writes):
        application.write(tape.stage.store)
        if application.random.random() < 0.6:
            tape.do()
    tape.do()
    return tape.bodies


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("record", [recorded_plain, recorded_beside])
def test_replay_of_what_an_application_wrote_ends_right(tmp_path, record, seed):
    """Writes on items of every kind of rule, beside a pipeline or before there was one, replay right, in order and
    under one other delivery.
    """
    rules = all_kinds()
    records = recorded(tmp_path / "r.jsonl", rules, record(rules, seed, 25))
    for delivery in (VARIANTS[0], VARIANTS[1 + seed % (len(VARIANTS) - 1)]):
        run = Replay(rules, delivery)
        assert [str(one) for one in run.mismatches(records)] == []


def test_replay_makes_the_edit_of_a_carried_attribute_on_a_root(tmp_path):
    """On a root the attribute is the application's own, and its children take the new value from there."""
    rules = all_kinds()
    tape = Tape(rules)
    tape.put("parts", every_kind.part("a") | {"owner": s("Ada")}, every_kind.part("b", "a"))
    tape.put("parts", every_kind.part("a") | {"owner": s("Bea"), "path": s("a"), "depth": n(0)})
    run = Replay(rules, VARIANTS[0])
    assert list(run.mismatches(recorded(tmp_path / "r.jsonl", rules, tape.bodies))) == []
    owners = [item["owner"] for item in run.store.items("parts")]
    assert owners == [s("Bea"), s("Bea")]


def test_replay_keeps_an_item_of_the_application_under_the_key_of_a_mirror(tmp_path):
    """An item that names no source is no mirror: it is replayed, and neither changed nor missed at the end."""
    rules = all_kinds()
    own = {"PK": s("EMAIL#a@b"), "SK": s("EMAIL"), "name": s("own")}
    tape = Tape(rules)
    tape.put("shop", own, every_kind.user("1", email=s("a@b")), own | {"name": s("edited")})
    run = Replay(rules, VARIANTS[0])
    assert list(run.mismatches(recorded(tmp_path / "r.jsonl", rules, tape.bodies))) == []
    assert run.store.item(tape.rules.tables["shop"].key_of(own)) == own | {"name": s("edited")}
