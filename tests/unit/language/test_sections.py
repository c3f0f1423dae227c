"""Sections of other packages: a package with an entry point, in a folder of its own, adds one to the rules file."""

from __future__ import annotations

import importlib
import importlib.metadata
import subprocess
import sys

import pytest

from sync_rules.language import sections
from sync_rules.language.load import check_rules, parse_rules
from sync_rules.language.schema import make_json_schema
from sync_rules.model.errors import UserError
from sync_rules.rules import compiled_file

BASE = """
tables: {shop: {key: {PK: S, SK: S}}}
entities:
  user:  {table: shop, key: {PK: "USER#{user_id}", SK: PROFILE}}
  order: {table: shop, key: {PK: "USER#{user_id}", SK: "ORDER#{order_id}"}}
  note:  {table: shop, key: {PK: "USER#{user_id}", SK: "NOTE#{note_id}"}}
rules:
  names: copy user.name into order.user_name
"""
OWNERS = "owners: {note: {team: support}}\n"
MODULE = '''
from __future__ import annotations
from dataclasses import dataclass
from typing import Any
from pydantic import Field
from sync_rules.language.kinds.options import Model
from sync_rules.language.problems import Problem
from sync_rules.language.sections import Section

class OwnerForm(Model):
    """The owner of an entity."""
    team: str = Field(description="The team.")

class Contact(Model):
    """The keys of an entity."""
    contact: str | None = Field(default=None, description="An address.")

@dataclass(frozen=True)
class Owners:
    teams: dict[str, str]

def compiled(known, form, rules):
    for name in form.section("owners"):
        if name not in rules.entities:
            known.problems.add("SR102", known.document.key("owners", name), f"no entity {name!r}")
    return Owners({name: one.team for name, one in form.section("owners").items()})

def lint(rules, document):
    for name, team in rules.sections["owners"].teams.items():
        if team == "nobody":
            yield Problem("ACME401", f"{name} has no owner", document.value("owners", name, "team"))

SECTION = Section(
    name="owners", form=dict[str, OwnerForm], default={}, description="The teams.", compile=compiled, lint=lint,
    entity=Contact, entities_of=lambda owners: owners.teams, form_of=lambda _: OwnerForm,
)
'''


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Put a package beside its metadata into a folder on the path, as an installer does."""

    def put(text=MODULE, name="acme_owners", section="owners"):
        info = tmp_path / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[{sections.GROUP}]\n{section} = {name}:SECTION\n")
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, name, raising=False)
        importlib.invalidate_caches()

    monkeypatch.syspath_prepend(str(tmp_path))
    return put


@pytest.fixture
def reads(monkeypatch):
    """Each look at the entry points."""
    found = []

    def entry_points(**given):
        found.append(given)
        return importlib.metadata.entry_points(**given)

    monkeypatch.setattr(sections, "entry_points", entry_points)
    return found


def said(text):
    _, problems = check_rules(text)
    return [(one.code, one.location.line, one.message) for one in problems]


def test_section_of_a_package_is_compiled(install):
    """Its result is beside the rules, and an entity that it names is in use."""
    install()
    rules, problems = check_rules(BASE + OWNERS)
    assert problems == []
    assert rules.sections["owners"].teams == {"note": "support"}
    assert said(BASE) == [("SR406", 6, "no rule reads or writes 'note'")]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("owners: {note: {team: nobody}}", ("ACME401", 9, "note has no owner")),
        ("owners: {nota: {team: support}}", ("SR102", 9, "no entity 'nota'")),
        ("owners: {note: {taem: support}}", ("SR101", 9, "no key 'taem'. Known: team. Did you mean 'team'?")),
        ("owners: {note: {team: 5}}", ("SR104", 9, "expected text, found a number")),
        ("owners: support", ("SR104", 9, "expected a map, found text")),
    ],
)
def test_section_of_a_package_reports_its_problems(install, given, problem):
    """Its form, its compiler and its lint do, at the place in the file."""
    install()
    assert problem in said(f"{BASE}{given}\n")


def test_section_of_a_package_adds_keys_to_entities(install):
    """They are checked where the file uses the section."""
    install()
    text = BASE.replace("table: shop, key", "contact: 5, table: shop, key", 1)
    assert said(text + OWNERS)[0] == ("SR104", 4, "expected text, found a number")
    assert said(text)[0][0] == "SR101"


def test_section_of_a_package_is_in_the_schema(install):
    """An editor completes it, and its keys of entities."""
    assert "owners" not in make_json_schema()["properties"]
    install()
    schema = make_json_schema()
    assert schema["properties"]["owners"]["additionalProperties"] == {"$ref": "#/$defs/OwnerForm"}
    assert {"contact", "size"} <= schema["$defs"]["EntityForm"]["properties"].keys()
    assert list(schema["properties"])[-1] == "deploy"


@pytest.mark.parametrize(
    ("text", "found", "cure"),
    [
        ("import a_missing_one", "section 'owners' of acme_owners needs a package that is missing", "a_missing_one"),
        ("1 / 0", "section 'owners' of acme_owners cannot be loaded: ZeroDivisionError", "update acme_owners"),
        ("SECTION = 1", "section 'owners' of acme_owners is not a Section of this name", "update acme_owners"),
    ],
)
def test_section_that_cannot_be_loaded_is_one_problem(install, text, found, cure):
    """The problem is at the section, and its cure names the package; the rest is checked."""
    install(text)
    rules, problems = check_rules(BASE + OWNERS)
    (problem,) = (one for one in problems if one.severity == "error")
    assert rules is None
    assert (problem.code, problem.location.line) == ("SR121", 9)
    assert problem.message.startswith(found)
    assert cure in problem.cure
    with pytest.raises(UserError, match="section 'owners'"):
        make_json_schema()


def test_section_of_two_packages_is_refused(install):
    """None of them is chosen in silence."""
    install()
    install(name="other_owners")
    assert ("SR121", 9, "several packages have a section 'owners': acme_owners, other_owners") in [
        (code, line, text.replace("other_owners, acme_owners", "acme_owners, other_owners"))
        for code, line, text in said(BASE + OWNERS)
    ]


def test_file_without_unknown_sections_reads_no_entry_point(install, reads):
    """Only a top-level name that is not known is looked up: a run depends on no other package."""
    install()
    parse_rules(BASE + "deploy: {write: true}\npatterns: {p: {get: note, by: [user_id, note_id]}}\n")
    assert reads == []
    assert said(BASE + "nothing: 1\n")[-1][0] == "SR101"
    assert reads


def test_compiled_file_leaves_out_the_section_of_a_package(install, tmp_path):
    """No function imports the package, or looks for one; a section of this package is read when it is used."""
    install()
    rules = parse_rules(BASE + OWNERS + "patterns: {p: {get: note, by: [user_id, note_id]}}\n")
    data = compiled_file.dump(rules, {})
    (tmp_path / "rules.compiled").write_bytes(data)
    code = (
        "import sys, importlib.metadata; from pathlib import Path; from sync_rules.rules import compiled_file\n"
        "importlib.metadata.entry_points = None  # looking for one fails\n"
        "found = compiled_file.read(Path('rules.compiled').read_bytes(), 'rules.compiled')\n"
        "extras = [name for name in sys.modules if name.startswith(('acme_owners', 'sync_rules.extras'))]\n"
        "print(sorted(found.rules), extras, list(found.sections), 'acme_owners' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"{sorted(rules.rules)} [] ['patterns'] False"
