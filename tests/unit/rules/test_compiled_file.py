"""Compiled rules: what the functions load is what the rules file says, or an error that says to build again."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest

from sync_rules import __version__
from sync_rules.deploy.deployment import read_deployment
from sync_rules.language.load import parse_rules
from sync_rules.model.errors import UserError
from sync_rules.model.items import Change
from sync_rules.rules import compiled_file
from sync_rules.rules.fingerprints import compute_rule_fingerprints
from sync_rules.rules.ruleset import Rules
from tests.simulation.grammar import made
from tests.support.every_kind import EFFECTS, RULES, text_of
from tests.test_house import ROOT

EXAMPLES = sorted(ROOT.glob("examples/*/rules.yaml"))
FILES = [*EXAMPLES, ROOT / "benchmarks/rules.yaml", ROOT / "tests/deploy/rules.yaml"]
FORMATS = (
    "{zip:nospace:upper}#{name:lower}#{rank:pad(8)}#{at:date(%Y-%m %d)}#{email:shard(10)}#{size:sizes}"  # every format
)
FORMATTED = f"{{derive: user.formats, as: '{FORMATS}', map: {{sizes: {{big: '9', small: '1'}}}}}}"
EVERY_KIND = text_of(RULES | EFFECTS | {"formats": FORMATTED})
PLACES = """
tables:
  shop: {name: "${STAGE:-dev}-shop", key: {PK: S, SK: S}}
  posts: {name: "${STAGE:-dev}-${WHERE}", key: {post_id: S}}
entities: {post: {table: posts}, order: {table: shop, key: {PK: "ORDER#{order_id}", SK: ORDER}}}
rules:
  open: {derive: order.open, as: "{state}"}
"""
GIVEN = {"WHERE": "posts"}


def built(text: str, folder: Path) -> bytes:
    """The compiled form that the build makes of a rules file."""
    file = folder / "rules.yaml"
    file.write_text(text)
    deployment = read_deployment(file)
    marks = {variable.mark: (variable.name, variable.default) for variable in deployment.variables}
    return compiled_file.dump(deployment.rules, marks)


def told(value: object) -> object:
    """The content of a value as plain values, to compare compiled rules."""
    if is_dataclass(value):
        return type(value), {field.name: told(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, partial):
        return value.func, told(value.args), told(value.keywords)
    if isinstance(value, Mapping):
        return [(told(key), told(one)) for key, one in value.items()]
    return [told(one) for one in value] if isinstance(value, tuple | list) else value


@pytest.mark.parametrize(
    "text", [*(file.read_text() for file in FILES), EVERY_KIND], ids=[*(f.parent.name for f in FILES), "kinds"]
)
def test_compiled_rules_are_those_of_the_file(text, tmp_path):
    """Compiled rules of any kind equal the file's, field by field, with the same fingerprints."""
    given = {"STAGE": "test", "TABLE_PREFIX": "test-"}
    found, expected = compiled_file.read(built(text, tmp_path), "x", given), parse_rules(text, environ=given)
    assert told(found) == told(expected)
    assert compute_rule_fingerprints(found) == compute_rule_fingerprints(expected)
    for rule in found.rules.values():
        assert rule.source is found.entities[rule.source.name]
        assert rule.target is found.entities[rule.target.name]
        assert rule.source.table is found.tables[rule.source.table.name]


@pytest.mark.parametrize("number", range(60))
def test_compiled_random_rules_are_those_of_the_file(number):
    """Rules with random options of every kind are read as they were compiled."""
    rules = made(number).rules
    assert told(compiled_file.read(compiled_file.dump(rules, {}), "x")) == told(rules)


class Forged:
    """An object whose pickle calls a function when it is read."""

    def __init__(self, function: Callable[..., object], *arguments: object) -> None:
        self._reduced = function, arguments

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return self._reduced


def signed_pickle(body: bytes, **classes: list[str]) -> bytes:
    """A compiled file of this version whose digest fits its pickle, as anyone can write it."""
    python = compiled_file.OF_THIS_PYTHON
    stamp = {"sync-rules": __version__, "python": python, "marks": {}, "classes": classes, "source": ""}
    return signed(b"\n".join((json.dumps(stamp).encode(), b"", body)))


@pytest.mark.parametrize(
    "forged",
    [
        Forged(os.mkdir, "ran"),
        Forged(exec, "import os; os.mkdir('ran')"),
        Forged(getattr, "", "join"),
        Forged(import_module, "antigravity"),
        Forged(partial, os.mkdir, "ran"),
        Forged(compiled_file.name_compiled_file, Path("rules.yaml")),
        Forged(Rules.only, None, ()),
        compiled_file._RulesPickler,
        Change,
    ],
    ids=["system", "builtin", "attribute", "import", "partial", "function of rules", "method", "class", "dataclass"],
)
def test_compiled_forgery_is_refused_before_it_runs(forged, tmp_path, monkeypatch):
    """A file whose digest fits names only what rules consist of: anything else is refused, and does not run."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"not part of any rule|not a frozen dataclass"):
        compiled_file.read(signed_pickle(pickle.dumps(forged)), "rules.compiled")
    assert not list(tmp_path.iterdir())


def test_compiled_forgery_imports_no_other_module(tmp_path, monkeypatch):
    """A name in a module outside of the product is refused before the module is imported."""
    (tmp_path / "forged_module.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UserError, match=r"forged_module\.Thing is not part of any rule"):
        compiled_file.read(signed_pickle(b"cforged_module\nThing\n."), "rules.compiled")


@pytest.mark.parametrize(
    "given",
    [
        GIVEN,
        GIVEN | {"STAGE": "prod"},
        GIVEN | {"STAGE": ""},
    ],
    ids=["defaults", "set", "empty"],
)
def test_compiled_variables_have_their_values_of_where_it_runs(given, tmp_path):
    """Variables of compiled rules get the values of the process that reads them."""
    expected = parse_rules(PLACES, environ=given)
    found = compiled_file.read(built(PLACES, tmp_path), "rules.compiled", given)
    assert told(found) == told(expected)
    assert list(found.by_physical_name) == list(expected.by_physical_name)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "environment variables of the rules: WHERE"),
        (GIVEN | {"WHERE": "no name"}, "table posts: 'dev-no name' is not a name of a DynamoDB table"),
        (GIVEN | {"WHERE": "shop"}, "tables shop and posts both name the DynamoDB table 'dev-shop'"),
    ],
    ids=["not set", "table", "twice"],
)
def test_compiled_values_that_do_not_fit_are_refused(given, message, tmp_path):
    """Values of variables that do not fit are refused with the words that a rules file gets."""
    with pytest.raises(UserError, match=r"^rules\.compiled: ") as raised:
        compiled_file.read(built(PLACES, tmp_path), "rules.compiled", given)
    assert message in str(raised.value)


def with_stamp(data: bytes, **changed: object) -> bytes:
    line, _, rest = data.partition(b"\n")
    new = json.loads(line) | {name.replace("_", "-"): one for name, one in changed.items()}
    return json.dumps(new).encode() + b"\n" + rest


def signed(data: bytes) -> bytes:
    """A changed file with a digest that fits: as code that was changed without a new version would have built it."""
    line, _, body = data.split(b"\n", 2)
    return b"\n".join((line, hashlib.sha256(line + b"\n" + body).hexdigest().encode(), body))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: with_stamp(data, sync_rules="0.0.1"), "compiled by sync-rules 0.0.1 for Python"),
        (lambda data: with_stamp(data, python="3.9"), "for Python 3.9, and here is"),
        (lambda data: signed(data.replace(b'"physical_name",', b"", 1)), "sync_rules.model.entities.Table has other fields"),
        (lambda data: signed(data.replace(b"sync_rules.model.entities", b"sync_rules.model.entitiez")), "No module named"),
        (lambda data: signed(data.replace(b"\x8c\x05Table", b"\x8c\x05Tabel")), "Tabel"),
        (lambda data: signed(data[:-20]), "compiled by other code"),
        (lambda data: data[:-20], "changed after the build"),
        (lambda data: data.replace(b"posts", b"toast"), "changed after the build"),
        (lambda data: with_stamp(data, marks={}), "changed after the build"),
        (lambda data: signed(data.replace(b'"marks":', b'"mark":', 1)), "not compiled rules"),
        (lambda data: b"tables: {}\n" + data, "not compiled rules"),
        (lambda _data: b"", "not compiled rules"),
        (lambda _data: b"[1]\n", "not compiled rules"),
    ],
    ids=["version", "python", "fields", "module", "class", "broken", "cut off", "edited", "marks", "stamp", "yaml", "empty", "json"],
)  # fmt: skip
def test_compiled_by_something_else_is_refused(change, message, tmp_path):
    """A file compiled by another version, Python or code is refused with advice to build again."""
    with pytest.raises(UserError, match="Build again") as raised:
        compiled_file.read(change(built(PLACES, tmp_path)), "rules.compiled", GIVEN)
    assert message in str(raised.value)
