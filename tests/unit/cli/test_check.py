"""`sync-rules check`: broken rules files. Each file name tells its story; the `.txt` beside it has the output."""

import ast
import json
from collections import Counter
from pathlib import Path
from random import Random

import pytest

import sync_rules
from sync_rules.cli import main
from sync_rules.language.kinds.registry import KINDS
from sync_rules.language.load import check_rules
from sync_rules.language.problems import CODES, list_errors
from tests.support.depth import deep, spread_over_night

SITES = {"SR102": 7, "SR106": 6, "SR123": 4, "SR202": 3, "SR310": 2, "SR317": 2, "SR413": 2}
BROKEN = sorted((Path(__file__).parents[1] / "broken").glob("*.yaml"))
GOOD = """
tables: {authors: {key: {author_id: S}}, books: {key: {book_id: S}, indexes: {by_author: {author_id: S}}}}
entities: {author: {table: authors}, book: {table: books}}
rules: {name: copy author.name into book.author_name}
"""


@pytest.fixture(autouse=True)
def empty_directory(tmp_path, monkeypatch):
    """No rules file is lying around, and no variable of this machine matters."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NEVER_SET", raising=False)


@pytest.mark.parametrize("file", BROKEN, ids=lambda file: file.stem)
def test_check_says_what_stands_beside_the_broken_file(file, tmp_path, capsys):
    """Every problem at once, at its line and column, with the code, letter for letter; exit 1 when one is an error."""
    (tmp_path / file.name).write_bytes(file.read_bytes())
    code = main.main(["check", file.name])
    shown = capsys.readouterr().out
    assert shown == file.with_suffix(".txt").read_text().replace("{kinds}", ", ".join(KINDS))
    assert code == int("error" in shown.rsplit("\n\n", 1)[-1])


def test_every_code_has_a_broken_file():
    """No code without an example. SR005 belongs to a run only, and SR121 needs an installed package."""
    shown = "".join(file.with_suffix(".txt").read_text() for file in BROKEN)
    assert [code for code in CODES if f"[{code}" not in shown] == ["SR005", "SR121"]


def test_problem_has_a_cure_of_its_own_unless_the_cure_of_its_code_fits():
    """Each place that reports a shared code gives a cure of its own. `SITES` counts the places without, by code: the
    cure of the code fits each of their messages.
    """
    texts = [file.read_text() for file in Path(sync_rules.__file__).parent.rglob("*.py")]
    trees = [ast.parse(text) for text in texts if '"SR' in text]
    calls = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args]
    bare = Counter(
        str(call.args[0].value)
        for call in calls
        if isinstance(call.args[0], ast.Constant)
        and call.args[0].value in CODES
        and ast.unparse(call.func).rpartition(".")[2] in ("add", "Problem")
        and len(call.args) == 3
        and not isinstance(call.args[2], ast.Starred)
    )
    assert {code: number for code, number in bare.items() if number > 1} == SITES


def test_check_lets_warnings_pass_unless_told(tmp_path, capsys):
    """A warning is shown and exits with 0; `--strict-warnings` makes it 1."""
    (tmp_path / "rules.yaml").write_text(GOOD.replace("{book_id: S}", '{book_id: S}, name: "${NEVER_SET}"'))
    assert main.main(["check"]) == 0
    assert "[SR405, warning]" in capsys.readouterr().out
    assert main.main(["check", "--strict-warnings"]) == 1


def test_check_prints_json_for_machines(tmp_path, capsys):
    """An array, as editors and CI read it: code, place, message, why and cure of each problem."""
    (tmp_path / "rules.yaml").write_text(GOOD.replace("book.author_name", "bok.author_name"))
    assert main.main(["check", "--format", "json"]) == 1
    (problem,) = json.loads(capsys.readouterr().out)
    assert {**problem, "why": "", "cure": ""} == {
        "code": "SR102",
        "severity": "error",
        "file": "rules.yaml",
        "line": 4,
        "column": 37,
        "road": "rule name · into",
        "message": "no entity 'bok'. Known: author, book. Did you mean 'book'?",
        "why": "",
        "cure": "",
    }
    assert problem["why"]
    assert problem["cure"]
    (tmp_path / "rules.yaml").write_text(GOOD)
    assert main.main(["check", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00rules"])
def test_check_of_an_unreadable_file_exits_with_2(content, tmp_path, capsys):
    """The command reports a missing file, or one that is not UTF-8, in one line and not as a failed check."""
    if content is not None:
        (tmp_path / "rules.yaml").write_bytes(content)
    assert main.main(["check"]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    assert shown.err.startswith("sync-rules: rules.yaml: ")


def test_check_explains_every_code(capsys):
    """`--explain` needs no file and lists the codes in order; an unknown code is the user's mistake."""
    assert [*CODES] == sorted(CODES)
    for code, entry in CODES.items():
        assert main.main(["check", "--explain", code.lower()]) == 0
        shown = capsys.readouterr().out
        assert entry.title in shown
        assert entry.why in shown
        assert entry.cure in shown
    assert main.main(["check", "--explain", "SR999"]) == 2


@pytest.mark.parametrize(
    "value", ["!!int x", "!!float x", "!!bool x", "!!binary x", "!own x", "2020-01-01", "1e9", ".inf"]
)
def test_check_survives_tags(value):
    """A tag that is wrong about its text is a problem like any other."""
    _, problems = check_rules(GOOD.replace("book.author_name", "book.author_name, odd: " + value), environ={})
    assert problems


@pytest.mark.parametrize("file", spread_over_night(BROKEN), ids=lambda file: file.stem)
def test_check_survives_a_file_cut_anywhere(file):
    """Half-written files, as editors send them, are answered with rules, or with problems at lines that they have."""
    text = file.read_text()
    cuts = range(0, len(text), 7 + len(text) // 40)
    for end in Random(file.stem).sample(cuts, min(len(cuts), deep(len(cuts)))):
        rules, problems = check_rules(text[:end], environ={})
        assert (rules is None) == bool(list_errors(problems))
        assert all(1 <= problem.location.line <= text.count("\n", 0, end) + 1 for problem in problems)
