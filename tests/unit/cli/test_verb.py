"""Declarations of verbs: each pair of options that need or exclude each other is refused, as typer parses them."""

from __future__ import annotations

import re
from importlib import import_module

import pytest

from sync_rules.cli import main

REQUIRED = {
    "record": ["--out", "o.jsonl"],
    "replay": ["recording.jsonl"],
    "tables": ["create"],
    "prune": ["before.yaml"],
    "preview": ["write.json"],
}
VALUES = {"--format": "json", "--rate": "5", "--rules": "rules.yaml", "--sample": "5", "--from": "f"}
DECLARED = {verb: import_module(listed.module).VERB for verb, listed in main.VERBS.items()}
NEEDING = [(verb, one, needed) for verb, of in DECLARED.items() for one, needed in of.needs.items()]
EXCLUDING = [
    (verb, one, other) for verb, of in DECLARED.items() for one, others in of.excludes.items() for other in others
]


@pytest.fixture(autouse=True)
def empty(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for name in ("SYNC_RULES_SALT", "SYNC_RULES_STATE", "SYNC_RULES_STACK"):
        monkeypatch.delenv(name, raising=False)


def refusal(capsys, verb: str, *options: str) -> str:
    """The message of a verb that is given these options. It ends with exit code 2 in any case: there is no rules file."""
    params = main._make_application([verb]).commands[verb].params
    flags = {name for one in params if getattr(one, "is_flag", False) for name in (*one.opts, *one.secondary_opts)}
    plain = {one for one in options if one in flags or not one.startswith("-")}  # flags and arguments
    words = [word for one in options for word in ([one] if one in plain else [one, VALUES.get(one, "1")])]
    assert main.main([verb, *REQUIRED.get(verb, []), *words]) == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(("verb", "option", "needed"), NEEDING)
def test_option_without_the_one_that_it_needs_is_refused(verb, option, needed, capsys):
    """The refusal names the option, what is missing and both ways out; with one of the others the option is taken."""
    alone = refusal(capsys, verb, option)
    assert re.search(f"{option} needs {' or '.join(needed)}, .*leave {option} out", alone)
    for other in needed:
        assert f"{option} needs" not in refusal(capsys, verb, option, other)


@pytest.mark.parametrize(("verb", "one", "other"), EXCLUDING)
def test_options_that_exclude_each_other_are_refused(verb, one, other, capsys):
    """In either order."""
    for pair in ((one, other), (other, one)):
        said = refusal(capsys, verb, *pair)
        assert f"{one} and {other} cannot be given together: leave one of them out" in said


def test_both_names_of_a_switch_are_refused(capsys):
    """A switch with two names takes one of them: the last one would win without a word."""
    for pair in (("--resume", "--restart"), ("--restart", "--resume")):
        assert "--resume and --restart cannot be given together" in refusal(capsys, "backfill", *pair)


@pytest.mark.parametrize("verb", main.VERBS)
def test_declared_options_exist(verb):
    """Each option in `needs` and `excludes` is one of the verb's."""
    command = main._make_application([verb])
    known = {option for one in command.commands[verb].params for option in (*one.opts, *one.secondary_opts)}
    declared = DECLARED[verb]
    named = {one for of in (declared.needs, declared.excludes) for pair in of.items() for one in (pair[0], *pair[1])}
    assert named <= known


def test_what_the_environment_says_is_no_option_without_effect(monkeypatch, capsys):
    """A salt for all recordings may stand in the environment of those that redact nothing."""
    monkeypatch.setenv("SYNC_RULES_SALT", "a salt that is long enough")
    assert "--salt" not in refusal(capsys, "record")
