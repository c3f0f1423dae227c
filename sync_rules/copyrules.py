"""From a rule as written, sentence or map, to a `CopyRule`: whose attributes go where, by which link, found how.

Law: a rule is compiled whole or not at all, and whatever is wrong with it is said at once, each at its own spot.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from sync_rules import links
from sync_rules.attributes import Path, parse_path, show_path
from sync_rules.entities import Entity
from sync_rules.errors import UserError
from sync_rules.expressions import Where, compile_where
from sync_rules.problems import Report, Spot, unknown
from sync_rules.rules import CopyRule, Find, Link
from sync_rules.schema import RuleForm
from sync_rules.yamlspots import Document

SENTENCE = re.compile(r"\s*copy\s+(?P<sources>\S.*?)\s+into\s+(?P<into>\S.*?)\s*", re.DOTALL)
SOURCE = re.compile(r"[^\s,](?:[^,]*[^\s,])?")
WORD = re.compile(r'(?:"[^"]*"|[^\s"])+')
SENTENCE_CURE = "copy ENTITY.ATTRIBUTE into ENTITY.ATTRIBUTE; where, link and the like need the long form"


@dataclass(frozen=True)
class Place:
    """A path of the rules file taken apart: an entity, and a path in its items; () is the item itself."""

    entity: Entity
    path: Path


@dataclass
class Compiler:
    """What rules are compiled against. `broken` are entities that are declared but unusable, reported already."""

    document: Document
    report: Report
    entities: Mapping[str, Entity]
    broken: frozenset[str]

    def rule(self, name: str, entry: str | RuleForm) -> CopyRule | None:
        """The compiled rule; None, with everything reported, when something is wrong with it."""
        form = self._sentence(name, entry) if isinstance(entry, str) else entry
        if form is None:
            return None
        here = ("rules", name)
        mapping = self._mapping(here, form)
        if form.mode == "snapshot" and form.on_delete != "keep":
            self.report.add(
                "SR116", self.document.value(*here, "on_delete"), f"a snapshot cannot {form.on_delete} with its source"
            )
            mapping = None
        if mapping is None:
            return None
        source, target, pairs = mapping
        where = self._where(here, form, source, target)
        link = self._link(here, form, source, target)
        find = None if link is None else self._find(here, form, source, target, link)
        if link is None or find is None or where is False:
            return None
        return CopyRule(
            name,
            source,
            target,
            pairs,
            link,
            find,
            where,
            form.mode,
            form.on_delete,
            form.strict,
            form.settle_seconds,
        )

    # ------------------------------------------------------------ what goes where
    def _sentence(self, name: str, text: str) -> RuleForm | None:
        here = ("rules", name)
        match = SENTENCE.fullmatch(text)
        if match is None:
            self.report.add("SR107", self.document.value(*here), "expected `copy ... into ...`", SENTENCE_CURE)
            return None
        words = WORD.fullmatch(match["into"])
        if words is None:
            rest = match["into"].split(None, 1)[-1]
            self.report.add(
                "SR107",
                self.document.inside(match.start("into"), *here),
                f"expected the sentence to end after one path, found {rest!r}",
                SENTENCE_CURE,
            )
            return None
        # Where the parts stand is noted, so that whatever is found later is said at the word it is about.
        self.document.spots[(*here, "into")] = self.document.inside(match.start("into"), *here)
        sources = list(SOURCE.finditer(match["sources"]))
        for index, source in enumerate(sources):
            spot = self.document.inside(match.start("sources") + source.start(), *here)
            self.document.spots.setdefault((*here, "copy"), spot)
            self.document.spots[(*here, "copy", index)] = spot
        if not sources:
            self.report.add("SR107", self.document.value(*here), "expected a path after `copy`", SENTENCE_CURE)
            return None
        texts = [source[0] for source in sources]
        return RuleForm(copy=texts[0] if len(texts) == 1 else texts, into=match["into"])

    def _mapping(
        self, here: tuple[str, ...], form: RuleForm
    ) -> tuple[Entity, Entity, tuple[tuple[Path, Path], ...]] | None:
        """The source, the target, and which path of the one goes to which of the other."""
        into = self._place(form.into, self.document.value(*here, "into"))
        given = self._sources(here, form)
        sources = [(self._place(text, spot, attribute=True), rename) for text, spot, rename in given]
        pairs: list[tuple[Path, Path]] = []
        sound = into is not None
        for (place, rename), (text, spot, _) in zip(sources, given, strict=True):
            last = self._last_name(place, rename, spot)
            if place is None or last is None or into is None:
                sound = False
                continue
            pairs.append((place.path, into.path if isinstance(form.copied, str) else into.path + last))
            first = next(other.entity for other, _ in sources if other is not None)
            if place.entity != first:
                self.report.add("SR113", spot, f"{text!r} is not of {first.name!r}, as the rule's first source is")
                sound = False
        if into is not None and isinstance(form.copied, str) and not into.path:
            name = show_path(sources[0][0].path[-1:]) if sources[0][0] else "attribute"
            self.report.add(
                "SR108",
                self.document.value(*here, "into"),
                f"{form.into!r} is an entity: expected the attribute that takes the copy",
                f"into: {form.into}.{name}",
            )
            sound = False
        if not sound or into is None:
            return None
        source = next(place.entity for place, _ in sources if place is not None)
        return source, into.entity, tuple(pairs)

    def _sources(self, here: tuple[str, ...], form: RuleForm) -> list[tuple[str, Spot, str | None]]:
        """Each source as (path, where it stands, the name it takes)."""
        value = self.document.value
        match form.copied:
            case str(text):
                return [(text, value(*here, "copy"), None)]
            case list(texts):
                return [(text, value(*here, "copy", index), None) for index, text in enumerate(texts)]
            case renames:
                return [(text, self.document.key(*here, "copy", text), new) for text, new in renames.items()]

    def _last_name(self, place: Place | None, rename: str | None, spot: Spot) -> Path | None:
        if rename is None:
            return place.path[-1:] if place is not None else None
        try:
            return parse_path(rename)
        except UserError as error:
            self.report.add("SR108", spot, str(error))
            return None

    def _place(self, text: str, spot: Spot, *, attribute: bool = False) -> Place | None:
        """The entity and the path that a text names; None, with the reason reported."""
        try:
            name, *path = parse_path(text)
        except UserError as error:
            self.report.add("SR108", spot, str(error))
            return None
        entity = self.entities.get(name)
        if entity is None:
            if name not in self.broken:
                self.report.add("SR102", spot, unknown("entity", name, self.document.names("entities")))
            return None
        if attribute and not path:
            self.report.add(
                "SR108", spot, f"{text!r} is an entity: expected one of its attributes, such as {text}.name"
            )
            return None
        return Place(entity, tuple(path))

    # ------------------------------------------------------------ whose, and which
    def _where(
        self, here: tuple[str, ...], form: RuleForm, source: Entity, target: Entity
    ) -> Where | Literal[False] | None:
        """The compiled condition, None where none is given, False when it is not one."""
        if form.where is None:
            return None
        spot = self.document.value(*here, "where")
        try:
            where = compile_where(form.where, source.name)
        except UserError as error:
            self.report.add("SR114", spot, str(error))
            return False
        if (target.name,) in where.target_paths:
            self.report.add(
                "SR408",
                spot,
                f"{target.name!r} is read as an attribute of the target; names without an entity are the target's",
            )
        return where

    def _link(self, here: tuple[str, ...], form: RuleForm, source: Entity, target: Entity) -> Link | None:
        sound = True
        for field in form.link:
            if field not in source.identity:
                message = unknown("key field", field, source.identity, f"entity {source.name!r}")
                self.report.add("SR202", self.document.key(*here, "link", field), message)
                sound = False
        for field, text in form.link.items():
            try:
                parse_path(text)
            except UserError as error:
                self.report.add("SR108", self.document.value(*here, "link", field), str(error))
                sound = False
        if not sound:
            return None
        link = links.infer_link(source, target, form.link)
        for field, ours, theirs in links.mismatched(source, target, link):
            spot = self.document.value(*here, "link", field)
            message = f"{field!r} is of type {ours} on {source.name!r} and of type {theirs} on {target.name!r}"
            self.report.add("SR204", spot, message)
            sound = False
        if form.strict and links.is_self_link(source, target, link):
            self.report.add("SR205", self.document.value(*here, "strict"), f"{source.name!r} is its own source here")
            sound = False
        return link if sound else None

    def _find(self, here: tuple[str, ...], form: RuleForm, source: Entity, target: Entity, link: Link) -> Find | None:
        known = ", ".join(f"{{{ref.field}}}" for _, ref in link) or "nothing (its source has a fixed key)"
        indexes = [index.name for index in target.table.indexes]
        if form.via is not None and form.via not in indexes:
            message = unknown("index", form.via, indexes, f"table {target.table.name!r}")
            self.report.add("SR102", self.document.value(*here, "via"), message)
            return None
        way = links.choose(links.ways(source, target, link), form.via)
        if way is None and form.via is not None:
            message = f"the partition key of index {form.via!r} is not filled by {known}"
            self.report.add("SR203", self.document.value(*here, "via"), message)
            return None
        if way is None:
            message = f"no key of table {target.table.name!r} lists the items of {target.name!r} by {known}"
            cure = links.missing_index(source, target, link)
            self.report.add("SR201", self.document.value(*here, "into"), message, cure)
            return None
        if not way.narrow:
            listed = f"index {way.find.index!r}" if way.find.index else "the table"
            self.report.add(
                "SR409",
                self.document.value(*here, "into"),
                f"the Query of {listed} is the same for every {source.name!r}: it does not hold {known}",
                links.missing_index(source, target, link),
            )
        return way.find
