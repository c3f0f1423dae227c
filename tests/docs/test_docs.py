"""The documentation cannot lie: its commands run, its rules are checked, its tables are compared with the code."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest
from ruamel.yaml import YAML

from sync_rules import __version__
from sync_rules.adapters import dynamodb
from sync_rules.cli import main
from sync_rules.cli.commands.check import format_report
from sync_rules.deploy.resources import RULES_DIGEST, VERSION
from sync_rules.functions import logs, runtime
from sync_rules.jobs.consume.attempts import MappingSettings
from sync_rules.lab.demo import story
from sync_rules.lab.scenario_file import load_scenario
from sync_rules.language.kinds.registry import KINDS
from sync_rules.language.load import check_rules, parse_rules
from sync_rules.language.problems import CODES
from sync_rules.model.item_change import ItemChange
from sync_rules.model.limits import Limits
from sync_rules.pipeline.telemetry import (
    DRIFT,
    DRIFT_SHARE,
    FAILURE_RECORDS,
    LAG,
    METRIC_NAMES,
    SENT,
    SETUP_ERRORS,
    THROTTLED,
    UNREADABLE,
    VERIFIED,
)
from sync_rules.rules.formula import parse_formula
from sync_rules.write.document import OPTIONS
from tests.docs.reference import GENERATED, ROOT, expected, help_text, shown
from tests.support.builders import s
from tests.support.worlds import Scene

SKILL = "sync_rules/deploy/project/skill.md"
PAGES = sorted([*ROOT.glob("*.md"), ROOT / "examples/README.md", ROOT / SKILL, *(ROOT / "docs").rglob("*.md")])
TEXTS = {str(page.relative_to(ROOT)): page.read_text() for page in PAGES}
ALL = "\n".join(TEXTS.values())
FENCE = re.compile(r"^```(?P<language>\w+)(?: (?P<mark>\w+))?\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE)
UNUSED = {"SR406", "SR407"}  # a part of a file that adds to another may leave some of it unused


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    page: str
    line: int
    language: str
    mark: str
    body: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(page: str) -> list[Block]:
    text = TEXTS[page]
    return [
        Block(page, text.count("\n", 0, m.start()) + 1, m["language"], m["mark"] or "", m["body"])
        for m in FENCE.finditer(text)
    ]


def blocks_of(language: str) -> list[Block]:
    return [block for page in TEXTS for block in blocks(page) if block.language == language]


def is_whole(block: Block) -> bool:
    return all(f"\n{section}:" in f"\n{block.body}" for section in ("tables", "entities", "rules"))


def first_file(page: str) -> Block:
    """The first block of a page that is a whole rules file, to which its other examples add; else the README's."""
    found = (block for block in blocks(page) if block.language == "yaml" and not block.mark and is_whole(block))
    return next(found, None) or first_file("README.md")


def rows(page: str, *head: str) -> list[list[str]]:
    """The rows of the tables of a page whose first columns have these heads."""
    found: list[list[str]] = []
    inside = False
    for line in TEXTS[page].splitlines():
        cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if not line.startswith("|"):
            inside = False
        elif inside and not set(cells[0]) <= set("-"):
            found.append(cells)
        elif [cell.strip("`") for cell in cells[: len(head)]] == list(head):
            inside = True
    assert found, f"{page} has no table {head}"
    return found


def named(cell: str) -> str:
    match = re.match(r"`([^`]+)`", cell)
    assert match, cell
    return match[1]


# ---------------------------------------------------------------- made from the code
@pytest.mark.parametrize("page", GENERATED)
def test_docs_the_generated_parts_are_those_of_the_code(page):
    """Codes, commands, limits and the import table are what the code says: else run python -m tests.docs.reference."""
    assert (ROOT / page).read_text() == expected(page)


def test_docs_list_the_settings_of_the_event_source_mapping():
    """docs/limits.md has every setting of the pump with its default."""
    table = {named(cells[0]): cells[1] for cells in rows("docs/limits.md", "name", "default") if len(cells) == 3}
    said = {name: value for name, value in table.items() if name not in {f.name for f in fields(Limits)}}
    assert said == {f.name: shown(f.default) for f in fields(MappingSettings) if f.name != "function_arn"}


@pytest.mark.parametrize(
    "cells", rows("docs/limits.md", "name", "default", "meaning", "in"), ids=lambda cells: cells[0]
)
def test_docs_give_a_constant_as_its_module_has_it(cells):
    """A limit that is a constant has the value that stands in the table."""
    name, value, _, module = cells
    dotted = named(module).removesuffix(".py").replace("/", ".")
    assert shown(getattr(import_module(dotted), named(name))) == value


OTHER_METRICS = {DRIFT, DRIFT_SHARE, FAILURE_RECORDS, LAG, SENT, SETUP_ERRORS, THROTTLED, UNREADABLE, VERIFIED}


def test_docs_name_the_metrics_and_variables_of_the_handlers():
    """docs/deploy.md names every metric and every environment variable of the handlers, and no other."""
    variables = {named(cells[0]) for cells in rows("docs/deploy.md", "environment variable")}
    paragraph = re.search(r"Metrics per rule, in namespace.*?(?:\n\n|\Z)", TEXTS["docs/deploy.md"], re.DOTALL)
    assert paragraph
    made = {**vars(runtime), **vars(logs), **vars(dynamodb)}
    ours = {value for name, value in made.items() if name.isupper() and str(value).startswith("SYNC_RULES_")}
    assert variables == ours
    assert runtime.CALLS_TABLE in ours
    of_commands = {main.DEBUG, "SYNC_RULES_SALT", "SYNC_RULES_STACK", "SYNC_RULES_STATE", RULES_DIGEST, VERSION}
    assert set(re.findall(r"SYNC_RULES_\w+", ALL)) <= ours | of_commands
    assert set(re.findall(r"`(\w+)`", paragraph[0])) == {
        *METRIC_NAMES.values(), *OTHER_METRICS, "SyncRules", "service", "POWERTOOLS_SERVICE_NAME",
    }  # fmt: skip


REFERENCE = "docs/rules-file.md"
# The kinds by the titles of their key tables: a page may have one for several kinds.
KINDS_BY_TABLE = {
    title: tuple(re.findall(r"[a-z]+", title.replace(" and ", ", ")))
    for page in ("docs/rules-file.md", *(f"docs/rules/{kind}.md" for kind in KINDS if f"docs/rules/{kind}.md" in TEXTS))
    for title in re.findall(r"^\| key of ([a-z, ]+?) \|", TEXTS[page], re.MULTILINE)
    if title.split(",")[0] in KINDS
}


@pytest.mark.parametrize("title", ["copy", *KINDS_BY_TABLE])
def test_docs_name_every_key_of_a_kind(title):
    """docs/rules-file.md explains each key of each kind, with its default; of kinds but copy no more."""
    forms = [KINDS[kind].form for kind in KINDS_BY_TABLE.get(title, ("copy",))]
    keys = {f.alias or name: f for form in forms for name, f in form.model_fields.items()}
    head = "key" if title == "copy" else f"key of {title}"
    table = {
        name: default.strip("`")
        for cell, _, default in rows(page_of_keys(title), head, "meaning", "default")
        for name in re.findall(r"`([^`]+)`", cell)
    }
    assert keys.keys() <= table.keys()
    assert title == "copy" or table.keys() == keys.keys()
    for name, field in keys.items():
        if field.is_required() and title != "copy":
            assert table[name] == "required", name
        elif isinstance(field.default, str | bool | int):
            assert table[name] == str(field.default).lower(), name


def page_of_keys(title: str) -> str:
    """The page with a key table: the reference, or the kind's own page, where the table is made from the form."""
    by_hand = title == "copy" or f"| key of {title} |" in TEXTS[REFERENCE]
    return REFERENCE if by_hand else f"docs/rules/{title}.md"


def test_docs_speak_of_every_kind():
    """Every kind has its key table, and a page of its own or one with its like that the reference names. README shows
    those whose key tables are written by hand, and may show more.
    """
    assert {"copy", *(kind for kinds in KINDS_BY_TABLE.values() for kind in kinds)} == KINDS.keys()
    for title in KINDS_BY_TABLE:
        assert f"](rules/{title.partition(',')[0]}.md)" in TEXTS["docs/rules-file.md"]
    said = {
        word
        for cells in rows("README.md", "kind", "what is kept true")
        for word in re.findall(r"\w+", cells[0].split("]")[0])
    }
    by_hand = {kind for title, of in KINDS_BY_TABLE.items() for kind in of if page_of_keys(title) == REFERENCE}
    assert {"copy", *by_hand} <= said <= KINDS.keys()


SOURCE = "\n".join(path.read_text() for path in (ROOT / "sync_rules").rglob("*.py"))


@pytest.mark.parametrize("page", [page for page in TEXTS if "| reason | meaning |" in TEXTS[page]])
def test_docs_name_reasons_that_are_given(page):
    """A reason of a failure record that a page explains is one that the code gives."""
    reasons = {r for cells in rows(page, "reason", "meaning") for r in re.findall(r"`(\w+)`", cells[0])}
    assert reasons
    assert not {reason for reason in reasons if f'"{reason}"' not in SOURCE}


@pytest.mark.parametrize("cells", rows("docs/rules/derive.md", "format", "value", "text"), ids=lambda cells: cells[0])
def test_docs_formats_make_what_the_table_says(cells):
    """Each line of the table of formats is what the format makes of the value."""
    form, value, text = cells
    plain, number = re.fullmatch(r"(.*?)( \(number\)| \(text\))?", value).groups()
    given = {"N" if number == " (number)" else "S": plain}
    assert parse_formula(f"{{it:{named(form)}}}", {}).text({"it": given}.get) == text


def test_docs_show_functions_that_can_be_called(monkeypatch):
    """The page on call names each attribute of a change. Of its functions one takes any change, the other puts expired
    items into S3, and leaves other deletes alone.
    """
    page = "docs/rules/call.md"
    said = {name for cells in rows(page, "attribute", "value") for name in re.findall(r"`(\w+)`", cells[0])}
    assert said == {f.name for f in fields(ItemChange)} | {"when"}
    names: dict[str, Any] = {}
    for block in (b for b in blocks(page) if b.language == "python"):
        exec(block.body, names)
    key = {"PK": "USER#1", "SK": "ORDER#1"}
    gone = ItemChange(rule="r", table="shop", key=key, old={"total": Decimal(1)}, new=None, expired=True, id="1")
    names["order_changed"](replace(gone, old=None, new={"total": 1}, expired=False))
    puts: list[dict[str, Any]] = []
    monkeypatch.setattr("boto3.client", lambda _service: SimpleNamespace(put_object=lambda **put: puts.append(put)))
    names["keep"](replace(gone, expired=False, id="2"))
    names["keep"](gone)
    assert puts == [{"Bucket": "orders-that-were", "Key": "orders/1.json", "Body": '{"total": "1"}'}]


def test_docs_show_the_demo_as_it_is_told():
    """Each step of the demo's story stands in the README's output."""
    (output,) = (b.body for b in blocks("README.md") if b.body.startswith("what the application does"))
    rows = [line for line in output.split("\n\n")[0].splitlines()[1:] if not line.startswith(" ")]
    told = [line.split("  ")[0] for line in rows]
    steps = load_scenario(story.FOLDER).steps[1:]
    assert told == [story.LOAD, *(step.say for step in steps), story.REDELIVER]


# ---------------------------------------------------------------- rules
@pytest.mark.parametrize("block", [b for b in blocks_of("yaml") if b.mark == "scenario"], ids=str)
def test_docs_scenarios_hold(block, tmp_path):
    """Each scenario of a page holds by the rules file above it, in every order of delivery."""
    rules = [b for b in blocks(block.page) if b.line < block.line and b.language == "yaml" and is_whole(b)][-1]
    body = re.sub(r"^rules: .*\n", "", block.body, flags=re.MULTILINE)
    for name, text in (("rules.yaml", rules.body), ("scenario.yaml", body)):
        (tmp_path / name).write_text(text)
    assert main.main(["test", str(tmp_path)]) == 0


@pytest.mark.parametrize("block", [b for b in blocks_of("yaml") if not b.mark], ids=str)
def test_docs_rules_pass_check(block):
    """A page's first whole file has nothing to complain of; what else it shows is sound as an addition to that."""
    base = first_file(block.page)
    if block == base:
        assert format_report("rules.yaml", *check_rules(block.body, {})).endswith(": OK")
        return
    yaml = YAML(typ="safe")
    file, part = yaml.load(base.body), yaml.load(block.body)
    merged = {name: {**file[name], **part.get(name, {})} for name in ("tables", "entities")}
    merged |= {"rules": part.get("rules", file["rules"]), **({"deploy": part["deploy"]} if "deploy" in part else {})}
    compiled, problems = check_rules(json.dumps(merged), {})
    assert compiled is not None, format_report("rules.yaml", compiled, problems)
    assert {problem.code for problem in problems} <= UNUSED


@pytest.mark.parametrize("block", [b for b in blocks_of("yaml") if b.mark == "broken"], ids=str)
def test_docs_broken_rules_fail_as_shown(block):
    """The text below a broken file is exactly the output of check."""
    following = next(b for b in blocks(block.page) if b.line > block.line)
    assert format_report("rules.yaml", *check_rules(block.body, {})) == following.body.rstrip("\n")


# ---------------------------------------------------------------- commands
FOLLOWED = ("docs/desk.md", "docs/drift.md", SKILL)  # as a whole, in tests/docs/test_desk.py and below
COMMANDS = [
    pytest.param(block, command, marks=[pytest.mark.night] if command.endswith("sync-rules demo") else [])
    for block in blocks_of("sh")
    if block.page not in FOLLOWED
    for line in block.body.splitlines()
    for command in [line.split("  #")[0].split("   ")[0].strip()]
    if command and not line.startswith("#")
]  # `.ci/run` runs the demo by make


OFFLINE = ("check", "schema", "demo", "init")  # the verbs that need nothing but a rules file


@pytest.mark.parametrize(("block", "line"), COMMANDS, ids=str)
def test_docs_commands_work(block, line, tmp_path, monkeypatch, capsys):
    """Commands in the documentation run if they work offline; of the others, verb, options and targets exist."""
    command, *arguments = shlex.split(line)
    if command == "uvx":
        option, place, command, *arguments = arguments
        assert (option, place) in {("--from", "../sync-rules"), ("--from", "../sync-rules[demo]")}
    if command == "make":
        make = (ROOT / "Makefile").read_text()
        assert re.search(rf"^{arguments[0]}:", make, re.MULTILINE)
        assert all(f"$({variable.partition('=')[0]})" in make for variable in arguments[1:])
    elif command == "sync-rules" and (
        arguments[0] not in OFFLINE or any(word.startswith("--from") for word in arguments)
    ):
        app: Any = main._make_application(arguments)
        app.commands[arguments[0]].make_context(arguments[0], arguments[1:])
    elif command == "sync-rules":
        (tmp_path / "rules.yaml").write_text(first_file(block.page).body)
        monkeypatch.chdir(tmp_path)
        assert main.main(arguments) == 0
        assert capsys.readouterr().out
    else:
        wheel = f"sync_rules-{__version__}-py3-none-any.whl"
        installing = ("python3 -m pip install --target build .", "python3 -m venv .venv", "source .venv/bin/activate")
        assert line in (*installing, "cp -R handlers rules.yaml build/") or re.fullmatch(
            rf"python3 -m pip install ((\S+/dist/)?{re.escape(wheel)}|'\S+/dist/{re.escape(wheel)}\[demo\]')", line
        )


def test_docs_skill_works_as_written(tmp_path, monkeypatch, capsys):
    """`init --skill` prints the skill. In an empty folder its files, and its commands that need no account, work in order."""
    assert main.main(["init", "--skill"]) == 0
    assert capsys.readouterr().out == TEXTS[SKILL]
    assert len(TEXTS[SKILL].splitlines()) <= 120
    assert YAML(typ="safe").load(TEXTS[SKILL].split("---\n")[1]).keys() == {"name", "description"}
    monkeypatch.chdir(tmp_path)
    ran = set()
    for block in blocks(SKILL):
        if block.language == "yaml":
            (tmp_path / ("scenarios/first.scenario.yaml" if block.mark else "rules.yaml")).write_text(block.body)
        for line in block.body.splitlines() if block.language == "sh" else ():
            verb, *arguments = shlex.split(line)[1:]
            if {"--region", "--remote"} & {*arguments}:
                app: Any = main._make_application([verb])
                app.commands[verb].make_context(verb, arguments)
            else:
                assert main.main([verb, *arguments]) == 0, line
                ran.add(verb)
    assert ran == {"init", "schema", "check", "graph", "test", "infra"}


def test_docs_editor_line_names_the_file_that_schema_writes():
    """The first line of the README's rules file names what its schema command writes."""
    named_files = set(re.findall(r"yaml-language-server: \$schema=\./(\S+)", ALL))
    assert named_files == set(re.findall(r"sync-rules schema --out (\S+)", ALL)) == {"sync-rules.schema.json"}


# ---------------------------------------------------------------- mentions
def test_docs_mention_only_examples_that_exist():
    """Every `make demo EXAMPLE=...` names an example, and the page of examples names them all."""
    examples = {path.name for path in (ROOT / "examples").iterdir() if (path / "rules.yaml").exists()}
    assert set(re.findall(r"EXAMPLE=([a-z][\w-]+)", ALL)) <= examples | {"name"}
    assert {named(cells[0]) for cells in rows("examples/README.md", "example", "what it shows")} == examples


DEVELOPERS = {"docs/contributing.md", "docs/proof/tests.md"}  # tests/docs/test_counts.py has the commands of the latter
USERS = {page: text for page, text in TEXTS.items() if page not in DEVELOPERS}
OF_NEW_KIND = {  # files that the page for developers tells them to make
    *("sync_rules/rules/kinds/latest.py", "sync_rules/language/kinds/latest.py"),
    *("tests/kinds/latest.py", "tests/kinds/test_latest.py", "docs/rules/latest.md"),
    *("sync_rules/cli/commands/VERB.py", "tests/unit/cli/test_VERB_command.py"),
}


def test_docs_mention_only_options_that_exist():
    """Every --option is one of ours, of pip or SAM in a command above, or of the AWS CLI in its own lines."""
    ours = "\n".join(help_text(*verb) for verb in [(), *((verb,) for verb in main.VERBS)])
    known = set(re.findall(r"--[a-z][a-z-]*", ours)) | {"--target", "--guided", "--use-container", "--rm"}
    known |= {"--s", "--output-template-file"}  # of `sam package --s3-bucket`
    known |= {"--no-index", "--ignore-scripts"}  # of `git diff`; of `npm ci`
    known |= {f"--sync-rules{option}" for option in ("", "-variant", "-seed")}  # of pytest, by our plugin
    for page, text in USERS.items():
        ours_alone = re.sub(r"^aws (?:.*\\\n)*.*$", "", text, flags=re.MULTILINE)
        if page != "CHANGELOG.md":  # which says what became of options
            assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", ours_alone)) <= known, page


def test_docs_mention_only_codes_that_exist():
    """Every code is in the table of codes."""
    assert set(re.findall(r"\bSR\d{3}\b", ALL)) <= CODES.keys()


def test_docs_mention_only_limits_that_exist():
    """Every name that ends like a limit is one."""
    known = {f.name for kind in (Limits, MappingSettings) for f in fields(kind)}
    known |= {name for kind in KINDS.values() for name in kind.form.model_fields} | OPTIONS.keys()
    units = "items|seconds|ms|bytes|writes|records|tries|looks|reads|attempts"
    found = set(re.findall(rf"`([a-z_]+_(?:{units}))`", ALL)) - {
        "lag_ms",
        "lags_ms",
        "always_writes",
    }  # fields of lines, an answer of rules
    assert {name for name in found if not name.startswith("test_")} <= known


def test_docs_mention_only_modules_that_exist():
    """Every path or dotted name of our packages leads to something."""
    for place in set(re.findall(r"`((?:sync_rules|handlers|tests|infra)/[\w./]*)`", ALL)):
        assert (ROOT / place).exists() or place in OF_NEW_KIND, place
    for dotted in set(re.findall(r"\b((?:handlers|sync_rules\.rules\.kinds)\.\w+(?:\.\w+)*)\b", ALL)):
        module, _, name = dotted.rpartition(".") if dotted.endswith(".handler") else (dotted, "", "")
        assert not name or hasattr(import_module(module), name), dotted
        assert name or import_module(module), dotted


CAUGHT: dict[str, int | None] = json.loads((ROOT / "tests/simulation/caught.json").read_text())
TESTS = set(re.findall(r"def (test_\w+)", "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))))


@pytest.mark.parametrize("page", ["docs/faults.md", "docs/drift.md"])
def test_docs_name_tests_that_exist_and_mutants_that_are_caught(page):
    """The column `shown by` names tests that exist, and mutants that a history catches."""
    shown_by = " ".join(line.split("|")[-2] for line in TEXTS[page].splitlines() if line.startswith("|"))
    names = set(re.findall(r"`([^`]+)`", shown_by))
    tests = {name for name in names if name.startswith("test_")}
    assert tests
    assert not tests - TESTS
    assert not {name for name in names - tests if CAUGHT.get(name) is None}


def anchor(heading: str) -> str:
    """The anchor that GitHub gives to a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("page", list(TEXTS))
def test_docs_links_lead_somewhere(page):
    """Every link to a file of ours, and to a heading in it, has its end."""
    for target in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", TEXTS[page])):
        if target.startswith("https://"):
            continue
        name, _, heading = target.partition("#")
        file = (ROOT / page).parent / name if name else ROOT / page
        assert file.exists(), target
        if heading:
            assert heading in {anchor(h) for h in re.findall(r"^#+ (.*)$", file.read_text(), re.MULTILINE)}, target


def test_docs_every_page_is_in_the_list_of_pages():
    """docs/README.md, which README links to, names every page, its readers and its contents."""
    listed = {re.sub(r".*\]\((.*)\)", r"docs/\1", cells[0]): cells for cells in rows("docs/README.md", "page", "for")}
    assert listed.keys() == {page for page in TEXTS if page.startswith("docs/")} - {"docs/README.md"}
    assert all(all(cells) for cells in listed.values())
    for page, cells in listed.items():
        assert TEXTS[page].splitlines()[2] == f"*For {cells[1]}.*", page
    assert "](docs/README.md)" in TEXTS["README.md"]


def test_docs_changelog_has_the_version():
    """The version of the package heads the changelog."""
    newest = re.search(r"^## (\S+)", TEXTS["CHANGELOG.md"], re.MULTILINE)
    assert newest
    assert newest[1] == import_module("sync_rules").__version__


# ---------------------------------------------------------------- on_delete
LINKED = """
tables: {shop: {key: {PK: S, SK: S}, indexes: {GSI1: {GSI1PK: S}}}}
entities:
  user:  {table: shop, key: {PK: "USER#{user_id}", SK: PROFILE}}
  order: {table: shop, key: {PK: "ORDER#{order_id}", SK: HEAD, GSI1PK: "USER#{user_id}"}}
rules:
  name: {copy: user.name, into: order.user_name, where: "status == 'OPEN'", on_delete: POLICY}
"""
SITUATIONS = {
    "the source is deleted": lambda scene, user, _: scene.memory.delete(user),
    "the target points to a source that does not exist": lambda scene, _, order: scene.memory.update(
        order, [(("GSI1PK",), s("USER#404"))]
    ),
    "the target points to no source: a link field is missing": lambda scene, _, order: scene.memory.update(
        order, removes=[("GSI1PK",)]
    ),
    "`where` does not hold": lambda scene, _, order: scene.memory.update(order, [(("status",), s("CLOSED"))]),
    "the source lacks the attribute": lambda scene, user, _: scene.memory.update(user, removes=[("name",)]),
}
ENDS = {
    "the copy stays": lambda order: order is not None and order.get("user_name") == s("Ann"),
    "the copy is removed": lambda order: order is not None and "user_name" not in order,
    "the target is deleted": lambda order: order is None,
}
POLICIES = ("keep", "clear", "delete", "restrict")


@pytest.mark.parametrize("column", range(1, 5), ids=POLICIES)
@pytest.mark.parametrize("cells", rows("docs/rules/copy.md", "situation", *POLICIES), ids=lambda c: c[0])
def test_docs_on_delete_does_what_the_table_says(cells, column):
    """Each cell of the table is what happens to a copied name."""
    scene = Scene(parse_rules(LINKED.replace("POLICY", POLICIES[column - 1]), environ={}))
    user = scene.put("shop", {"PK": s("USER#1"), "SK": s("PROFILE"), "name": s("Ann")})
    order = scene.put("shop", {"PK": s("ORDER#1"), "SK": s("HEAD"), "GSI1PK": s("USER#1"), "status": s("OPEN")})
    scene.rest()
    assert ENDS["the copy stays"](scene.memory.item(order))
    SITUATIONS[cells[0]](scene, user, order)
    scene.rest()
    assert ENDS[cells[column]](scene.memory.item(order))
