"""Validate a YAML document: what pydantic finds wrong, in our words and at its location.

Invariant: one bad entry does not hide the others. A table, entity or rule of the wrong shape is reported and taken out,
and the rest is compiled; `broken` keeps the names, so that a reference to one is not called unknown.
"""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from sync_rules.language.kinds.options import NO_FORM, Kind
from sync_rules.language.kinds.registry import KINDS, find_kind_of_rule
from sync_rules.language.problems import Problems
from sync_rules.language.schema import DeployForm, EntityForm, FileForm, TableForm, make_file_form
from sync_rules.language.sections import CORE, ENTITY_KEYS, NAMES, Section, UsedSections, is_plugged, load_sections
from sync_rules.language.yaml_source import Document, KeyPath, name_type
from sync_rules.model.suggest import explain_unknown_name, shorten_names

TAG: Final = "form:"  # how the names of forms begin, which pydantic puts into its locations
EXPECTED: Final = {
    "string_type": "text",
    "dict_type": "a map",
    "model_type": "a map",
    "list_type": "a list",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "bool_type": "true or false",
}
MISSING: Final = {  # cures; kinds have their own
    "key": "key: {PK: S, SK: S}",
    "partition": "write the index in full: partition: {user_id: S}",
    "table": "name the table that holds the items",
    "into": "say where to: entity.attribute",
}
MEANT: Final = {"link": "name the field of the one pointed to: link: {{field: {}}}"}  # likewise
SEVERAL: Final = (
    "a link leads to one item: let a copy rule keep on the item what names the next one, such as {copy: "
    "customer.region_id, into: order.customer_region_id, on_delete: clear}, and link by that: link: {region_id: "
    "customer_region_id}"
)
REPLACED: Final = {  # words of former rules files or other tools, by the kind that had them, if not several: the cure
    **dict.fromkeys((("", "avg"), ("", "average")), "write mean: it is rounded to `places` decimal places"),
    ("", "archive"): "call a function that writes to S3: {call: orders.keep, on: order, when: [deleted]}",
    ("", "through"): SEVERAL,
    ("mirror", "mode"): "remove it for a second item; let your application move an item, in a transaction of its own",
    ("history", "keep"): "let versions expire: a rule {derive: ENTITY.expires_at, as: 'ttl(changed_at, 90d)'}",
    ("history", "newest"): "mirror the item into an entity of its own, such as one with SK: NEWEST",
}
MERGE: Final = "<<"
CREATED_WITH: Final = ("billing", "warm", "class", "deletion_protection", "backups")  # no rule depends on these
NO_PLACE: Final = ("extra_forbidden", "literal_error")  # an unknown key; among the keys of an index, one of no type
NAMED_HERE: Final = 2  # parts of the key path to a name that this file gives
SIZE: Final = "a number with B or KB, such as 100KB"
RULE_OPTION: Final = 3  # parts of the key path to an option of a rule


@dataclass(frozen=True)
class ValidFile:
    """The sound part of a file, the names of broken entries in each section, and the sections that the file uses."""

    form: FileForm
    broken: Mapping[str, frozenset[str]]
    sections: tuple[Section, ...]


def validate(document: Document, problems: Problems) -> ValidFile | None:
    """Validate a file, and return its sound part as models. Return None if the file is not a map."""
    if not isinstance(document.data, dict):
        message = f"expected a map with tables, entities and rules; found {name_type(document.data)}"
        cure = "begin with {tables: {orders: {key: {order_id: S}}}, entities: {order: {table: orders}}, rules: {}}"
        problems.add("SR104", document.value(), message, cure)
        return None
    _rename_sections(document, problems)
    used = load_sections(document, problems)
    for section in used.loaded:
        _rename_options(document, problems, section)
    validator = _Validator(document, problems, used)
    validator.take_out_unknown_kinds()
    for _ in range(2):  # once to find what is wrong, once more without it
        try:
            form = make_file_form(validator.used.loaded).model_validate(validator.select_sound_data())
        except ValidationError as error:
            for detail in error.errors(include_url=False):
                validator.report(detail)
        else:
            broken = {name: frozenset(names) for name, names in validator.broken.items()}
            return ValidFile(form, broken, validator.used.loaded)
    raise AssertionError("what pydantic found wrong was not taken out")


def _rename_sections(document: Document, problems: Problems) -> None:
    """Report misspelled sections, and read them as the sections that are missing, so that one mistake is one error."""
    for name in [name for name in document.data if name not in NAMES]:
        meant = get_close_matches(name, [section for section in NAMES if section not in document.data], n=1)
        if meant and not is_plugged(name):
            problems.add("SR101", document.key(name), explain_unknown_name("key", name, NAMES))
            document.rename(meant[0], name)


def _rename_options(document: Document, problems: Problems, section: Section) -> None:
    """Warn of options by their former names, and read them by the present ones."""
    for name in document.names(section.name):
        entry = document.data[section.name][name]
        for former, now in section.renamed.items() if isinstance(entry, dict) else ():
            if former in entry and now not in entry:
                message = f"{former!r} is the former name of {now!r}"
                cure = f"write {now}; the next release refuses {former}"
                problems.add("SR473", document.key(section.name, name, former), message, cure)
                document.rename(now, section.name, name, former)


class _Validator:
    """One file, and what is broken in it: names by section, "*" for a whole section, and unknown sections under ""."""

    def __init__(self, document: Document, problems: Problems, used: UsedSections) -> None:
        self.document, self.problems, self.used = document, problems, used
        self.data: dict[str, Any] = document.data
        self.names = (*CORE, *(section.name for section in used.loaded))
        self.broken: dict[str, set[str]] = {name: set() for name in ("", *self.names)}

    def select_sound_data(self) -> dict[str, Any]:
        """The file's data without what is broken; a section that is broken as a whole is empty."""
        there = {name: value for name, value in self.data.items() if name not in self.used.broken}
        kept = {name: value for name, value in there.items() if name in self.names or not self.broken[""]}
        for section in self.names:
            value, broken = self.data.get(section), self.broken[section]
            if "*" in broken:
                kept[section] = {}
            elif isinstance(value, dict):
                kept[section] = {name: entry for name, entry in value.items() if name not in broken}
        return kept

    def take_out_unknown_kinds(self) -> None:
        """Report rules of unknown kinds and take them out, before their other keys are looked at."""
        rules = self.data.get("rules")
        options = {key for kind in KINDS.values() for key in _list_keys(kind.form)}
        for name, value in rules.items() if isinstance(rules, dict) else ():
            if isinstance(value, str) and value.split():
                word, location = value.split()[0], self.document.value("rules", name)
            elif isinstance(value, dict) and find_kind_of_rule(value) is None:
                word = next((key for key in value if key not in options), "")  # the kind is the key that no rule has
                location = self.document.key("rules", name, word) if word else self.document.key("rules", name)
            else:
                continue
            if word in KINDS:
                continue
            self.broken["rules"].add(name)
            if word == MERGE:
                self.problems.add("SR101", location, *self._explain_unknown_key(("rules", name, word)))
            elif word:
                cure = REPLACED.get(("", word))
                message = f"no kind of rule {word!r}" if cure else explain_unknown_name("kind of rule", word, KINDS)
                self.problems.add("SR112", location, message, cure)
            else:
                message = f"the kind of rule is missing: expected one of {', '.join(KINDS)}"
                self.problems.add("SR103", location, message, "say what is copied: copy: user.name")

    def report(self, detail: ErrorDetails) -> None:
        """Report one finding of pydantic, and note the entry as broken."""
        on_key = detail["loc"][-1:] == ("[key]",)
        path = _parse_key_path(detail["loc"][:-1] if on_key else detail["loc"])
        error, value, name = detail["type"], detail["input"], str(path[-1]) if path else ""
        if path and path[0] in self.names:
            self.broken[str(path[0])].add(str(path[1]) if len(path) > 1 else "*")
        elif path:
            self.broken[""].add(str(path[0]))
        at_value, at_key, add = self.document.value(*path), self.document.key(*path), self.problems.add
        if error == "missing":
            kind = self._kind(path)
            cures = {**MISSING, **(kind.missing if kind else {})}
            add("SR103", self.document.key(*path[:-1]), f"{name!r} is missing", cures.get(name))
        elif error in NO_PLACE and path[0] == "tables" and name in CREATED_WITH:
            add("SR130", at_key, f"{name!r} is a setting of the table itself, which no rule depends on")
        elif error == "extra_forbidden":
            add("SR101", at_key, *self._explain_unknown_key(path))
        elif on_key:
            as_there = "give it the name that it has in DynamoDB" if len(path) > NAMED_HERE else None
            add("SR105", at_key, _explain_bad_name(error, name, path), as_there)
        elif error in EXPECTED:
            cure = self._suggest_form(EXPECTED[error], value, path)
            add("SR104", at_value, f"expected {EXPECTED[error]}, found {name_type(value)}", cure)
        elif error == NO_FORM:
            cure = (_spell_group(value) if "{each:" in detail["msg"] else None) or _suggest_single_link(value, path)
            keys = f" with {shorten_names([*map(str, value)])}" if isinstance(value, dict) and value else ""
            add("SR104", at_value, f"expected {detail['msg']}; found {name_type(value)}{keys}", cure)
        else:
            add("SR106", at_value, self._explain_range(detail, path))

    def _kind(self, path: KeyPath) -> Kind | None:
        return find_kind_of_rule(self.data["rules"][path[1]]) if path[0] == "rules" and len(path) > 1 else None

    def _fields(self, path: KeyPath) -> dict[str, FieldInfo]:
        """The fields, by key, of the map at whose key a key path ends."""
        if len(path) == 1:
            return _list_keys(make_file_form(self.used.loaded)) | dict.fromkeys(NAMES, FieldInfo())
        if path[0] == "deploy":
            return _list_keys(DeployForm)
        if section := self.used.find_section(path[0]):
            form = section.form_of(self.data[section.name][path[1]])
            return {} if form is None else _list_keys(form)
        if kind := self._kind(path):
            fields = _list_keys(kind.form)
            given: Any = self.data
            for part in path[:-1]:
                given = given[part]
            others = set(map(str, given)) - {path[-1]}
            for part in path[2:-1]:  # an option that is a map of its own, in the form that shares most of its keys
                inner = map(_list_keys, _list_models(fields[str(part)].annotation) if str(part) in fields else ())
                fields = max(inner, key=lambda keys: len(keys.keys() & others), default=fields)
            return fields
        if path[0] != "tables":
            stated = [_list_keys(one.entity) for one in self.used.loaded if one.entity is not None]
            return _list_keys(EntityForm) | dict.fromkeys(ENTITY_KEYS, FieldInfo()) | dict(ChainMap(*stated))
        fields = _list_keys(TableForm)
        for part in path[2:-1]:
            forms = [*_list_models(fields[str(part)].annotation)] if str(part) in fields else []
            fields = {key: one for form in forms for key, one in _list_keys(form).items()} or fields
        return fields

    def _explain_unknown_key(self, path: KeyPath) -> tuple[str, str | None]:
        """Return the message for an unknown key and its cure. Most unknown keys belong to another place."""
        name = str(path[-1])
        if name == MERGE:
            return f"{MERGE!r} merges nothing: YAML 1.2 has no merge keys", "write the options out in each rule"
        kind, keys = self._kind(path), sorted(self._fields(path), key=lambda key: key not in KINDS)
        if kind is not None and len(path) == RULE_OPTION:
            if cure := REPLACED.get((kind.name, name)) or REPLACED.get(("", name)):
                return f"no key {name!r} in {kind.name}. Known: {', '.join(keys)}.", cure
            if name in KINDS:
                message = f"{name!r} is another kind: this rule is of kind {kind.name}"
                return message, "one rule is of one kind: write a rule for each"
            owners = [other.name for other in KINDS.values() if name in _list_keys(other.form)]
            if owners:
                return f"no key {name!r} in {kind.name}, but in {', '.join(owners)}. Known: {', '.join(keys)}.", None
        return explain_unknown_name("key", name, keys), None

    def _suggest_form(self, expected: str, value: Any, path: KeyPath) -> str | None:
        """The form that was most likely meant by a value of another type."""
        if (cure := _suggest_single_link(value, path)) is not None:
            return cure
        if expected == EXPECTED["string_type"] and isinstance(value, dict):
            return "quote text that starts with a brace, such as " + _format_template(value)
        kind, name = self._kind(path), str(path[-1])
        if section := self.used.find_section(path[0]):
            return section.meant(name, value, expected == EXPECTED["list_type"])
        if kind is None or not isinstance(value, str | int) or isinstance(value, bool):
            return None
        if expected == EXPECTED["list_type"]:
            return f"{name}: [{value}]"
        above = ".".join(str(part) for part in path[2:-1])
        cure = {**MEANT, **kind.meant}.get(name if len(path) == RULE_OPTION else f"{above}.*")
        return cure and cure.format(value, key=name)

    def _explain_range(self, detail: ErrorDetails, path: KeyPath) -> str:
        context, value = detail.get("ctx", {}), detail["input"]
        match detail["type"]:
            case "literal_error":
                choices = re.sub(r"'([^']*)'", r"\1", context["expected"])
                return f"expected {choices}, found {value!r}"
            case "greater_than_equal" | "less_than_equal":
                return f"expected {self._range(path) or SIZE}, found {value}"
            case "string_pattern_mismatch":
                return f"expected {SIZE}; found {value!r}"
            case "too_long" if path[0] == "rules":
                return f"expected one entry, found {len(value)}"
            case "string_too_short":
                return "expected text, found none" if path[0] == "rules" else "expected a name, found empty text"
            case "too_short":
                return "expected at least one entry, found none"
            case "too_long" if "indexes" in path and path[-1] in ("partition", "sort"):
                return f"expected at most 4 attributes, found {len(value)}"
            case "too_long":
                full = "; for more, write {partition: {...}, sort: {...}}" if "indexes" in path else ""
                return f"expected a partition key and at most one sort key, found {len(value)} attributes{full}"
        return str(detail["msg"])

    def _range(self, path: KeyPath) -> str:
        field = self._fields(path).get(str(path[-1]))
        limits = field.metadata if field is not None else []
        low = next((limit.ge for limit in limits if hasattr(limit, "ge")), None)
        high = next((limit.le for limit in limits if hasattr(limit, "le")), None)
        return "" if low is None else f"{low} or more" if high is None else f"{low} to {high}"


def _parse_key_path(loc: tuple[str | int, ...]) -> KeyPath:
    """Pydantic's location without the names of the forms it tried."""
    return tuple(part for part in loc if not (isinstance(part, str) and part.startswith(TAG)))


def _list_keys(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """The fields of a model by the keys of the file."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _list_models(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models that a value may be of, among the alternatives of an annotation."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _list_models(inner)


def _spell_group(value: Any) -> str | None:
    """The cure for a group in a link whose word is misspelled, or has capital letters."""
    given = value.items() if isinstance(value, dict) else ()
    words = ((get_close_matches(str(key).lower(), ("each", "first", "constant"), n=1), one) for key, one in given)
    return next((f"write {word}: {one}" for (word,), one in ((word, one) for word, one in words if word)), None)


def _suggest_single_link(value: Any, path: KeyPath) -> str | None:
    """The cure for a link over several items: no kind has one; or for a group in a link of a kind without groups."""
    if path[0] != "rules":
        return None
    if path[2:3] == ("link",) and _spell_group(value):
        return "only count, sum, mean, min and max have groups: name an attribute, which a derive rule can make"
    mapped = isinstance(value, dict) and path[2:3] in (("link",), ("via",))
    return SEVERAL if mapped or (path[2:] == ("link",) and "." in str(value)) else None


def _explain_bad_name(error: str, name: str, path: KeyPath) -> str:
    if error == "string_pattern_mismatch" and "indexes" in path:
        return f"{name!r} is not an index name: DynamoDB takes 3 to 255 letters, digits, _ - and ."
    if error == "string_pattern_mismatch":
        return f"{name!r} is not a name: expected a letter, then letters, digits, _ or -, at most 64"
    return f"{name!r} is not an attribute name: expected 1 to 255 letters"


def _format_template(value: dict[str, Any]) -> str:
    """A map that was meant as a template: {user_id} without quotes is a map in YAML."""
    names = list(value)
    return '"{' + (str(names[0]) if len(names) == 1 else "user_id") + '}"'
