"""Options that would have no effect are refused: each pair of the tables, as the command line parses it."""

from __future__ import annotations

import re

import pytest

from sync_rules.cli import main
from sync_rules.cli.dependencies import EXCLUDES, NEEDS, NEEDS_REMOTE

REQUIRED = {"record": ["--out", "o.jsonl"], "replay": ["recording.jsonl"], "tables": ["create"]}
VALUES = {"--format": "text", "--rate": "5", "--rules": "rules.yaml", "--sample": "5", "--from": "f"}
FLAGS = frozenset(
    [
        "--changed",
        "--resume",
        "--restart",
        "--remote",
        "--detach",
        "--stop",
        "--redact",
        "--keep-shape",
        "--json",
        "--jsonl",
        "--strict-warnings",
        "--list-variants",
        "--dry-run",
        "--yes",
        "--show-values",
    ]
)
NEEDING = [(verb, one, needed) for verb, of in NEEDS.items() for one, needed in of.items()]
NEEDING += [(verb, one, ("--remote",)) for verb, of in NEEDS_REMOTE.items() for one in of]
EXCLUDING = [(verb, one, other) for verb, of in EXCLUDES.items() for one, others in of.items() for other in others]


@pytest.fixture(autouse=True)
def empty(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for name in ("SYNC_RULES_SALT", "SYNC_RULES_STATE_TABLE", "SYNC_RULES_STACK"):
        monkeypatch.delenv(name, raising=False)


def refusal(capsys, verb: str, *options: str) -> str:
    """The message of a verb that is given these options. It ends with exit code 2 in any case: there is no rules file."""
    words = [word for one in options for word in ([one] if one in FLAGS else [one, VALUES.get(one, "1")])]
    assert main.main([verb, *REQUIRED.get(verb, []), *words]) == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(("verb", "option", "needed"), NEEDING)
def test_option_without_the_one_that_it_needs_is_refused(verb, option, needed, capsys):
    """The refusal names the option, what is missing and both ways out; with one of the others the option is taken."""
    alone = refusal(capsys, verb, option)
    assert re.search(f"{option} needs {' or '.join(needed)}, .*leave {option} out", alone)
    for other in needed:
        assert "needs" not in refusal(capsys, verb, option, other).replace("needs a", "")


@pytest.mark.parametrize(("verb", "one", "other"), EXCLUDING)
def test_options_that_exclude_each_other_are_refused(verb, one, other, capsys):
    """In either order."""
    for pair in ((one, other), (other, one)):
        said = refusal(capsys, verb, *pair)
        assert f"{one} and {other} cannot be given together: leave one of them out" in said


def test_what_the_environment_says_is_no_option_without_effect(monkeypatch, capsys):
    """A salt for all recordings may stand in the environment of those that redact nothing."""
    monkeypatch.setenv("SYNC_RULES_SALT", "a salt that is long enough")
    assert "--salt" not in refusal(capsys, "record")
