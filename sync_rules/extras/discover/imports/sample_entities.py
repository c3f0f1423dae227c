"""Entities made from items: a name for each kind of key, and the templates of its key attributes.

Invariant: each sampled key belongs to the entity that was made from it. Only words that all keys of a kind share are
written. Values are never written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Final

from sync_rules.extras.discover.imports.identifiers import (
    GENERIC,
    RESERVED,
    SHORT_MAX,
    is_generic_key,
    join_words,
    make_singular,
    make_slug,
    make_table_slug,
    split_words,
)
from sync_rules.extras.discover.imports.imported_model import FoundEntity, FoundTable
from sync_rules.extras.discover.imports.key_kinds import (
    DATED,
    TYPE_NAMES,
    WORD,
    Cluster,
    Sample,
    Token,
    Tokens,
    join_tokens,
    list_clusters,
    split_tokens,
)
from sync_rules.model.errors import UserError
from sync_rules.model.templates import parse_template

SHOWN_MIN: Final = 2  # different values, that two columns are the same by more than chance


@dataclass
class Values:
    """The attributes of the items of a kind, as text, and the fields that are bound so far, with each item's value."""

    plain: Sequence[Mapping[str, str]]
    bound: dict[str, list[str]]

    def find_same_field(self, values: list[str], spoken: str, mine: Collection[str], *, sure: bool) -> str:
        """Return the field that is bound to the same values, if that is not chance; "" if there is none."""
        several = sure or len(set(values)) >= SHOWN_MIN
        alike = (name for name, others in self.bound.items() if others == values and name not in mine)
        return next((name for name in alike if several or name == spoken), "")

    def bind(self, wanted: Sequence[str], values: list[str]) -> str:
        """Bind the first free name, else the first name with a number, and return it."""
        numbered = (f"{wanted[0]}_{number}" for number in count(2))
        free = next(name for name in chain(wanted, numbered) if name not in self.bound)
        self.bound[free] = values
        return free


@dataclass(frozen=True)
class Namer:
    """A maker of templates. `roots` maps words to the entities that they abbreviate: c for customer."""

    roots: Mapping[str, str]
    fields: dict[str, str] = field(default_factory=dict)  # by word, as the first entity named them

    def template(self, attribute: str, column: Sequence[Tokens], known: Values, alias: str = "") -> str:
        """Make the template of a column of keys of one kind. `known` gains the fields that it binds."""
        text, word, used = "", "", False
        mine: set[str] = set()
        single = sum(not token.word for token in column[0]) == 1
        for number, token in enumerate(column[0]):
            text += token.before
            if token.word:
                text += token.text
                word, used = token.text or word, False
                continue
            values = [tokens[number].text for tokens in column]
            start = _find_common_start(values)
            text += start
            values = [value.removeprefix(start) for value in values]
            spoken = self._suggest_name(start or word, values, first=not used)
            name = known.find_same_field(values, spoken, mine, sure=join_words(word) in GENERIC)
            if not name:
                tells = len(start or word) > SHORT_MAX or not single or is_generic_key(attribute)
                own = "" if tells else make_slug(attribute)
                spoken = "" if used and spoken in known.bound else spoken
                name = self._bind_new_field(
                    attribute, values, known, spoken=spoken, alias=alias if single else "", own=own
                )
                if (start or word) and not used:
                    self.fields.setdefault(start or word, name)
            mine.add(name)
            text += f"{{{name}}}"
            used = True
        return text

    def _bind_new_field(
        self, attribute: str, values: list[str], known: Values, *, spoken: str, alias: str, own: str
    ) -> str:
        """A new field: the attribute that holds the same, the name of the key attribute, or what the word says."""
        held = [
            name for name in known.plain[0] if _is_simple(name) and [one.get(name) for one in known.plain] == values
        ]
        told = sorted(held, key=lambda name: (not name.lower().endswith("id"), name.lower() == "id"))
        known_word = spoken in self.fields.values() and (spoken in held or spoken not in known.plain[0])
        wanted = [spoken if known_word else "", alias, *told, own, spoken]
        return known.bind(
            [name for name in wanted if name and _is_simple(name)] or [f"{make_slug(attribute)}_part"], values
        )

    def _suggest_name(self, word: str, values: Sequence[str], *, first: bool) -> str:
        """The name that the word before a value suggests; "" without a word."""
        if first and word in self.fields:
            return self.fields[word]
        parts = [part for part in split_words(self.roots.get(word, word)) if part.isalpha()]
        if not parts or parts[0] in RESERVED:
            return ""
        ending = "at" if all(DATED.match(value) for value in values) else "id"
        return "_".join([*parts[:-1], make_singular(parts[-1]), ending])


def _is_simple(name: str) -> bool:
    """True if a name can stand in braces."""
    return name.replace("_", "a").isalnum() and name.isascii() and not name[0].isdigit()


def _find_common_start(values: Sequence[str]) -> str:
    """The word that all of several values begin with, as in authorname_smith."""
    if len(set(values)) < SHOWN_MIN:
        return ""
    first = values[0]
    for mark in ("_", "=", "-"):
        start = first[: first.find(mark) + 1]
        rest = [value.removeprefix(start) for value in values]
        if (
            len(start) > SHOWN_MIN
            and start[:-1].isalpha()
            and all(one and one != value for one, value in zip(rest, values, strict=True))
        ):
            return start
    return ""


def list_entities(table: FoundTable, samples: Sequence[Sample], *, live: bool = False) -> list[FoundEntity]:
    """List the entities of a table's items. `live`: a word must be shared by several items, because it may be a
    value.
    """
    usable = [sample for sample in samples if all(_holds(sample, one.name, one.type) for one in table.key)]
    if len(samples) > len(usable):
        table.checks.append(f"{len(samples) - len(usable)} of its {len(samples)} items lack the key and were left out")
    if not usable:
        return []
    clusters = list_clusters(table, usable, live=live)
    type_name = _find_type_attribute(table, usable)
    named = _name_kinds(table, clusters, type_name, live=live)
    default = make_singular(make_table_slug(table.called))  # says nothing of a word
    namer = Namer(_map_roots(clusters, [name if sure or name != default else "" for name, sure in named]))
    made = {}  # those that others point to come first, and name the fields
    for cluster, (name, sure) in sorted(zip(clusters, named, strict=True), key=lambda one: not _is_root(one[0])):
        made[id(cluster)] = _Maker(table, cluster, name, namer, type_name, live=live).entity(sure=sure)
    return [made[id(cluster)] for cluster in clusters]


def _holds(sample: Sample, name: str, kind: str) -> bool:
    value = sample.item.get(name, {})
    return kind in value and (kind != "S" or sample.text(name) is not None)


# ---------------------------------------------------------------- names
def _find_type_attribute(table: FoundTable, samples: Sequence[Sample]) -> str:
    """The attribute that names the type of each item; "" where none does."""
    names = dict.fromkeys(name for sample in samples for name in sample.item if name not in table.types)
    for wanted in TYPE_NAMES:
        for name in names:
            if join_words(name) == wanted and all(split_words(sample.text(name) or "") for sample in samples):
                return name
    return ""


def _name_kinds(
    table: FoundTable, clusters: Sequence[Cluster], type_name: str, *, live: bool
) -> list[tuple[str, bool]]:
    """A name for each kind, and True where the source itself names it."""
    made: dict[int, tuple[str, bool]] = {}
    for cluster in sorted(clusters, key=lambda one: not _is_root(one)):
        facets = {sample.facet for sample in cluster.samples}
        types = {sample.text(type_name) or "" for sample in cluster.samples}
        only = facets if len(facets) == 1 and facets != {""} else types
        given = next(iter(only)) if len(only) == 1 else ""
        shared = len(cluster.samples) > 1 and WORD.fullmatch(given) is not None  # else it may be a value
        taken = {name for name, _ in made.values()}
        spoken = _suggest_name(cluster, make_singular(make_table_slug(table.called)), taken)
        if split_words(given) and (shared or not live):
            more = given in taken and split_words(spoken) != split_words(given)
            made[id(cluster)] = f"{given}_{spoken}" if more else given, True
        else:
            made[id(cluster)] = spoken, False
    return [made[id(cluster)] for cluster in clusters]


def _suggest_name(cluster: Cluster, default: str, taken: set[str]) -> str:
    """A name of the words in the keys of a kind: the last that tells something, with the first where it is taken."""
    spoken = [
        ["_".join(one for one in split_words(word or "") if one.isalpha()) for _, word in part]
        for part in cluster.shape
    ]
    first, *others = ([word for word in part if len(word) > SHORT_MAX and word not in GENERIC] for part in spoken)
    rest = [word for part in others for word in part]
    wanted = rest[-1] if rest else first[-1] if first else default
    return f"{first[-1]}_{wanted}" if wanted in taken and rest and first and wanted != first[-1] else wanted


def _map_roots(clusters: Sequence[Cluster], names: Sequence[str]) -> dict[str, str]:
    """The entity that a word in front of a value stands for: where an entity's key is that word and one value."""
    found: dict[str, str] = {}
    for cluster, name in zip(clusters, names, strict=True):
        if name and _is_root(cluster):
            found.setdefault(cluster.keys[0][0][0].text, name)
    for cluster in clusters:
        for word in (word for part in cluster.shape for _, word in part if word and len(word) <= SHORT_MAX):
            meant = [name for name, one in zip(names, clusters, strict=True) if _speaks(one, word, name)]
            found.setdefault(word, min(meant, key=len, default=word))
    return found


def _is_root(cluster: Cluster) -> bool:
    """True if the key of a kind is a word and one value, and the sort key says no more than that."""
    first, last = cluster.keys[0][0], cluster.keys[0][-1]
    if len(first) != 2 or not first[0].word or first[1].word:  # noqa: PLR2004 - a word and a value
        return False
    values = all(token.word or token.text == key[0][1].text for key in cluster.keys for token in key[-1])
    fixed = all(token.word for token in last)
    telling = [token for token in last if token.word and token.text not in ("", first[0].text)]
    return values and (fixed or all(join_words(token.text) in GENERIC for token in telling))


def _speaks(cluster: Cluster, word: str, name: str) -> bool:
    """True if a short word in the keys of a kind begins the kind's name: sh for shipment."""
    return name.lower().startswith(word.lower()) and any(word == one for part in cluster.shape for _, one in part)


# ---------------------------------------------------------------- templates
class _Maker:
    """Makes the entity of one kind of items."""

    def __init__(
        self, table: FoundTable, cluster: Cluster, name: str, namer: Namer, type_name: str, *, live: bool
    ) -> None:
        own = {one.name for one in table.key}
        ignored = {type_name, *own, *(name for name in table.types if is_generic_key(name))}
        held = Counter(one for sample in cluster.samples for one in sample.item if one not in ignored)
        self.table, self.cluster, self.namer, self.live = table, cluster, namer, live
        facets = list(dict.fromkeys(sample.facet for sample in cluster.samples if sample.facet))
        self.made = FoundEntity(name, table, attributes=[one for one, _ in held.most_common()], facets=facets)
        plain_values = [{one: text for one in held if (text := sample.plain(one))} for sample in cluster.samples]
        self.values = Values(plain_values, {})

    def entity(self, *, sure: bool) -> FoundEntity:
        """The entity, with a template for each key attribute that is not simply the field of its own name."""
        for place, attribute in enumerate(self.table.key):
            self._add_base(attribute.name, [key[place] for key in self.cluster.keys])
        own = {one.name for one in self.table.key}
        for name, kind in self.table.types.items():
            if name not in own and kind == "S":
                self._add_index(name)
        self._check(sure=sure)
        return self.made

    def _add_base(self, name: str, column: Sequence[Tokens]) -> None:
        alias = next((one for sample in self.cluster.samples if (one := sample.aliases.get(name))), "")
        alias = "" if join_words(alias) == join_words(name) else alias
        if len(column[0]) == 1 and not column[0][0].word and not alias:
            self.values.bound[name] = [tokens[0].text for tokens in column]
            return
        self._keep(name, column, alias)

    def _keep(self, name: str, column: Sequence[Tokens], alias: str = "") -> None:
        text = self.namer.template(name, column, self.values, alias)
        if _fits(text, column):
            self.made.key[name] = text
        else:
            self.made.checks.append(f"the texts in {name} do not follow one template: write it")

    def _add_index(self, name: str) -> None:
        """Make the template of an index's key attribute that all items of the kind have."""
        held = sum(name in sample.item for sample in self.cluster.samples)
        texts = [text for sample in self.cluster.samples if (text := sample.text(name))]
        if len(texts) < len(self.cluster.samples):
            if texts:
                self.made.checks.append(
                    f"{name} is on {held} of {len(self.cluster.samples)} items: the others are in no index by it"
                )
            return
        column = self._split_column(texts)
        if column is None:
            self.made.checks.append(f"the texts in {name} do not follow one template: write it if a rule needs it")
        elif len(column[0]) > 1 or column[0][0].word:
            self._keep(name, column)

    def _split_column(self, texts: Sequence[str]) -> list[Tokens] | None:
        """The pieces of the texts in one column, a word only where all have it; None where they differ in more."""
        column = [split_tokens(text) for text in texts]
        if len({tuple(token.before for token in tokens) for tokens in column}) > 1:
            return None
        held = [set(one.values()) for one in self.values.plain]
        several = len(texts) > 1 or not self.live  # a word of one item may be a value
        shared = [
            several
            and all(tokens[number].word and tokens[number].text == token.text for tokens in column)
            and not all(token.text in one for one in held)
            for number, token in enumerate(column[0])
        ]
        return [
            tuple(Token(token.text, word, token.before) for token, word in zip(tokens, shared, strict=True))
            for tokens in column
        ]

    def _check(self, *, sure: bool) -> None:
        number = len(self.cluster.samples)
        facets = self.made.facets
        if len(facets) > 1:
            names = ", ".join(sorted(facets))
            self.made.checks.append(f"the keys of {names} cannot be told apart: they are one entity here")
        if self.made.key:
            read = "the key is" if sure else "name and key are"
            self.made.checks.append(f"{read} read off {'one item' if number == 1 else f'{number} items'}")


def _fits(text: str, column: Sequence[Tokens]) -> bool:
    """True if a template parses each key that it was made of."""
    try:
        template = parse_template(text)
    except UserError:
        return False
    return all(template.parse({"S": join_tokens(tokens)}) is not None for tokens in column)
