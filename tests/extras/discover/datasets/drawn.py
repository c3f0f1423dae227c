"""Data sets that a seed draws: entities and their keys, names, noise, and which copies of every kind a script made.

Invariant: no data set here was made for the search, and you must not tune the search for one of them. Seeds that no
developer looked at judge the thresholds that fit the named data sets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from tests.extras.discover.datasets.careless import (
    collected,
    copied,
    counted,
    derived,
    embedded,
    mirrored,
    pathed,
    taken,
)
from tests.extras.discover.datasets.dataset import DataSet, Record
from tests.extras.discover.datasets.words import Words

ENTITIES: Final = "patient doctor visit ward driver parcel depot course student lesson ticket agent recipe artist concert venue lease tenant claim policy supplier shipment contract vehicle booking room".split()  # noqa: SIM905
STATES: Final = (["new", "open", "done"], ["A", "B", "C", "D"], ["LOW", "MID", "HIGH"], ["draft", "live"])
TEXTS: Final = ("name", "title", "email", "note", "code", "city", "street", "label")
Made = Callable[[int], Any]


@dataclass
class Kind:
    """An entity as it is drawn: the field that identifies it, its parent, and the fields that name others."""

    name: str
    own: str
    parent: Kind | None = None
    parent_field: str = ""
    texts: list[str] = field(default_factory=list)
    amounts: list[str] = field(default_factory=list)
    states: list[str] = field(default_factory=list)
    dates: list[str] = field(default_factory=list)
    inside: bool = False  # its items lie in the partition of their parent
    listed: bool = False  # its id is an attribute
    named_in_part: bool = False  # its children name it by its id, and its key holds more: no rule can link them


class Drawing:
    """One data set in the making."""

    def __init__(self, seed: int, *, bare: bool = False) -> None:
        self.data, self.w, self.bare = DataSet(f"{'bare' if bare else 'drawn'}-{seed}"), Words(f"drawn {seed}"), bare
        self.camel = self.w.yes(0.4)
        self.single = self.w.yes()
        self.root = self.w.one(["META", "PROFILE", "#INFO", ""])
        self.sign = self.w.one(["#", "#", "_", "|"])
        self.kinds: list[Kind] = []

    def called(self, *words: str) -> str:
        """A name in the style of the data set."""
        words = tuple(part for word in words for part in word.split("_"))
        return words[0] + "".join(word.title() for word in words[1:]) if self.camel else "_".join(words)

    # ------------------------------------------------------------ items
    def make(self) -> DataSet:
        names = self.w.rng.sample(ENTITIES, self.w.number(6, 3))
        for at, name in enumerate(names):
            parent = self.w.one(self.kinds) if at and (at == 1 or self.w.yes(0.75)) else None
            self.kinds.append(self._kind(name, parent))
        if self.single:
            self.data.table("main", "PK", "SK", **({"GSI1": ("GSI1PK", "GSI1SK")} if self.w.yes() else {}))
        for kind in self.kinds:
            self._items(kind)
        for kind in () if self.bare else self.kinds:
            self._taken(kind)
        for kind in () if self.bare else self.kinds:
            self._copies(kind)
        return self.data

    def _kind(self, name: str, parent: Kind | None) -> Kind:
        inside = self.single and parent is not None and self.w.yes(0.6)
        own = self.called(name, "id") if self.single or self.w.yes(0.7) else "id"
        if parent is None:
            called = ""
        elif self.w.yes(0.75):
            called = self.called(parent.name, "id")
        else:
            called = self.w.one([parent.name, self.called("belongs", "to"), self.called("main", parent.name)])
        return Kind(name, own, parent, called, inside=inside, listed=not self.single or (not inside and self.w.yes()))

    def _format_id(self, kind: Kind) -> Made:
        start = self.w.one([1, 1, 1000])
        short = kind.name[:3]
        style = self.w.one(["number", "text", "uuid", "ulid", "short"])
        if style == "number" and not self.single:
            return lambda at: start + at
        if style == "uuid":
            return lambda _: self.w.uuid()
        if style == "ulid":
            return lambda _: self.w.ulid()
        if style == "short":
            return lambda at: f"{short}_{at * 7919 % 99991:05}"
        return lambda at: str(start + at)

    def _noise(self, kind: Kind) -> dict[str, Made]:
        w, made = self.w, dict[str, Made]()
        for name in w.rng.sample(TEXTS, w.number(5, 2)):
            kind.texts.append(self.called(name))
            made[kind.texts[-1]] = self._text(name)
        for name in w.rng.sample(["price", "weight", "points", "size"], w.number(3, 0 if kind.parent is None else 1)):
            kind.amounts.append(self.called(name))
            made[kind.amounts[-1]] = (lambda _: w.price()) if name == "price" else (lambda _: w.number(400, 1))
        for name in w.rng.sample(["status", "level", "state"], w.number(3)):
            among = w.one(STATES)
            kind.states.append(self.called(name))
            made[kind.states[-1]] = lambda _, among=among: w.one(among)
        for name in w.rng.sample(["created_at", "updated_at"], w.number(3)):
            kind.dates.append(self.called(name))
            made[kind.dates[-1]] = lambda _: w.time()
        for name in w.rng.sample(["active", "locked", "checked"], w.number(3)):
            chance = w.one([0.5, 0.9, 0.97])
            made[self.called(name)] = lambda _, chance=chance: w.yes(chance)
        others: dict[str, Made] = {
            "day": lambda _: w.day(),
            "version": lambda _: 1,
            "position": lambda at: at + 1,
            "rank": lambda _: w.number(8),
            "region": lambda _: "eu",
            "type": lambda _: kind.name.upper(),
        }
        return made | {self.called(name): others[name] for name in w.rng.sample(sorted(others), w.number(4))}

    def _text(self, name: str) -> Made:
        w = self.w
        return {
            "name": lambda _: w.person(),
            "title": lambda _: w.title(),
            "email": lambda _: w.mail(w.person()),
            "note": lambda _: w.text(),
            "code": lambda _: w.ulid()[-6:],
            "city": lambda _: w.place(),
            "street": lambda _: f"{w.place()} Road {w.number(400)}",
            "label": lambda _: w.thing(),
        }[name]

    def _items(self, kind: Kind) -> None:
        w, parents = self.w, self.data.entities[kind.parent.name] if kind.parent else []
        count = w.number(160, 40) if not parents else min(1400, round(len(parents) * w.one([2, 3, 5])))
        new, noise, optional = self._format_id(kind), self._noise(kind), w.yes(0.3) and kind.parent is not None
        records: list[Record] = []
        for at in range(count):
            own = new(at)
            record: Record = {f"_{kind.own}": own, **{name: made(at) for name, made in noise.items()}}
            if kind.parent and parents and not (optional and w.yes(0.1) and not kind.inside):
                above = w.one(parents)
                record[f"_{kind.parent_field}"] = above[f"_{kind.parent.own}"]
            self._keyed(kind, record)
            records.append(record)
        if not self.single:
            both = kind.named_in_part = kind.parent is not None and not optional and w.yes(0.3)
            indexes = (
                {f"by_{kind.parent_field}": (kind.parent_field,)} if kind.parent and not both and w.yes(0.7) else {}
            )
            self.data.table(f"{kind.name}s", *([kind.parent_field, kind.own] if both else [kind.own]), **indexes)
        self.data.entity(kind.name, "main" if self.single else f"{kind.name}s", records)

    def _keyed(self, kind: Kind, record: Record) -> None:
        own, above = record[f"_{kind.own}"], record.get(f"_{kind.parent_field}") if kind.parent else None
        if not self.single:
            record[kind.own] = own
            if above is not None:
                record[kind.parent_field] = above
            return
        text = f"{kind.name.upper()}{self.sign}{own}"
        if kind.inside and kind.parent:
            kind.named_in_part = True
            record |= {"PK": f"{kind.parent.name.upper()}{self.sign}{above}", "SK": text}
        else:
            record |= {"PK": text, "SK": self.root or text}
            if above is not None:
                record[kind.parent_field] = above
        if kind.listed:
            record[kind.own] = own

    # ------------------------------------------------------------ what the team did
    def _copies(self, kind: Kind) -> None:
        w, keep = self.w, self.data.keep
        if kind.parent is not None and not kind.parent.named_in_part:
            self._down(kind, kind.parent)
            self._up(kind, kind.parent)
        if len(kind.texts) > 1 and kind.states and w.yes(0.5):
            text, state = kind.texts[0], kind.states[0]
            into = f"{kind.name}.{self.called('sort', 'key')}"
            keep(derived(self.data, into, [text, state], lambda r: f"{r[state].upper()}#{r[text]}"))
        if w.yes(0.35):
            last = kind.texts[-1]
            small = last in {"title", "note", "label", "email"}  # these are in small letters as they are
            into = f"{kind.name}.{self.called(last, 'upper' if small else 'lower')}"
            keep(derived(self.data, into, [last], lambda r: r[last].upper() if small else r[last].lower()))
        if kind.dates and w.yes(0.35):
            moment = kind.dates[0]
            keep(derived(self.data, f"{kind.name}.{self.called('month')}", [moment], lambda r: r[moment][:7]))
        if kind.parent is None and w.yes(0.25):
            self._tree(kind)
        if self.single and kind.parent is None and kind.listed and "code" in kind.texts and w.yes(0.5):
            self._mirror(kind)

    def _taken(self, kind: Kind) -> None:
        """Snapshots, before anything is copied of a source that they change."""
        parent = kind.parent
        if parent and not parent.named_in_part and parent.amounts and kind.dates and self.w.yes(0.5):
            link = {f"_{parent.own}": f"_{kind.parent_field}"}
            into = f"{kind.name}.{self.called(parent.name, parent.amounts[0].lower(), 'then')}"
            self.data.keep(taken(self.data, f"{parent.name}.{parent.amounts[0]}", into, link, kind.dates[0]))

    def _down(self, kind: Kind, parent: Kind) -> None:
        """Copies from the parent onto its children."""
        w = self.w
        link = {f"_{parent.own}": f"_{kind.parent_field}"}
        taken_names = {name for record in self.data.entities[kind.name][:1] for name in record}
        for text in w.rng.sample(parent.texts, min(len(parent.texts), w.number(3, 1))):
            style = w.one(["both", "both", "same", "own", "map"])
            into = {"both": self.called(parent.name, text.lower()), "same": text, "own": self.called("shown", text.lower()), "map": f"{parent.name}.{text}"}[style]  # fmt: skip
            if into.partition(".")[0] in taken_names or kind.parent_field in {into, parent.name}:
                into = self.called(parent.name, text.lower(), "copy")
            self.data.keep(copied(self.data, f"{parent.name}.{text}", f"{kind.name}.{into}", link))

    def _up(self, kind: Kind, parent: Kind) -> None:
        """Numbers, sets, maps and lists of the children on their parent."""
        w, keep, data = self.w, self.data.keep, self.data
        link = {f"_{parent.own}": f"_{kind.parent_field}"}
        if w.yes(0.6):
            keep(counted(data, "count", kind.name, f"{parent.name}.{self.called(kind.name, 'count')}", link))
        if kind.states and w.yes(0.4):
            state = kind.states[0]
            value = data.entities[kind.name][0][state]
            into = f"{parent.name}.{self.called(value.lower(), kind.name + 's')}"
            keep(counted(data, "count", kind.name, into, link, where=lambda r: r[state] == value))
        for amount in kind.amounts:
            if w.yes(0.4):
                function = w.one(["sum", "mean", "min", "max"])
                into = f"{parent.name}.{self.called(kind.name, amount.lower(), function)}"
                keep(counted(data, function, f"{kind.name}.{amount}", into, link))
        if w.yes(0.25):
            into = f"{parent.name}.{self.called(kind.name, 'list')}"
            keep(embedded(data, kind.name, into, link, [kind.texts[0], *kind.amounts[:1]], by=f"_{kind.own}"))
        if w.yes(0.25):
            keep(
                collected(
                    data, f"{kind.name}.{kind.texts[-1]}", f"{parent.name}.{self.called(kind.name, 'texts')}", link
                )
            )

    def _tree(self, kind: Kind) -> None:
        """Items of one entity below each other."""
        parent = self.called("parent", "id")
        records = self.data.entities[kind.name]
        for at, record in enumerate(records[1:], 1):
            if self.w.yes(0.9):
                record[parent] = records[self.w.number(at)][f"_{kind.own}"]
        self.data.keep(pathed(self.data, f"{kind.name}.path", f"_{kind.own}", parent, self.w.one(["/", "|", "."])))

    def _mirror(self, kind: Kind) -> None:
        self.data.entity(f"{kind.name}_by_code", "main", [])
        others = [name for name in (*kind.texts, *kind.states) if name != "code"][:2]

        def made(record: Record) -> Record:
            own = record[f"_{kind.own}"]
            return {
                "PK": f"CODE{self.sign}{record['code']}",
                "SK": kind.name.upper(),
                kind.own: own,
                f"_{kind.own}": own,
            }

        if len(others) == 2:
            into = f"{kind.name}_by_code"
            self.data.keep(mirrored(self.data, kind.name, into, made, attributes=others, key=f"_{kind.own}"))


def drawn(seed: int, *, bare: bool = False) -> DataSet:
    """The data set of a seed; a `bare` one has the same links and columns, and nothing is a copy of anything."""
    return Drawing(seed, bare=bare).make()
