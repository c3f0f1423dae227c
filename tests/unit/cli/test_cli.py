"""The command line: whose turn it is, said by the exit code."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sync_rules.cli import main
from sync_rules.cli import options as opt
from sync_rules.cli.commands import check
from sync_rules.model.errors import UserError
from tests.support.depth import spread_over_night


@pytest.mark.parametrize("verb", main.VERBS)
def test_every_verb_has_help(verb, capsys):
    """Each line of the registry leads to a command that can be called, and whose help begins with that line."""
    assert main.main([verb, "--help"]) == 0
    assert main.VERBS[verb].line in " ".join(capsys.readouterr().out.split())


def test_help_names_every_verb_without_loading_it():
    """`--help` names every command and imports none."""
    script = (
        "import sys; from sync_rules.cli import main; code = main.main(['--help']);"
        "sys.exit(code or any(name.startswith(('sync_rules.cli.commands.', 'sync_rules.extras.')) for name in sys.modules) or 'boto3' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    for verb in main.VERBS:
        assert f"  {verb} " in done.stdout


@pytest.mark.parametrize("arguments", [[], ["chek"], ["check", "--jsn"], ["--nothing"], ["check", "a", "b"]])
def test_usage_mistakes_exit_with_2(arguments, capsys):
    """Arguments that cannot be parsed exit with 2, as the user's mistake."""
    assert main.main(arguments) == 2
    assert "Usage" in "".join(capsys.readouterr())


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (UserError("expected a file, found none: write one"), 2, "expected a file, found none: write one\n"),
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (KeyboardInterrupt("interrupted: 3 were removed"), 130, "interrupted: 3 were removed\n"),
        (OSError(errno.ENOSPC, "No space left on device"), 2, "cannot write the output: No space left on device\n"),
        (OSError(errno.ENOSPC, "No space left on device", "x"), 3, "a bug in sync-rules (OSError"),
        (ValueError("secret"), 3, "a bug in sync-rules (ValueError"),
    ],
)
def test_error_of_a_command_is_one_line_and_the_exit_code_says_whose(monkeypatch, capsys, error, code, said):
    """A mistake of the user's, Ctrl-C with the words of the command if it has some, a full disk below the output, and a
    bug of ours: a file that no command reported too. The message of a bug may hold values, and is not shown.
    """
    monkeypatch.setattr(check, "read_text", lambda *_: (_ for _ in ()).throw(error))
    monkeypatch.delenv(main.DEBUG, raising=False)
    assert main.main(["check"]) == code
    shown = capsys.readouterr().err
    assert shown.startswith(f"sync-rules: {said}")
    assert shown.count("\n") == 1
    assert "secret" not in shown


BUFFERS = spread_over_night([pytest.param("", id="buffered"), pytest.param("1", id="unbuffered")])


def end_of(*words: str, unbuffered: str, **options) -> tuple[int, bytes]:
    """Run a command in its own process, and return the exit code and standard error."""
    environ = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    command = [sys.executable, "-m", "sync_rules", *words]
    done = subprocess.run(command, env=environ, check=False, **{"stderr": subprocess.PIPE, **options})
    return done.returncode, done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("unbuffered", BUFFERS)
@pytest.mark.parametrize("verb", spread_over_night(["schema", "--help"]))
def test_output_on_a_full_disk_exits_with_2(verb, unbuffered):
    """Output on a full disk exits with 2, buffered or not, even if standard error is full too."""
    with Path("/dev/full").open("w") as full:
        told = b"sync-rules: cannot write the output: No space left on device\n"
        assert end_of(verb, unbuffered=unbuffered, stdout=full) == (2, told)
        assert end_of(verb, unbuffered=unbuffered, stdout=full, stderr=full)[0] == 2
        assert end_of("check", "nowhere.yaml", unbuffered=unbuffered, stderr=full)[0] == 2


@pytest.mark.parametrize("unbuffered", BUFFERS)
def test_output_whose_reader_has_left_ends_quietly(unbuffered):
    """Output to a closed pipe ends without a message and exits with 2."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        assert end_of("schema", unbuffered=unbuffered, stdout=writer) == (2, b"")
    finally:
        os.close(writer)


INTERRUPTS_IMPORTS = """
import sys
interrupted = sys.argv[1]
class Interrupting:
    def find_spec(self, name, *_):
        if name == interrupted:
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupting())
from sync_rules.__main__ import main
sys.argv[1:] = ["check"]
sys.exit(main())
"""


@pytest.mark.parametrize("module", ["typer", "ruamel.yaml"])
def test_interrupt_during_imports_prints_no_traceback(module, tmp_path):
    """Ctrl-C before there is anything to do: one line and 130, whichever module was being imported."""
    command = [sys.executable, "-c", INTERRUPTS_IMPORTS, module]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "sync-rules: interrupted\n")


def test_output_that_takes_ascii_only_gets_escapes(tmp_path):
    """Letters that the output's encoding has not are escaped: neither the rules nor sync-rules are wrong."""
    (tmp_path / "r\u00e4gel.yaml").write_text(
        "tables: {users: {key: {id: S}}}\nentities: {user: {table: users}}\nrules: {r: copy user.\u00fc into user.b}\n"
    )
    command = [sys.executable, "-m", "sync_rules", "check", "r\u00e4gel.yaml"]
    environ = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, env=environ, check=False)
    assert done.returncode == 0, done.stderr
    assert b"r\\xe4gel.yaml: 1 rule" in done.stdout


def test_interrupt_that_python_wraps_is_an_interrupt(monkeypatch, capsys):
    """Python 3.11 makes a RuntimeError of a Ctrl-C that comes while a class is being made."""

    def interrupted(_given):
        raise RuntimeError("Error calling __set_name__") from KeyboardInterrupt()

    monkeypatch.setattr(main, "_make_application", interrupted)
    assert main.main(["check"]) == 130
    assert "interrupted" in capsys.readouterr().err


def test_used_options_are_those_with_which_another_command_works_at_the_same_place():
    """Without a user name and password in the URL; and none where all are defaults."""
    assert opt.repeat_options(opt.RULES_FILE, None, None) == ""
    words = opt.repeat_options(Path("my rules.yaml"), "http://me:secret@h:8000", "eu-west-1", "s.json")
    assert words == " 'my rules.yaml' --endpoint-url http://h:8000 --region eu-west-1 --state s.json"
    assert opt.repeat_options(opt.RULES_FILE, None, None, "table:kept") == " --state table:kept"
