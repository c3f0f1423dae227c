"""Rules files by grammar: every kind and option, key types, index shapes, cascades, one table or several.

Invariant: a file follows from its number alone. What the grammar writes is meant to be accepted by `check`; how often it
is not is counted, so that the grammar cannot quietly become poor.
"""

# ruff: noqa: C901, PLR0912 -- a choice is a branch

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from random import Random
from typing import Any, Final

from sync_rules.language.load import check_rules
from sync_rules.language.problems import Problem, list_errors
from sync_rules.rules import compiled_file
from sync_rules.rules.ruleset import Rules
from tests.kinds import TRIALS
from tests.simulation.kept_versions import history
from tests.simulation.spec import Spec

TRIES_MAX: Final = 200  # a file of one kind is often empty
NAMES: Final = ("user", "order", "team", "note", "part")
STATES: Final = ("OPEN", "SENT", "VOID")
SETTLES: Final = (1, 30, 900)
MADE: Final = re.compile(r"r\d+")  # attributes that rules write
TEXTS: Final = ("name", "title", '"full.name"', "größe", "info.city")
NUMBERS: Final = ("amount", "rank")
WEIGHTS: Final = (
    {"state": {"OPEN": 3, "SENT": 0.5, "VOID": -1}},
    {"values": {"state": {"OPEN": 3, "SENT": 0}}, "default": 0.5},
    {"values": {"flag": {"true": 2, "false": -1, "null": 0.25}}},
    {"values": {"state": {"OPEN": 3, "null": 2}}, "default": -1},
)
UNSAID: Final = "unsaid"  # no line says that all items are in an index: `check` must refuse a rule that lists by it
Form = dict[str, Any]


@dataclass(frozen=True)
class Relation:
    """Items of `many` name an item of `one`. `base`: the key of `many` lists them; `index` does, or nothing."""

    one: str
    many: str
    base: bool = False
    index: str | None = None
    given: Mapping[str, str] = field(default_factory=dict)
    sparse: bool = False


@dataclass
class File:
    """A rules file in the making."""

    random: Random
    tables: dict[str, Form] = field(default_factory=dict)
    entities: dict[str, Form] = field(default_factory=dict)
    rules: dict[str, Form | str] = field(default_factory=dict)
    ids: dict[str, list[tuple[str, str]]] = field(default_factory=dict)  # the identity of each entity: fields and types
    relations: list[Relation] = field(default_factory=list)
    readable: dict[str, list[str]] = field(default_factory=dict)  # by entity, texts of any type
    mirrors: set[str] = field(default_factory=set)
    before: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # `readable` before this rule: no cycles
    fresh: int = 0
    only: frozenset[str] = frozenset()  # the kinds of a small file; a file of all kinds has none here

    @property
    def body(self) -> Form:
        return {"tables": self.tables, "entities": self.entities, "rules": self.rules}

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def one(self, *some: Any) -> Any:
        return some[self.random.randrange(len(some))]

    def number(self) -> int:
        self.fresh += 1
        return self.fresh

    def text(self) -> str:
        """The file as text: block style outside, flow style inside, as people write it."""
        lines = []
        for section, entries in self.body.items():
            lines.append(f"{section}:")
            for name, form in entries.items():
                lines.append(f"  {name}: {form if isinstance(form, str) else json.dumps(form, ensure_ascii=False)}")
        return "\n".join(lines) + "\n"


# ---------------------------------------------------------------- tables and entities
def tables_and_entities(file: File) -> None:
    names = file.random.sample(NAMES, file.one(*((2, 2, 2, 3) if file.only else (2, 3, 3, 4))))
    if file.chance(0.6):
        file.tables["main"] = {"key": {"PK": "S", "SK": "S"}}
        if file.chance(0.2):
            file.tables["main"]["name"] = "${MAIN_TABLE:-prod-main}"
        if file.chance(0.2):
            file.tables["main"]["max_write_units_per_second"] = file.one(1, 500)
    for number, name in enumerate(names):
        _entity(file, name, names[:number])
        file.readable[name] = ["name", "state", *file.random.sample([*TEXTS[1:], *NUMBERS], 3)]
        if file.chance(0.5):
            file.readable[name].append(file.ids[name][-1][0])
    for number, name in enumerate(names):
        for parent in names[:number]:
            if not any((one.one, one.many) == (parent, name) for one in file.relations) and file.chance(0.7):
                _relation(file, parent, name)


def _entity(file: File, name: str, before: list[str]) -> None:
    parents = [one for one in before if all(kind != "B" for _, kind in file.ids[one])]
    inside_main = [one for one in parents if file.entities[one]["table"] == "main" and len(file.ids[one]) == 1]
    own, kind = f"{name}_id", file.one("S", "S", "S", "N", "B")
    choices: list[str] = ["own", "own", "pair"]
    choices += ["root", "root", "root2"] if "main" in file.tables else []
    choices += ["inside", "inside"] if inside_main else []
    choices += ["under", "under"] if any(len(file.ids[one]) == 1 for one in parents) else []
    match file.one(*choices):
        case "own":
            file.tables[f"{name}s"] = {"key": {own: kind}}
            file.entities[name] = {"table": f"{name}s"}
            file.ids[name] = [(own, kind)]
        case "pair":
            file.tables[f"{name}s"] = {"key": {"tenant": "S", own: file.one("S", "N")}}
            file.entities[name] = {"table": f"{name}s"}
            file.ids[name] = list(file.tables[f"{name}s"]["key"].items())
        case "root":
            key = {"PK": f"{name.upper()}#{{{own}}}", "SK": file.one("META", "PROFILE")}
            file.entities[name] = {"table": "main", "key": key}
            file.ids[name] = [(own, "S")]
        case "root2":
            file.entities[name] = {
                "table": "main",
                "key": {"PK": f"T#{{tenant}}#{name.upper()}#{{{own}}}", "SK": f"-{name}"},
            }
            file.ids[name] = [("tenant", "S"), (own, "S")]
        case "inside":
            parent = file.one(*inside_main)
            its = file.ids[parent][0][0]
            key = {"PK": f"{parent.upper()}#{{{its}}}", "SK": f"{name.upper()}#{{{own}}}"}
            file.entities[name] = {"table": "main", "key": key}
            file.ids[name] = [(its, "S"), (own, "S")]
            file.relations.append(Relation(parent, name, base=True))
        case "under":
            parent = file.one(*(one for one in parents if len(file.ids[one]) == 1))
            its, its_kind = file.ids[parent][0]
            file.tables[f"{name}s"] = {"key": {its: its_kind, own: file.one("S", "N")}}
            file.entities[name] = {"table": f"{name}s"}
            file.ids[name] = list(file.tables[f"{name}s"]["key"].items())
            file.relations.append(Relation(parent, name, base=True))


def _relation(file: File, one: str, many: str, given: Mapping[str, str] | None = None) -> Relation:
    """Items of `many` name `one` by attributes, through an index or by none."""
    table = file.tables[file.entities[many]["table"]]
    indexes: Form = table.setdefault("indexes", {})
    own = {name for name, _ in file.ids[many]}
    inside = own - table["key"].keys()  # fields that no item has as attributes, so that no index lists by them
    ids = file.ids[one]
    link = dict(given or {})
    for name, _ in ids:
        if name in inside and name not in link:
            link[name] = f"of_{name}_{file.number()}"
        taken = name in own or (any(name in index for index in _keys(table)) and name not in link)
        if name not in link and name != "tenant" and (taken or file.chance(0.4)):
            link[name] = f"of_{name}_{file.number()}"
    if file.chance(0.12) and given is None:  # no index: what needs no listing only
        relation = Relation(one, many, given=link)
        file.relations.append(relation)
        return relation
    name = f"by_{one}_{file.number()}"
    templated = not given and len(ids) == 1 and ids[0][1] != "B" and file.chance(0.3)
    if templated:
        file.entities[many].setdefault("key", {})
        number = file.number()
        at, field_name = f"G{number}PK", link.get(ids[0][0], ids[0][0])
        if field_name in own:
            templated = False
        else:
            file.entities[many]["key"][at] = f"{one.upper()}#{{{field_name}}}"
            indexes[name] = {at: "S"}
            if file.chance(0.5):
                file.entities[many]["key"][f"G{number}SK"] = f"{many.upper()}#{{{file.ids[many][-1][0]}}}"
                indexes[name][f"G{number}SK"] = "S"
    sparse = False
    if not templated:
        partition = {link.get(field_name, field_name): kind for field_name, kind in ids}
        sort = {}
        key = dict(table["key"])
        last, kind = next(reversed(key.items()))
        if file.chance(0.4) and last not in partition:
            sort = {last: kind}
        elif file.chance(0.6):
            sort, sparse = _sorted_by(file, many)
        if len(partition) > 1 or file.chance(0.3):
            indexes[name] = {"partition": partition, **({"sort": sort} if sort else {})}
            if file.chance(0.5):
                indexes[name]["projection"] = file.one("all", "keys", ["state"])
        else:
            indexes[name] = partition | sort
    relation = Relation(one, many, index=name, given=link, sparse=sparse)
    file.relations.append(relation)
    return relation


def _sorted_by(file: File, many: str) -> tuple[Form, bool]:
    """A sort key that items may lack: then all must have it, or a rule gives it to them, or the index is sparse."""
    name = f"at{file.number()}"
    how = file.one("required", "sparse", "derived") if file.chance(0.7) else UNSAID
    if how == "required":
        file.entities[many].setdefault("required", []).append(name)
    if how == "derived":
        texts = [one for one, kind in file.ids[many] if kind != "B"]
        if not texts:
            return {}, False
        file.rules[f"rule{len(file.rules)}"] = {"derive": f"{many}.{name}", "as": f"K#{{{texts[-1]}}}"}
    return {name: file.one("S", "S", "N") if how != "derived" else "S"}, how == "sparse"


def _keys(table: Form) -> list[Form]:
    return [{**one.get("partition", {}), **one.get("sort", {})} if "partition" in one else one for one in table.get("indexes", {}).values()]  # fmt: skip


# ---------------------------------------------------------------- conditions
def condition(file: File, name: str, source: str | None = None) -> str:
    """A condition over attributes of an item of an entity, and of its source."""

    def state() -> str:
        return file.one("state == 'OPEN'", "state != 'VOID'", 'contains(`["OPEN", "SENT"]`, state)')

    def atom() -> str:
        return file.one(
            state, state, lambda: "flag", lambda: "!flag", lambda: f"amount > `{file.one(1, 2, -1.5)}`",
            lambda: "amount <= `2`", lambda: "title", lambda: "title != '1'",
            lambda: "info.city == 'rome'", lambda: "title == name", lambda: "length(tags) > `1`",
            lambda: file.one("starts_with(title, 'n')", "tags && length(tags) > `1`"),
        )()  # fmt: skip

    def sourced() -> str:
        return file.one(f"{source}.flag", f"{source}.state == 'OPEN'", f"{source}.amount > amount")

    made = [text for text in file.before.get(name, ()) if MADE.fullmatch(text)]

    def of_rule() -> str:
        """An attribute that another rule writes: a rule that uses it waits."""
        text = file.one(*made)
        return file.one(text, text, f"!{text}", f"{text} == 'OPEN'", f"{text} != 'VOID'")

    def term() -> str:
        if made and file.chance(0.35):
            return of_rule()
        return sourced() if source is not None and file.chance(0.4) else atom()

    text = term()
    if file.chance(0.35):
        text = f"{text} {file.one('&&', '||')} {term()}"
    return text if file.chance(0.85) else f"!({text})"


# ---------------------------------------------------------------- rules
def _spot(file: File, entity: str) -> str:
    """A new attribute of an entity, which no rule reads yet."""
    name = f"r{file.number()}"
    name = file.one(name, name, name, f"box.{name}", f'"{name} ü"')
    file.readable[entity].append(name)
    return str(name)


def _listing(file: File, relation: Relation, form: Form) -> Form:
    """The options of a rule that lists through a relation."""
    if relation.given:
        form["link"] = dict(relation.given)
    if relation.index and file.chance(0.3):
        form["via"] = relation.index
    if relation.sparse:
        form["sparse"] = True
    if file.chance(0.2):
        form["settle_seconds"] = file.one(*SETTLES)
    return form


def _listed(file: File, wanted: Callable[[Relation], bool] = lambda _one: True) -> Relation | None:
    found = [one for one in file.relations if (one.base or one.index) and wanted(one)]
    return file.one(*found) if found else None


def _texty(file: File, entity: str) -> bool:
    return all(kind != "B" for _, kind in file.ids[entity])


def _default(file: File) -> Any:
    """A value of any type that a rules file can say."""
    return file.one("nobody", "OPEN", 0, -1.5, True, None, ["a", 1], {"city": "rome", "no": {}})


def copy(file: File) -> Form | str | None:
    relation = _listed(file)
    if relation is None:
        return None
    one, many = relation.one, relation.many
    read = file.random.sample(file.readable[one], min(len(file.readable[one]), file.one(1, 1, 2)))
    policy = file.one("keep", "clear", "clear", "delete", "delete", "restrict")
    form: Form = {}
    if len(read) == 1:
        form = {"copy": f"{one}.{read[0]}", "into": f"{many}.{_spot(file, many)}"}
    elif file.chance(0.5):
        name = f"r{file.number()}"
        form = {"copy": [f"{one}.{text}" for text in read], "into": f"{many}.{name}"}
        file.readable[many].append(name)
    else:
        form = {"copy": {f"{one}.{text}": _spot(file, many) for text in read}, "into": many}
    if not relation.given and isinstance(form["copy"], str) and file.chance(0.2):
        return f"copy {form['copy']} into {form['into']}"
    if file.chance(0.15):
        form["mode"] = "snapshot"
        policy = "keep"
    elif file.chance(0.3):
        names = [text.rpartition(".")[2] if '"' not in text else text for text in read]
        names = names if isinstance(form["copy"], list) else [*form["copy"].values()] if len(read) > 1 else []
        some = file.random.sample(names, file.one(1, len(names))) if names else []
        form["default"] = {name: _default(file) for name in some} if names else _default(file)
        if file.chance(0.3):
            form["on_delete"] = policy
        policy = form.get("on_delete", "keep")  # the one that is not said is left to the rule
    if policy != "keep":
        form["on_delete"] = policy
    if file.chance(0.4):
        form["where"] = condition(file, many, one if policy in ("keep", "clear") else None)
    if file.chance(0.15):
        form["strict"] = True
    return _listing(file, relation, form)


def late(file: File) -> Form | None:
    """A snapshot on items that nothing lists."""
    found = [one for one in file.relations if not one.base and not one.index and not one.sparse]
    if not found:
        return None
    relation = file.one(*found)
    form: Form = {"copy": f"{relation.one}.{file.one(*file.readable[relation.one])}"}
    form |= {"into": f"{relation.many}.{_spot(file, relation.many)}", "mode": "snapshot"}
    if file.chance(0.3):
        form["where"] = condition(file, relation.many, relation.one)
    return {**form, **({"link": dict(relation.given)} if relation.given else {})}


def within(file: File) -> Form | None:
    """A copy within one item."""
    name = file.one(*file.entities)
    read = file.one(*file.readable[name])
    return {"copy": f"{name}.{read}", "into": f"{name}.{_spot(file, name)}"}


def chain(file: File) -> Form | None:
    """A link that is itself a copy, or derived: what goes by it waits."""
    for relation in file.random.sample(file.relations, len(file.relations)):
        above = [
            one for one in file.relations if one.many == relation.one and one.index and len(file.ids[one.one]) == 1
        ]
        if not above or not (relation.base or relation.index) or relation.many in file.mirrors:
            continue
        up = file.one(*above)
        ((its, kind),) = file.ids[up.one]
        if kind == "B":
            continue
        name = f"r{file.number()}"
        index = file.tables[file.entities[up.many]["table"]]["indexes"][up.index]
        attribute = up.given.get(its, its)
        if attribute not in index and attribute not in index.get("partition", {}):
            continue
        _relation(file, up.one, relation.many, {its: name})
        form: Form = {"copy": f"{relation.one}.{attribute}", "into": f"{relation.many}.{name}"}
        if file.chance(0.5):
            form["on_delete"] = "clear"
        if file.chance(0.3):
            form["default"] = "nobody" if kind == "S" else file.one(7, 7.5)
        return _listing(file, relation, form)
    return None


def given(file: File) -> Form | None:
    """A copy whose default puts every item into an index. Other rules list by this index."""
    for relation in file.random.sample(file.relations, len(file.relations)):
        others = [
            one
            for one in file.relations
            if one.many == relation.many and (one.base or one.index) and one.index != relation.index
            and not one.sparse and file.ids[one.one][-1][1] == "S"
        ]  # fmt: skip
        table = file.tables[file.entities[relation.many]["table"]]
        index = table["indexes"][relation.index] if relation.index else {}
        if not others or relation.sparse or relation.many in file.mirrors or len(index) != 1 or "partition" in index:
            continue
        other, name = file.one(*others), f"at{file.number()}"
        index[name] = "S"
        form = {"copy": f"{other.one}.{file.ids[other.one][-1][0]}", "into": f"{relation.many}.{name}"}
        return _listing(file, other, {**form, "default": "none"})
    return None


def embed(file: File) -> Form | None:
    relation = _listed(file)
    if relation is None:
        return None
    one, many = relation.one, relation.many
    form: Form = {"embed": many, "into": f"{one}.{_spot(file, one)}"}
    if not _texty(file, many):
        return None
    if file.chance(0.8):
        fields = file.random.sample(file.readable[many], min(2, len(file.readable[many])))
        form["fields"] = fields if file.chance(0.6) else {text: f"f{number}" for number, text in enumerate(fields)}
        names = fields if isinstance(form["fields"], list) else [*form["fields"].values()]
        if file.chance(0.3) and len(set(names)) == len(names):
            names = [text.rpartition(".")[2] if '"' not in text else text for text in names]
            form["default"] = {name: _default(file) for name in file.random.sample(names, file.one(1, len(names)))}
    form["limit"] = file.one({"items": 2}, {"items": 20}, {"bytes": 90}, {"items": 3, "bytes": "100KB"})
    if relation.base and file.chance(0.3):
        form["as"] = "list"
    elif file.chance(0.3):  # two children may claim one entry; through an index it must show whose it is
        form["by"] = file.one("{state}", "{state}", "{title}", "at {state}")
        own = [name for name, _ in file.ids[many] if not relation.base or name not in dict(file.ids[one])]
        if relation.index:
            form["fields"] = {name: f"id{number}" for number, name in enumerate(own)} | {"amount": "amount"}
            form.pop("default", None)  # of other names
    if file.chance(0.4):
        form["order"] = file.one("", "-") + file.one("amount", "rank", "title")
    if file.chance(0.6):
        form["on_overflow"] = file.one("fail", "oldest", "omit")
    return _listing(file, relation, _filtered(file, many, form))


def _filtered(file: File, many: str, form: Form) -> Form:
    if file.chance(0.4):
        form["where"] = condition(file, many)
    if file.chance(0.25):
        form["on_delete"] = file.one("delete", "restrict", "keep")
    return form


def collect(file: File) -> Form | None:
    relation = _listed(file, lambda one: _texty(file, one.many) and one.many != one.one)
    if relation is None:
        return None
    one, many = relation.one, relation.many
    linked = set() if not relation.base else {name for name, _ in file.ids[one]}
    own = [(name, kind) for name, kind in file.ids[many] if name not in linked]
    name = f"r{file.number()}"
    form: Form = {"collect": many, "into": f"{one}.{name}"}
    if len(own) == 1 and own[0][1] == "N" and file.chance(0.5):
        form |= {"as": f"{{{own[0][0]}}}", "numbers": True}
    else:
        form["as"] = "-".join(f"{{{part}}}" for part, _ in own) + file.one("", "", "-{state}", "|{amount}")
    if file.chance(0.3):
        form["omit"] = condition(file, many)
    if file.chance(0.2):
        form["strict"] = True
    file.readable[one].append(name)
    return _listing(file, relation, _filtered(file, many, form))


def derive(file: File) -> Form:
    name = file.one(*file.entities)
    slots = [text for text in file.readable[name] if '"' not in text and not text.startswith("box")]
    form: Form = {}
    dates: list[str] = []  # what a Time to Live is made of
    if file.chance(0.25):
        form = {"join": file.random.sample(slots, min(2, len(slots)))}
        if file.chance(0.5):
            form["separator"] = file.one(", ", "/", "")
    else:
        tables: Form = {}

        def slot() -> str:
            text = file.one(*slots)
            date = f"date({file.one('%Y-%m', '%Y', '%Y-%m-%d', '%d.%m.%Y')})"
            steps = [file.one("upper", "lower", "nospace", "pad(5)", "shard(3)", date, "sizes", "", "", "ttl")]
            if steps == ["sizes"]:
                tables["sizes"] = {"OPEN": "1", "SENT": "2", "2": "two"}
                text = file.one("state", "amount")
            elif steps == ["ttl"]:
                dates.append(text if len(text) % 2 else "at")
                steps = [""]
            elif steps[0].startswith("date"):
                text = file.one("at", "amount", text)
            return "{" + ":".join(filter(None, [text, *steps])) + "}"

        form = {"as": file.one("", "K#") + file.one("-", "#").join(slot() for _ in range(file.one(1, 1, 2)))}
        if tables:
            form["map"] = tables
    table = file.tables[file.entities[name]["table"]]
    if file.chance(0.3):
        target, kind = f"r{file.number()}", file.one("S", "S", "N")
        table.setdefault("indexes", {})[f"by_{target}"] = {target: kind}
        file.readable[name].append(target)
        if file.chance(0.3):
            form["default"] = 0 if kind == "N" else "none"
    else:
        target = _spot(file, name)
        if file.chance(0.3):
            form["default"] = _default(file)
        taken = [rule["derive"] for rule in file.rules.values() if isinstance(rule, dict) and "derive" in rule]
        if dates and f"{name}.gone" not in taken:
            form = {"as": f"ttl({dates[0]}, 36h)"} | ({"default": 4_000} if "default" in form else {})
            return {"derive": f"{name}.gone", **form}
    return {"derive": f"{name}.{target}", **form}


def path(file: File) -> Form | None:
    names = [one for one in file.entities if file.ids[one][-1][1] != "B" and one not in file.mirrors]
    ways = [rule["path"] for rule in file.rules.values() if isinstance(rule, dict) and "path" in rule]
    if not names or len(ways) > 1:
        return None
    name = ways[0].partition(".")[0] if ways and file.chance(0.7) else file.one(*names)
    kind = file.ids[name][-1][1]
    up = f"up_{file.number()}"
    table = file.tables[file.entities[name]["table"]]
    shared = dict(file.ids[name][:-1])
    index: Form = {up: kind}
    inside = all(file.tables[file.entities[name]["table"]]["key"].get(one) == k for one, k in shared.items())
    if file.chance(0.3) and inside and shared:
        index = {"partition": {**shared, up: kind}}
    table.setdefault("indexes", {})[f"by_{up}"] = index
    form: Form = {"path": f"{name}.{_spot(file, name)}", "parent": up}
    if file.chance(0.3):
        form["separator"] = file.one("|", "::", "/")
    if file.chance(0.5):
        names = [text for text in file.readable[name] if '"' not in text and not text.startswith("box")]
        form["by"] = file.one(*names)
        if file.chance(0.5):
            form["ids"] = f"r{file.number()}"
        if file.chance(0.3):
            form["ids_separator"] = file.one("|", "::", "/")
    if file.chance(0.4):
        form["graph"] = f"r{file.number()}"
        if file.chance(0.5):
            form["shards"] = file.one(1, 2, 7)
    if file.chance(0.5):
        form["depth"] = f"r{file.number()}"
    if file.chance(0.4):
        carried = f"carried{file.number()}"
        form["carry"] = [carried]
        if file.chance(0.5):
            form["default"] = {carried: _default(file)}
        file.readable[name].append(carried)
    if file.chance(0.6):
        form["on_delete"] = file.one("keep", "clear", "delete", "restrict")
    if file.chance(0.2):
        form["settle_seconds"] = file.one(*SETTLES)
    return form


def mirror(file: File) -> Form | str | None:
    source = file.one(*file.entities)
    if not _texty(file, source):
        return None
    name = f"m{file.number()}"
    parents = [one for one in file.relations if one.many == source and one.index and len(file.ids[one.one]) == 1]
    parents = [one for one in parents if file.entities[one.one]["table"] == "main" and one.one not in file.mirrors]
    own = [part for part, _ in file.ids[source]]
    form: Form = {"mirror": source, "into": name}
    style = file.one("looked", "looked", "each", *(["inverted"] * 3 if parents else []))
    if style == "inverted":  # beside its parent: whatever is made of children may be made of mirrors
        relation = file.one(*parents)
        its = file.ids[relation.one][0][0]
        rest = "#".join(f"{{{part}}}" for part in own if part != its)
        if its in own:
            return None
        key = {"PK": f"{relation.one.upper()}#{{{its}}}", "SK": f"{name.upper()}#{rest}"}
        file.entities[name] = {"table": "main", "key": key}
        if relation.given:
            form["link"] = {its: relation.given[its]}
        file.ids[name] = [(its, "S"), *((part, "S") for part in own if part != its)]
        file.relations.append(Relation(relation.one, name, base=True))
    else:
        handle = f"h{file.number()}"
        if "main" in file.tables and file.chance(0.5):
            file.entities[name] = {"table": "main", "key": {"PK": f"{name.upper()}#{{{handle}}}", "SK": "AT"}}
            file.ids[name] = [(handle, "S")]
        else:
            rest = {own[-1]: "S"} if file.chance(0.3) else {}
            file.tables[f"{name}s"] = {"key": {handle: "S", **rest}}
            file.entities[name] = {"table": f"{name}s"}
            file.ids[name] = [(handle, "S"), *rest.items()]
        if style == "each":
            form["each"] = {handle: file.one("tags", "tags", "info.tags")}
        else:
            form["link"] = {handle: file.one("name", "title", "state")}
    file.mirrors.add(name)
    kept: list[str] = []
    chosen = file.random.sample(file.readable[source], min(2, len(file.readable[source])))
    names = {text: f"k{number}" for number, text in enumerate(chosen)}
    match file.one("none", "list", "map", "all"):
        case "list":
            simple = [text for text in chosen if "." not in text and text not in own]
            if simple:
                form["attributes"], kept = simple, simple
        case "map":
            form["attributes"], kept = names, list(names.values())
        case "all":
            form["attributes"] = "all"
    file.readable[name] = ["state", "name", *kept]
    if file.chance(0.4):
        form["where"] = condition(file, source)
    return form


def _number(file: File, kind: str) -> Form | str | None:
    found = [one for one in file.relations if one.many != one.one]
    if not found:
        return None
    relation = file.one(*found)
    one, many = relation.one, relation.many
    form: Form = {kind: many if kind == "count" else f"{many}.{file.one('amount', 'amount', 'rank', 'info.size')}"}
    form["into"] = f"{one}.{_spot(file, one)}"
    books = _texty(file, one) and _texty(file, many)
    recount = relation.base and (not books or file.chance(0.3))
    if not books and not recount:
        return None
    if not recount:
        table = file.one("ledger", "ledger", "books")
        file.tables.setdefault(table, {"key": {"PK": "S", "SK": "S"} if table == "ledger" else {"a": "S", "b": "S"}})
        if table != "ledger":
            form["ledger"] = table
        if kind in ("count", "sum", "mean") and file.chance(0.25):
            form["shards"] = file.one(2, 3)
    else:
        form["mode"] = "recount"
    if kind == "mean" and file.chance(0.5):
        form["places"] = file.one(0, 1)
    if kind == "count" and file.chance(0.25):
        form["weights"] = file.one(*WEIGHTS)
    if (recount or kind in ("count", "sum")) and file.chance(0.35):
        form["per"] = file.one("state", "state", "title", file.ids[many][-1][0] if _texty(file, many) else "state")
    if len(form) == 2 and not relation.given and file.chance(0.3):
        return f"{kind} {form[kind]} into {form['into']}"
    if kind == "count" and not recount and not {"weights", "per"} & form.keys() and file.number() % 2:
        form["sums"] = {text: f"s{file.number()}" for text in ("amount", "info.size")}
    if file.chance(0.4):
        form["where"] = condition(file, many)
    if relation.given:
        form["link"] = dict(relation.given)
    if (relation.base or relation.index) and file.chance(0.2):
        form["on_delete"] = file.one("delete", "restrict")
        if relation.sparse:
            form["sparse"] = True
    return form


def count(file: File) -> Form | str | None:
    return _number(file, file.one("count", "sum", "mean"))


def ranked(file: File) -> Form | str | None:
    return _number(file, file.one("min", "max"))


def values(file: File) -> Form | str | None:
    found = [one for one in file.relations if one.many != one.one and _texty(file, one.one) and _texty(file, one.many)]
    if not found:
        return None
    relation = file.one(*found)
    one, many = relation.one, relation.many
    form: Form = {"collect": f"{many}.{file.one('state', 'state', 'title', 'amount', 'info.city')}"}
    form["into"] = f"{one}.{_spot(file, one)}"
    if not relation.given and file.chance(0.2):
        file.tables.setdefault("ledger", {"key": {"PK": "S", "SK": "S"}})
        return f"collect {form['collect']} into {form['into']}"
    shape = file.one("set", "list", "text")
    if shape == "list":
        form["as"] = "list"
    elif shape == "text":
        form["join"] = file.one(", ", "")
    elif file.chance(0.3):
        form["numbers"] = True
    limited = file.chance(0.4)
    if limited:
        form["limit"] = file.one(1, 1, 2, 30)
    if (limited or shape != "set") and file.chance(0.6):
        form["order"] = file.one("", "-", "-") + file.one("amount", "rank", "title", "state")
    if shape != "set" and file.chance(0.3):
        form["distinct"] = True
    file.tables.setdefault("ledger", {"key": {"PK": "S", "SK": "S"}})
    if file.chance(0.4):
        form["where"] = condition(file, many)
    if relation.given:
        form["link"] = dict(relation.given)
    if (relation.base or relation.index) and file.chance(0.2):
        form["on_delete"] = file.one("delete", "restrict")
        if relation.sparse:
            form["sparse"] = True
    return form


def call(file: File) -> Form:
    name = file.one(*file.entities)
    form: Form = {"call": "tests.simulation.called.noted", "on": name}
    if file.chance(0.5):
        form["when"] = file.random.sample(["created", "changed", "deleted"], file.one(1, 2))
    if "changed" in form.get("when", ["changed"]) and file.chance(0.5):
        form["watch"] = [file.one("state", "name", "info.city")]
    if file.chance(0.3):
        form["since"] = file.one("horizon", "deployment")
    if file.chance(0.4):
        form["where"] = condition(file, name)
    return form


KINDS: Final = (
    *((copy,) * 5), late, within, chain, chain, given, embed, embed, collect, collect, derive, derive, path, mirror, mirror,
    *((count,) * 3), ranked, ranked, values, values, call, call,
    *(trial.write for trial in TRIALS if trial.write is not None),
)  # fmt: skip


def written(number: int, attempt: int = 0, only: frozenset[str] = frozenset()) -> File:
    """The file of a number, as it is written before anybody checks it. `only`: a small file of some kinds."""
    file = File(Random(f"rules {number} {attempt}"), only=only)
    tables_and_entities(file)
    kinds = [kind for kind in KINDS if not only or kind.__name__ in only]
    for _ in range(file.one(*((1, 2, 2) if only else (3, 4, 5, 6))) if kinds else 0):
        file.before = {name: tuple(texts) for name, texts in file.readable.items()}
        form = file.one(*kinds)(file)
        if isinstance(form, dict) and file.chance(0.1):
            form["renamed_from"] = f"former{len(file.rules)}"
        if form is not None:
            file.rules[f"rule{len(file.rules)}"] = form
    file.before = dict.fromkeys(file.readable, ())
    history(file, number, attempt, condition)
    return file


# ---------------------------------------------------------------- as a user's file is used
@dataclass(frozen=True, eq=False)
class Made:
    """A rules file that `check` accepts: its text, as it reads, and compiled, as the functions load it."""

    text: str
    spec: Spec
    rules: Rules
    refused: int = 0  # how many files before it were not
    mode: str | None = None  # what there is beside the handlers; None: each history draws it
    in_order: bool = True  # the records of an item come in order
    dense: bool = False  # few keys, and many items from the beginning
    often: bool = False  # most items name one source

    @cached_property
    def prompt(self) -> Made:
        """The same for a table whose indexes never lag: no second look is due."""
        rules = {name: replace(rule, settle_seconds=0) for name, rule in self.rules.rules.items()}
        return replace(self, rules=replace(self.rules, rules=rules))


def made_of(text: str) -> tuple[Made | None, list[Problem]]:
    """A text as a user's: checked, compiled, written and read again as the functions read it."""
    rules, problems = check_rules(text, {})
    if rules is None:
        return None, list_errors(problems)
    loaded = compiled_file.read(compiled_file.dump(rules, {}), "rules.compiled", {})
    return Made(text, Spec(plain_form(text)), loaded), []


def plain_form(text: str) -> Form:
    from ruamel.yaml import YAML  # noqa: PLC0415

    body: Form = YAML(typ="safe", pure=False).load(text)
    for name, form in body["tables"].items():
        form["name"] = form.get("name", name).rpartition(":-")[2].rstrip("}")
    return body


@lru_cache(maxsize=64)
def made(number: int, only: frozenset[str] = frozenset()) -> Made:
    """The first file of a number that `check` accepts; of some kinds alone."""
    for attempt in range(TRIES_MAX):
        file = written(number, attempt, only)
        found, _ = made_of(file.text()) if file.rules else (None, [])
        if found is not None:
            return Made(found.text, found.spec, found.rules, attempt)
    raise AssertionError(f"none of {TRIES_MAX} files of number {number} is accepted")
