"""Whatever a document holds: a rules file that passes check, or a problem with its place, and never a traceback."""

from __future__ import annotations

import copy
import json
import random
import re
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from sync_rules.extras.discover.imports.foreign_document import (
    ImportedFileError,
    parse_json_document,
    parse_yaml_document,
)
from sync_rules.extras.discover.imports.imported_model import RulesDraft
from sync_rules.extras.discover.imports.importer import rules_from_text
from sync_rules.language.load import check_rules
from sync_rules.language.problems import list_errors
from tests.support.depth import deep

FIXTURES = sorted((Path(__file__).parent / "fixtures").iterdir())
DOCUMENTS = {
    path.name: (parse_json_document if path.suffix == ".json" else parse_yaml_document)(
        path.read_text(), path.name
    ).value
    for path in FIXTURES
    if path.suffix != ".tf"
}
KEYS = sorted(
    {key for document in DOCUMENTS.values() for key in re.findall(r'"([^"]+)": ', json.dumps(document))}
    | {"", "~", "/", "${x}", "{a}", "null", "é", "\x07", "\u2028"}
)
ODD = ["S", "N", "B", "HASH", "RANGE", "USER#1", "USER#2", "#", "a#b#c", "{x}{y}", "USER#{id", "${VAR}", "x" * 300, "-"]
TEXTS = st.one_of(st.sampled_from([*KEYS, *ODD]), st.text(max_size=8))
LEAVES = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), TEXTS)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=30,
)


def outcome(text: str) -> RulesDraft | ImportedFileError:
    try:
        return rules_from_text(text, "any.json")
    except ImportedFileError as error:
        return error


def require_sound(found: RulesDraft | ImportedFileError) -> None:
    """A rules file passes check; a problem is whole."""
    if isinstance(found, ImportedFileError):
        assert found.file == "any.json"
        assert found.expected
        assert found.found
        assert found.cure
        assert str(found).isprintable() or "\n" in str(found)
        return
    rules, problems = check_rules(found.text, {})
    assert not list_errors(problems), (found.text, list_errors(problems))
    assert rules is not None
    assert all(note.isprintable() for note in found.notes)


@settings(max_examples=deep(150))
@given(VALUES)
@example({"DataModel": []})
@example({"tables": [{"table_config": 1}]})
def test_import_of_any_document_ends_well(value):
    """No document makes it raise anything but its own problem."""
    require_sound(outcome(json.dumps(value)))


def places(value: object, path: tuple = ()) -> list[tuple]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(one for key, each in inner for one in places(each, (*path, key)))]


def replaced(document: object, path: tuple, change: object) -> object:
    """A copy of a document with another value at a place, or without it."""
    made = copy.deepcopy(document)
    if not path:
        return change
    holder = made
    for key in path[:-1]:
        holder = holder[key]
    if change is DROPPED:
        del holder[path[-1]]
    else:
        holder[path[-1]] = change
    return made


DROPPED = object()
OTHERS = [None, 7, "", "x y", [], {}, [{}], {"a": []}]


@settings(max_examples=deep(150))
@given(
    st.sampled_from(sorted(DOCUMENTS)),
    st.integers(0, 10**6),
    st.one_of(st.just(DROPPED), st.sampled_from(OTHERS), VALUES),
    st.integers(0, 2),
)
def test_import_of_a_damaged_document_ends_well(name, seed, change, more):
    """A fixture of each format, with something else at one to three places."""
    document = DOCUMENTS[name]
    chosen = random.Random(seed)
    for _ in range(more + 1):
        path = chosen.choice(places(document))
        if path or change is not DROPPED:
            document = replaced(document, path, change)
    require_sound(outcome(json.dumps(document)))


@given(st.text(max_size=60) | st.text("{}[]:,-#!&*\"'|\n ab$", max_size=60))
@example("!Ref [a")
@example("Resources: !Transform {a: b}")
@example("Resources: {A: {Type: AWS::DynamoDB::Table, Properties: &a {b: *a}}}")
@example("{" * 500)  # nests too deeply; the time grows with the square
@example("\ufeff")
@example('resource "a" "b" {')
def test_import_of_any_text_ends_well(text):
    """A text that is neither JSON nor YAML is a problem with its line."""
    require_sound(outcome(text))
