"""Damaged books: whatever else writes to a ledger, verify finds it, a repair makes it right, and the pipeline goes on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import product

import pytest

from sync_rules.audit.verify_tally import Tally
from sync_rules.language.load import parse_rules
from sync_rules.model.items import ItemKey
from sync_rules.model.values import AttributeValue, Item
from sync_rules.rules.books import MARK
from tests.support.builders import m, n, s
from tests.support.depth import spread_over_night
from tests.support.every_kind import order, text_of, user
from tests.support.stacked import backfill_of
from tests.support.verifying import verify
from tests.support.worlds import Scene

COUNTERS = {
    "count": "count order into user.number",
    "sum": "sum order.total into user.number",
    "shards": "{sum: order.total, into: user.number, shards: 3}",
    "per": "{sum: order.total, into: user.number, per: status, shards: 2}",
    "mean": "{mean: order.total, into: user.number, shards: 2, places: 0}",
    "min": "min order.total into user.number",
    "max": "max order.total into user.number",
    "list": "{collect: order.total, into: user.number, as: list}",
    "first": "{collect: order.total, into: user.number, join: '+', order: -status, limit: 1}",
}
BYSTANDER = {"other": "sum order.total into user.other"}  # shares the ledger, and must not be touched
CHILD, OTHER = "1", "2"  # the order whose books are damaged, and one of the same user


def numbers(scene: Scene) -> dict[str, tuple[AttributeValue | None, AttributeValue | None]]:
    return {
        str(item["PK"]): (item.get("number"), item.get("other"))
        for item in scene.memory.items("shop")
        if item["SK"] == s("PROFILE")
    }


def expected(scene: Scene, counter: str) -> dict[str, tuple[AttributeValue | None, AttributeValue | None]]:
    """The numbers of all users, counted from their orders by nothing but this."""
    found = {}
    for user_id in "ab":
        mine = [i for i in scene.memory.items("shop") if i["PK"] == s(f"USER#{user_id}") and "total" in i]
        totals = [int(item["total"]["N"]) for item in mine]
        groups: Counter[str] = Counter()
        for item in mine:
            groups[item["status"]["S"]] += int(item["total"]["N"])
        value = {
            "count": n(len(mine)),
            "sum": n(sum(totals)),
            "shards": n(sum(totals)),
            "per": m(**{group: n(number) for group, number in groups.items()}),
            "mean": n((2 * sum(totals) + len(totals)) // (2 * len(totals))) if totals else None,
            "min": n(min(totals)) if totals else None,
            "max": n(max(totals)) if totals else None,
            "list": {"L": [n(total) for total in sorted(totals)]},
            "first": s(max((item["status"]["S"], item["SK"]["S"], item["total"]["N"]) for item in mine)[-1])
            if mine
            else None,
        }[counter]
        found[str(s(f"USER#{user_id}"))] = (value, n(sum(totals)))
    return found


@cache
def at_rest(counter: str) -> Scene:
    scene = Scene(parse_rules(text_of({"mine": COUNTERS[counter], **BYSTANDER})))
    scene.put("shop", user("a"), user("b"))
    scene.put("shop", *(order("a", str(i), 2 * i, status=s("OPEN" if i < 3 else "SENT")) for i in range(1, 5)))
    scene.put("shop", order("b", "9", 9, status=s("OPEN")))
    scene.rest()
    return scene


class Books:
    """A ledger at rest, and what in it belongs to one order."""

    def __init__(self, counter: str) -> None:
        before = at_rest(counter)
        self.counter, self.scene = counter, Scene(before.rules)
        for table in ("shop", "ledger"):
            self.scene.there(table, *before.memory.items(table))

    def _keys(self, start: str, contains: str = "") -> list[ItemKey]:
        table = self.scene.rules.tables["ledger"]
        keys = [table.key_of(item) for item in self.scene.memory.items("ledger")]
        return [
            k
            for k in keys
            if k is not None and (t := [v for *_, v in k.values])[0].startswith(start) and contains in str(t)
        ]

    @property
    def ranked(self) -> bool:
        return self.counter in ("min", "max", "list", "first")

    def entry(self, child: str = CHILD) -> ItemKey:
        start = "mine/R/USER#a" if self.ranked else "mine/L/"
        (key,) = self._keys(start, f"ORDER#{child}")
        return key

    def total(self, child: str = CHILD) -> ItemKey:
        """The total that an order adds to; for min and max the item of another order, which is all the books have."""
        if self.ranked:
            return self.entry(OTHER)
        into = [value["S"] for value in self.scene.item(self.entry(child))["into"]["L"]]
        return self.scene.at("ledger", *into)

    def at(self) -> str:
        return "n" if self.ranked else self.scene.item(self.entry())["at"]["S"]

    def contents(self) -> list[Item]:
        """The items of the ledger. Those of ranked counters have only the attributes that the code reads."""
        names = ("PK", "SK", "n") if self.ranked else ("PK", "SK", "into", "at", "n", "v", "=", "=OPEN", "=SENT", "=X")
        items = self.scene.memory.items("ledger")
        return [{name: item[name] for name in names if name in item} for item in items]

    def write(self, key: ItemKey, changes: Item | None) -> None:
        """A foreign write. None: the item is deleted; an attribute that is None: it is removed."""
        if changes is None:
            self.scene.memory.delete(key)
            return
        item = {**self.scene.item(key), **changes}
        self.scene.put("ledger", {name: value for name, value in item.items() if value is not None})

    def verify(self, *, repair: bool) -> Tally:
        return verify(self.scene, repair=repair)[1]


Damage = Callable[[Books], object]
WRONG_TYPES: tuple[AttributeValue, ...] = (s("x"), {"NULL": True}, {"L": []})


def into(*values: str) -> AttributeValue:
    return {"L": [s(value) for value in values]}


def of_entry(**changes: AttributeValue | None) -> Damage:
    return lambda books: books.write(books.entry(), changes)


def of_total(**changes: AttributeValue | None) -> Damage:
    def damage(books: Books) -> None:
        at = books.at()
        books.write(books.total(), {at if name == "amount" else name: value for name, value in changes.items()})

    return damage


ENTRY: dict[str, Damage] = {
    "entry gone": lambda books: books.write(books.entry(), None),
    **{f"entry without {name}": of_entry(**{name: None}) for name in ("n", "at", "into")},
    "entry without anything": of_entry(n=None, at=None, into=None),
    **{f"entry's {name} is {v}": of_entry(**{name: v}) for name in ("n", "at", "into") for v in (*WRONG_TYPES, n(5))},
    "entry's n is nothing": of_entry(n=n(0)),
    "entry's at is of another group": of_entry(at=s("=SENT")),
    "entry's at is of all": of_entry(at=s("n")),
    "entry's at is the version": of_entry(at=s("v")),
    "entry's into is too short": of_entry(into=into("mine/T/USER#a")),
    "entry's into has a number": of_entry(into={"L": [s("mine/T/USER#a"), n(1)]}),
    "entry's into is another parent's": of_entry(into=into("mine/T/USER#b", "PROFILE")),
    "entry's into is no parent's": of_entry(into=into("mine/T/x", "y")),
    "entry's into is another rule's total": of_entry(into=into("other/T/USER#a", "PROFILE")),
    "entry's into is no ledger's": of_entry(into=into("x", "y")),
    "entry is another child's": lambda books: books.write(
        books.entry(), {k: v for k, v in books.scene.item(books.entry(OTHER)).items() if k not in ("PK", "SK")}
    ),
}
TOTAL: dict[str, Damage] = {
    "total gone": lambda books: books.write(books.total(), None),
    "total without its number": of_total(amount=None),
    "total without v": of_total(v=None),
    "total without anything": of_total(amount=None, v=None),
    **{f"total's number is {v}": of_total(amount=v) for v in (*WRONG_TYPES, n(99), n(0), n(-1))},
    **{f"total's v is {v}": of_total(v=v) for v in WRONG_TYPES},
    "total has one group more": of_total(**{"=X": n(3)}),
    "total without its members": of_total(**{"=": None}),
    "total has other members": of_total(**{"=": n(9)}),
    "total has a group that is no number": of_total(**{"=X": s("x")}),
}
BOTH: dict[str, Damage] = {
    f"{one}; {two}": lambda books, one=one, two=two: (TOTAL[two](books), ENTRY[one](books))
    for one, two in product(
        ("entry gone", "entry without into", "entry's n is {'S': 'x'}", "entry's into is another parent's"),
        ("total gone", "total's number is {'S': 'x'}", "total's v is {'S': 'x'}", "total's number is {'N': '99'}"),
    )
}
DAMAGES = ENTRY | TOTAL | BOTH


def goes_on(books: Books) -> None:
    """Changes by the application: orders change, go, come, and move to another user."""
    scene = books.scene
    scene.put("shop", order("a", CHILD, 50, status=s("SENT")), order("a", "5", 1, status=s("NEW")))
    scene.memory.delete(scene.at("shop", "USER#a", f"ORDER#{OTHER}"))
    scene.memory.delete(scene.at("shop", "USER#a", "ORDER#3"))
    scene.put("shop", order("b", "3", 6, status=s("SENT")))


MEANWHILE = ("nothing", "seen", "worked on")
SHARES = 3  # the number of shares of all damages: every counter but sum meets one share
CASES = [("sum", number) for number in range(len(MEANWHILE))]
CASES += [(counter, number % SHARES) for number, counter in enumerate(COUNTERS) if counter != "sum"]


def share_of(damages: dict[str, Damage], counter: str, first: int) -> list[tuple[str, Damage]]:
    return [*damages.items()] if counter == "sum" else [*damages.items()][first::SHARES]


@pytest.mark.parametrize(("counter", "first"), spread_over_night(CASES))
def test_damaged_books_are_found_and_repaired_and_the_pipeline_goes_on(counter, first):
    """Each attribute of entry and total missing, of another type or of another item, either gone, and both: found, all
    repaired in one run, and right after the next changes. Of the damage the pipeline has seen nothing, its record, or
    that and changes of the same orders: each with each for sum, a share in turn for the others.
    """
    for number, (name, damage) in enumerate(share_of(DAMAGES, counter, first), start=first):
        books, meanwhile = Books(counter), MEANWHILE[number % len(MEANWHILE)]
        scene = books.scene
        before = books.contents()
        damage(books)
        harmful = books.contents() != before
        if meanwhile == "nothing":
            scene.records.clear()
        if meanwhile == "worked on":
            goes_on(books)
        scene.rest()
        found = books.verify(repair=False)
        assert found.remaining_count or meanwhile != "nothing" or not harmful, (name, "is not found")
        assert found.remaining_count or numbers(scene) == expected(scene, counter), (name, "is wrong, and is not found")
        repaired = books.verify(repair=True)
        assert repaired.remaining_count == 0, (name, repaired.unmended)
        scene.rest()
        assert numbers(scene) == expected(scene, counter), (name, "is not repaired")
        scene.parked.failures.clear()
        goes_on(books)
        scene.rest()
        assert numbers(scene) == expected(scene, counter), (name, "is wrong afterwards")
        assert books.verify(repair=False).drift.total() == 0, (name, "leaves the books wrong")
        assert scene.parked.failures == [], name


# ---------------------------------------------------------------- the mark
def of_mark(**changes: AttributeValue | None) -> Damage:
    return lambda books: books.write(books.scene.at("ledger", "mine/B", "-"), changes)


def of_another_rule(books: Books) -> None:
    other = at_rest("min" if books.counter == "max" else "max")
    key = books.scene.at("ledger", "mine/B", "-")
    books.write(key, {name: other.item(key)[name] for name in MARK})


MARKS: dict[str, Damage] = {
    "mark gone": lambda books: books.write(books.scene.at("ledger", "mine/B", "-"), None),
    "mark is another rule's": of_another_rule,
    "mark without anything": of_mark(**dict.fromkeys(MARK)),
    **{f"mark without {name}": of_mark(**{name: None}) for name in MARK},
    **{f"mark's {name} is {v}": of_mark(**{name: v}) for name in MARK for v in (*WRONG_TYPES, {"BOOL": False})},
    "mark's fingerprint is a number": of_mark(fingerprint=n(1)),
    "mark's complete is a text": of_mark(complete=s("true")),
    **{f"mark's begun is {number}": of_mark(begun=n(number)) for number in ("0", "-1", "0.5", "1E+100")},
}


@pytest.mark.parametrize(("counter", "first"), CASES[2:])
def test_damaged_mark_makes_its_rule_wait_until_a_backfill_or_a_repair(counter: str, first: int):
    """Each attribute of the mark is missing, of another type or another rule's. The pipeline then writes no number from
    these books, and verify names the rule. Either cure completes the books, with all changes that came meanwhile.
    """
    for number, (name, damage) in enumerate(share_of(MARKS, counter, first)):
        books = Books(counter)
        scene, before = books.scene, numbers(books.scene)
        damage(books)
        goes_on(books)
        scene.rest()
        right = expected(scene, counter)
        assert numbers(scene) == {key: (before[key][0], other) for key, (_, other) in right.items()}, (name, "is used")
        assert set(books.verify(repair=False).waiting) == {"mine"}, (name, "is not found")
        if number % 2:
            assert books.verify(repair=True).remaining_count == 0, name
        else:
            backfill_of(scene).run()
        scene.rest()
        assert numbers(scene) == right, (name, "is not mended")
        goes_on(books)
        scene.rest()
        assert numbers(scene) == expected(scene, counter), (name, "is wrong afterwards")
        assert not books.verify(repair=False).waiting, name
        assert scene.parked.failures == [], name
