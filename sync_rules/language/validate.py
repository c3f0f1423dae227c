"""From a YAML document to a file of the right shape: what pydantic finds wrong, in our words and at its location.

Law: one bad entry does not hide the others. A table, entity or rule of the wrong shape is reported and taken out, and
the rest goes on to be compiled; `broken` keeps the names, so that who refers to one is not told it does not exist.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from sync_rules.language.kinds.embed import Limit
from sync_rules.language.kinds.registry import FORMS, kind_of_rule
from sync_rules.language.problems import Problems
from sync_rules.language.schema import EntityForm, FileForm, IndexForm, TableForm
from sync_rules.language.yaml_source import Document, KeyPath, kind_of
from sync_rules.model.suggest import unknown

SECTIONS: Mapping[str, type[BaseModel]] = {"tables": TableForm, "entities": EntityForm, "rules": FORMS["copy"]}
TAG = "form:"  # how the names of forms begin, which pydantic puts into its locations
EXPECTED = {
    "string_type": "text",
    "dict_type": "a map",
    "model_type": "a map",
    "list_type": "a list",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "bool_type": "true or false",
}
FORMS_OF = {
    "rule_form()": "a sentence such as `copy user.name into order.user_name`, or a map with copy and into",
    "copy_form()": "a path, a list of paths, or a map from path to new name",
    "fields_form()": "a list of attributes, or a map from attribute to new name",
    "attributes_form()": "all, a list of attributes, or a map from attribute to new name",
    "size_form()": "a size such as 100KB",
    "cell_form()": "text or a number",
    "weight_form()": "a number",
    "index_form()": "a map of key attributes and their types",
    "projection_form()": "all, keys, or a list of attribute names",
}
MISSING = {
    "key": "key: {PK: S, SK: S}",
    "table": "name the table that holds the items",
    "parent": "name the attribute with the parent's id: parent: ParentId",
    "on": "name the entity: on: order",
    "as": 'say what an element is made of: as: "{target}"',
}
MEANT = {  # maps of which one value was written
    "limit": "limit: {{items: {}}}",
    "each": "name the mirror's field: each: {{field: {}}}",
    "link": "name the field of the one pointed to: link: {{field: {}}}",
}
MERGE = "<<"
RULE_OPTION = 3  # parts of the key path to an option of a rule
INTO = {
    "copy": "say where the copy goes: into: order.user_name",
    "mirror": "name the entity of the mirrored items: into: user_by_email",
    "archive": "name the bucket: into: s3://${BUCKET}/games/",
}


@dataclass(frozen=True)
class Shaped:
    """The sound part of a file, and the names in each section that are there but broken."""

    form: FileForm
    broken: Mapping[str, frozenset[str]]


def shape(document: Document, problems: Problems) -> Shaped | None:
    """The file as models; None when it is not even a map."""
    if not isinstance(document.data, dict):
        problems.add(
            "SR104",
            document.value(),
            f"expected a map with tables, entities and rules; found {kind_of(document.data)}",
        )
        return None
    data = {name: document.data.get(name) for name in SECTIONS}
    broken = _unknown_kinds(document, problems, data["rules"])
    for _ in range(2):  # once to find what is wrong, once more without it
        try:
            form = FileForm.model_validate(_without(document.data, broken))
        except ValidationError as error:
            for detail in error.errors(include_url=False):
                _report(detail, document, problems, broken)
        else:
            return Shaped(form, {name: frozenset(broken[name]) for name in SECTIONS})
    raise AssertionError("what pydantic found wrong was not taken out")


def _without(data: Mapping[str, Any], broken: Mapping[str, set[str]]) -> dict[str, Any]:
    """The file's data without what is broken; a section that is broken as a whole is empty."""
    kept = {name: value for name, value in data.items() if name in SECTIONS or "" not in broken}
    for section in SECTIONS:
        if "*" in broken[section]:
            kept[section] = {}
        elif isinstance(data.get(section), dict):
            kept[section] = {name: value for name, value in data[section].items() if name not in broken[section]}
    return kept


def _unknown_kinds(document: Document, problems: Problems, rules: Any) -> dict[str, set[str]]:
    """Take out the rules of unknown kinds, before their other keys are looked at."""
    broken: dict[str, set[str]] = {name: set() for name in SECTIONS}
    options = {key for form in FORMS.values() for key in _keys(form)}
    for name, value in rules.items() if isinstance(rules, dict) else ():
        if isinstance(value, str) and value.split():
            word, location = value.split()[0], document.value("rules", name)
        elif isinstance(value, dict) and value and kind_of_rule(value) is None:
            # The kind is the key that no rule has.
            word = next((key for key in value if key not in options), "")
            location = document.key("rules", name, word) if word else document.key("rules", name)
        elif value == {}:
            word, location = "", document.key("rules", name)
        else:
            continue
        if word in FORMS:
            continue
        broken["rules"].add(name)
        if word == MERGE:
            problems.add("SR101", location, *_unknown_key(word, ("rules", name, word), {"rules": rules}))
        elif word:
            problems.add("SR112", location, unknown("kind of rule", word, FORMS))
        else:
            message = f"the kind of rule is missing: expected one of {', '.join(FORMS)}"
            problems.add("SR103", location, message, "say what is copied: copy: user.name")
    return broken


def _report(detail: ErrorDetails, document: Document, problems: Problems, broken: dict[str, set[str]]) -> None:
    """One finding of pydantic in our words."""
    on_key = detail["loc"][-1:] == ("[key]",)
    path = _key_path(detail["loc"][:-1] if on_key else detail["loc"], document.data)
    kind, found = detail["type"], kind_of(detail["input"])
    if path and path[0] in SECTIONS:
        broken[str(path[0])].add(str(path[1]) if len(path) > 1 else "*")
    elif path:
        broken.setdefault("", set()).add(str(path[0]))
    name = str(path[-1]) if path else ""
    if kind == "missing":
        problems.add("SR103", document.key(*path[:-1]), f"{name!r} is missing", _missing_cure(path, document.data))
    elif kind == "extra_forbidden":
        problems.add("SR101", document.key(*path), *_unknown_key(name, path, document.data))
    elif on_key:
        problems.add(*_bad_name(kind, name, path, document))
    elif kind in EXPECTED:
        cure = _shape_cure(EXPECTED[kind], detail["input"], path)
        problems.add("SR104", document.value(*path), f"expected {EXPECTED[kind]}, found {found}", cure)
    elif kind == "union_tag_not_found":
        form = FORMS_OF[detail["ctx"]["discriminator"]]
        problems.add("SR104", document.value(*path), f"expected {form}; found {found}")
    else:
        problems.add("SR106", document.value(*path), _out_of_range(detail, path, document.data))


def _key_path(loc: tuple[str | int, ...], data: Any) -> KeyPath:
    """Pydantic's location without the names of the forms it tried."""
    path: list[str | int] = []
    for part in loc:
        if isinstance(part, str) and part.startswith(TAG):
            continue
        path.append(part)
        try:
            data = data[part]
        except (KeyError, IndexError, TypeError):
            data = None
    return tuple(path)


def _model(path: KeyPath, data: Any) -> type[BaseModel]:
    """The model of the map at whose key a path ends."""
    if len(path) == 1:
        return FileForm
    if path[0] == "rules":
        return Limit if "limit" in path[:-1] else FORMS[_kind(path, data)]
    return IndexForm if "indexes" in path[:-1] else SECTIONS[str(path[0])]


def _unknown_key(name: str, path: KeyPath, data: Any) -> tuple[str, str | None]:
    """What to say of a key that is not known where it stands, and its cure: most often it belongs somewhere else."""
    keys = _keys(_model(path, data))
    if name == MERGE:
        return f"{MERGE!r} merges nothing: YAML 1.2 has no merge keys", "write the options out in each rule"
    if path[0] == "rules" and len(path) == RULE_OPTION:
        kind = _kind(path, data)
        if name in FORMS:
            return (
                f"{name!r} is another kind: this rule is of kind {kind}",
                "one rule is of one kind: write a rule for each",
            )
        owners = [word for word, form in FORMS.items() if name in _keys(form)]
        if owners:
            return f"no key {name!r} in {kind}, but in {', '.join(owners)}. Known: {', '.join(keys)}.", None
    return unknown("key", name, keys), None


def _shape_cure(expected: str, value: Any, path: KeyPath) -> str | None:
    """The form that was most likely meant by a value of another type."""
    name = str(path[-1])
    if expected == EXPECTED["string_type"] and isinstance(value, dict):
        return "quote text that starts with a brace, such as " + _as_template(value)
    if path[0] != "rules" or not isinstance(value, str | int) or isinstance(value, bool):
        return None
    if expected == EXPECTED["list_type"]:
        return f"{name}: [{value}]"
    if "weights" in path:
        return f"name the attribute first: weights: {{attribute: {{{name}: {value}}}}}" if name != "weights" else None
    return MEANT[name].format(value) if name in MEANT else None


def _kind(path: KeyPath, data: Any) -> str:
    return kind_of_rule(data["rules"][path[1]]) or "copy"


def _keys(model: type[BaseModel]) -> list[str]:
    """The keys of a map, of a rule's the one that names its kind first."""
    keys = [field.alias or name for name, field in model.model_fields.items()]
    return sorted(keys, key=lambda key: key not in FORMS) if model in FORMS.values() else keys


def _missing_cure(path: KeyPath, data: Any) -> str | None:
    if path[-1] == "into":
        return INTO.get(_kind(path, data), "say where to: entity.attribute")
    return MISSING.get(str(path[-1]))


def _bad_name(kind: str, name: str, path: KeyPath, document: Document) -> tuple[str, Any, str]:
    location = document.key(*path)
    if kind == "string_pattern_mismatch" and "indexes" in path:
        return "SR105", location, f"{name!r} is not an index name: DynamoDB takes 3 to 255 letters, digits, _ - and ."
    if kind == "string_pattern_mismatch":
        return "SR105", location, f"{name!r} is not a name: expected a letter, then letters, digits, _ or -, at most 64"
    return "SR105", location, f"{name!r} is not an attribute name: expected 1 to 255 letters"


def _out_of_range(detail: ErrorDetails, path: KeyPath, data: Any) -> str:
    context, value = detail.get("ctx", {}), detail["input"]
    match detail["type"]:
        case "literal_error":
            choices = re.sub(r"'([^']*)'", r"\1", context["expected"])
            return f"expected {choices}, found {value!r}"
        case "greater_than_equal" | "less_than_equal":
            return f"expected {_range(path, data) or 'a size such as 100KB'}, found {value}"
        case "string_pattern_mismatch":
            return f"expected a size such as 100KB, found {value!r}"
        case "too_long" if path[0] == "rules":
            return f"expected one entry, found {len(value)}"
        case "string_too_short":
            return "expected text, found none" if path[0] == "rules" else "expected a name, found empty text"
        case "too_short":
            return "expected at least one entry, found none"
        case "too_long" if "indexes" in path and path[-1] not in ("partition", "sort"):
            return (
                f"expected a partition key and at most one sort key, found {len(value)} attributes; "
                "for more, write {partition: {...}, sort: {...}}"
            )
        case "too_long" if "indexes" in path:
            return f"expected at most 4 attributes, found {len(value)}"
        case "too_long":
            return f"expected a partition key and at most one sort key, found {len(value)} attributes"
    return str(detail["msg"])


def _range(path: KeyPath, data: Any) -> str:
    """The numbers that a key takes, as its model has them."""
    fields = {field.alias or name: field for name, field in _model(path, data).model_fields.items()}
    limits = fields[str(path[-1])].metadata if path[-1] in fields else []
    low = next((limit.ge for limit in limits if hasattr(limit, "ge")), None)
    high = next((limit.le for limit in limits if hasattr(limit, "le")), None)
    return "" if low is None else f"{low} or more" if high is None else f"{low} to {high}"


def _as_template(value: Any) -> str:
    """A map that was meant as a template: {user_id} without quotes is a map in YAML."""
    names = list(value) if isinstance(value, dict) else []
    return '"{' + (str(names[0]) if len(names) == 1 else "user_id") + '}"'
