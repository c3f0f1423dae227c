"""The command line: whose turn it is, said by the exit code."""

import subprocess
import sys

import pytest

from sync_rules import __version__, cli
from sync_rules.commands import check
from sync_rules.errors import StoreError, UserError


def fails_with(monkeypatch, error):
    def fail(*_):
        raise error

    monkeypatch.setattr(check, "read_text", fail)
    monkeypatch.delenv(cli.DEBUG, raising=False)


@pytest.mark.parametrize("verb", cli.VERBS)
def test_every_verb_has_help(verb, capsys):
    """Each line of the registry leads to a command that can be called, and whose help begins with that line."""
    assert cli.main([verb, "--help"]) == 0
    assert cli.VERBS[verb] in " ".join(capsys.readouterr().out.split())


def test_help_names_every_verb_without_loading_it():
    """`--help` is quick: it imports no command."""
    script = (
        "import sys; from sync_rules import cli; code = cli.main(['--help']);"
        "sys.exit(code or any(name.startswith('sync_rules.commands.') for name in sys.modules) or 'boto3' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    for verb in cli.VERBS:
        assert f"  {verb} " in done.stdout


def test_version_is_shown(capsys):
    """`--version` is one line."""
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"sync-rules {__version__}\n"


def test_module_is_the_command():
    """`python -m sync_rules` passes its exit code on."""
    done = subprocess.run([sys.executable, "-m", "sync_rules", "chek"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "Did you mean 'check'" in done.stderr


@pytest.mark.parametrize("arguments", [[], ["chek"], ["check", "--jsn"], ["--nothing"], ["check", "a", "b"]])
def test_usage_mistakes_exit_with_2(arguments, capsys):
    """What cannot be parsed is the user's mistake."""
    assert cli.main(arguments) == 2
    assert "Usage" in "".join(capsys.readouterr())


def test_user_errors_are_told_in_words(monkeypatch, capsys):
    """No traceback for what the user can mend."""
    fails_with(monkeypatch, UserError("expected a file, found none: write one"))
    assert cli.main(["check"]) == 2
    assert capsys.readouterr().err == "sync-rules: expected a file, found none: write one\n"


def test_store_errors_are_not_our_bug(monkeypatch, capsys):
    """A service that does not answer is said by its own code."""
    fails_with(monkeypatch, StoreError("ResourceNotFoundException", "no such table"))
    assert cli.main(["check"]) == 2
    assert "ResourceNotFoundException" in capsys.readouterr().err


def test_our_bugs_exit_with_3_and_show_no_values(monkeypatch, capsys):
    """An unexpected exception is ours: one line, without its message, which may hold values of items."""
    fails_with(monkeypatch, ValueError("secret"))
    assert cli.main(["check"]) == 3
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1
    assert "a bug of ours (ValueError" in shown
    assert "secret" not in shown


def test_our_bugs_show_their_traceback_when_asked(monkeypatch, capsys):
    """SYNC_RULES_DEBUG=1 shows everything."""
    fails_with(monkeypatch, ValueError("secret"))
    monkeypatch.setenv(cli.DEBUG, "1")
    assert cli.main(["check"]) == 3
    assert "Traceback" in capsys.readouterr().err


def test_interrupt_exits_with_130(monkeypatch):
    """Ctrl-C is no bug and no success."""
    fails_with(monkeypatch, KeyboardInterrupt())
    assert cli.main(["check"]) == 130
