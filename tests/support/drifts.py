"""Drift of every kind, as data: an edit made behind the pipeline, and the findings that verify must report.

A test puts a `Drifted` into a shop where everything is right. Each edit touches as few items as possible, and its side
effects, such as the total of a wrong entry, are named too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sync_rules.audit.compare import Drift
from sync_rules.model.values import AttributeValue, Item
from tests.support import every_kind
from tests.support.builders import m, n, s
from tests.support.every_kind import order, part, post, user

Place = tuple[str, ...]  # a table and the values of a key
Edit = tuple[Place, dict[str, AttributeValue | None] | None]  # attributes, None to remove one; None: the whole item
Told = tuple[str, Drift, Place]

RULES = every_kind.RULES | {
    "cleared": "{copy: user.email, into: order.mail, on_delete: clear}",
    "policed": "{copy: user.email, into: order.guarded, on_delete: restrict, where: \"status == 'LIVE'\"}",
}
ITEMS: tuple[tuple[str, Item], ...] = (
    ("shop", order("1", "a", 10)),
    ("shop", order("1", "b", 5, status=s("VOID"))),
    ("shop", order("2", "z", 0)),  # nothing is summed of it
    ("shop", order("9", "q", 1)),  # its user is gone
    ("shop", user("1", name=s("Ada"), rank=n(1), email=s("a@x"))),
    ("shop", user("2")),  # says nothing
    ("shop", user("3")),  # has nothing
    ("posts", post("p", "1", "Hello")),
    ("posts", post("q", "2", "There")),
    ("parts", part("c", "b")),
    ("parts", part("b", "a")),
    ("parts", part("a")),
)


@dataclass(frozen=True)
class Drifted:
    """An edit with its main finding (`told`) and all others (`beside`). `repairable`: --repair leaves nothing."""

    name: str
    edits: tuple[Edit, ...]
    told: Told
    beside: tuple[Told, ...] = ()
    repairable: bool = True

    @property
    def found(self) -> set[Told]:
        return {self.told, *self.beside}


USER, SILENT, IDLE = ("shop", "USER#1", "PROFILE"), ("shop", "USER#2", "PROFILE"), ("shop", "USER#3", "PROFILE")
ORDER, QUIET, LONELY = ("shop", "USER#1", "ORDER#a"), ("shop", "USER#2", "ORDER#z"), ("shop", "USER#9", "ORDER#q")
MIRROR, OLD_MIRROR, LOST_MIRROR = (("shop", f"EMAIL#{mail}", "EMAIL") for mail in ("a@x", "old@x", "lost@x"))
CHILD = ("parts", "c")
RANKED = "least/R/USER#1\x1fPROFILE"
RANK, OLD_RANK, LOST_RANK = (
    ("ledger", RANKED, f"{rank}\x1fUSER#1\x1fORDER#{name}")
    for rank, name in (("11311", "a"), ("11307", "a"), ("113199", "x"))
)


def entry(rule: str, of: Place, order_sk: str = "") -> Place:
    return ("ledger", f"{rule}/L/{of[1]}", order_sk or of[2])


def total(rule: str, of: Place) -> Place:
    return ("ledger", f"{rule}/T/{of[1]}", "PROFILE")


def booked(rule: str, of: Place, amount: int) -> dict[str, AttributeValue | None]:
    """The attributes of a ledger entry."""
    return {"into": {"L": [s(f"{rule}/T/{of[1]}"), s("PROFILE")]}, "at": s("n"), "n": n(amount)}


def one(
    rule: str,
    drift: Drift,
    place: Place,
    *edits: Edit,
    repairable: bool = True,
    beside: tuple[Told, ...] = (),
    of: str = "",
) -> Drifted:
    return Drifted(f"{rule}-{drift.value}{of}", edits, (rule, drift, place), beside, repairable)


def attribute(rule: str, name: str, **holds: tuple[Place, AttributeValue | None]) -> Iterator[Drifted]:
    """Drift of one attribute that a rule keeps."""
    for word, (place, value) in holds.items():
        yield one(rule, Drift(word), place, (place, {name: value}))


def entries(rule: str) -> Iterator[Drifted]:
    """Drift of the entries of a ledger, each with the total that no longer is their sum."""
    off = ((f"{rule}.ledger", Drift.WRONG, total(rule, ORDER)),)
    mine, ghost = entry(rule, ORDER), entry(rule, ORDER, "ORDER#ghost")
    name = f"{rule}.ledger"
    yield one(name, Drift.WRONG, mine, (mine, {"n": n(11)}), beside=off)
    yield one(name, Drift.MISSING, mine, (mine, None), beside=off)
    yield one(name, Drift.ORPHAN, ghost, (ghost, booked(rule, ORDER, 3)), beside=off)


X = s("x")
DRIFTS: tuple[Drifted, ...] = (
    *attribute("names", "user_name", wrong=(ORDER, X), missing=(ORDER, None), extra=(QUIET, X)),
    *attribute("cleared", "mail", wrong=(ORDER, X), missing=(ORDER, None), extra=(QUIET, X), orphan=(LONELY, X)),
    one("policed", Drift.ORPHAN, LONELY, (LONELY, {"status": s("LIVE")}), repairable=False),
    *attribute("told", "counted", wrong=(ORDER, n(9)), missing=(ORDER, None)),
    *attribute("heads", "head", wrong=(USER, X), missing=(USER, None), extra=(SILENT, X)),
    *attribute("posts", "posts", wrong=(USER, m(p=m(title=X))), missing=(USER, m()), extra=(SILENT, m(p=m(), q=m(title=s("There"))))),
    one("posts", Drift.ORPHAN, IDLE, (IDLE, {"posts": m(gone=m())})),
    *attribute("tags", "orders", missing=(USER, None), extra=(USER, {"SS": ["a", "b"]}), orphan=(USER, {"SS": ["a", "x"]})),
    one("tags", Drift.STUCK, SILENT, (SILENT, {"orders": X}), repairable=False),
    *attribute("paths", "path", wrong=(CHILD, X)),
    one("paths", Drift.MISSING, CHILD, (CHILD, {"path": None, "depth": None})),
    one("paths", Drift.ORPHAN, ("parts", "d"), (("parts", "d"), {"parent_id": s("gone"), "path": X}), repairable=False),
    one("paths", Drift.STUCK, ("parts", "o"), (("parts", "o"), {"parent_id": s("o")}), repairable=False),
    *attribute("mails", "name", wrong=(MIRROR, X)),
    one("mails", Drift.MISSING, MIRROR, (MIRROR, None)),
    one("mails", Drift.EXTRA, OLD_MIRROR, (OLD_MIRROR, {"user_id": s("1"), "name": s("Ada")})),
    one("mails", Drift.ORPHAN, LOST_MIRROR, (LOST_MIRROR, {"user_id": s("7"), "name": s("Ada")})),
    *entries("counted"),
    *entries("spent"),
    one("spent.ledger", Drift.EXTRA, entry("spent", QUIET), (entry("spent", QUIET), booked("spent", QUIET, 4)),
        beside=(("spent.ledger", Drift.WRONG, total("spent", QUIET)),)),
    one("spent.ledger", Drift.WRONG, total("spent", USER), (total("spent", USER), {"n": n(99)}),
        beside=(("spent", Drift.WRONG, USER),), of="-total"),
    *attribute("counted", "counted", missing=(IDLE, None)),
    *attribute("spent", "spent", wrong=(USER, n(7)), missing=(USER, None)),
    *attribute("least.ledger", "n", wrong=(RANK, n(11))),
    one("least.ledger", Drift.MISSING, RANK, (RANK, None)),
    one("least.ledger", Drift.EXTRA, OLD_RANK, (OLD_RANK, {"n": n(7)})),
    one("least.ledger", Drift.ORPHAN, LOST_RANK, (LOST_RANK, {"n": n(99)})),
    *attribute("least", "least", wrong=(USER, n(7)), missing=(USER, None), extra=(IDLE, n(7))),
    *attribute("recounted", "most", wrong=(USER, n(7)), missing=(USER, None), extra=(IDLE, n(7))),
)  # fmt: skip
