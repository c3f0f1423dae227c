"""The command line: `sync-rules VERB`. It parses and calls; each verb is a plain function in `commands/<verb>.py`.

Law: the exit code says whose turn it is. 0 well; 1 drift, or a failed check; 2 the user's mistake, or a world that does
not answer or take what is written; 3 our bug; 130 interrupted by Ctrl-C. Only the module of the verb that is called is
imported, so that `--help` is quick.
"""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import wraps
from importlib import import_module
from typing import Annotated, Any

import typer

from sync_rules import __version__
from sync_rules.model.errors import SyncRulesError

# `commands/<verb>.py` has a function of the verb's name, which takes its options and gives the exit code.
VERBS: dict[str, str] = {
    "check": "Say what is wrong with a rules file, why, and what cures it.",
    "graph": "Draw the rules: which entity's attributes make which of another.",
    "schema": "Write the JSON Schema of rules files, for editors.",
    "demo": "Show the story, or one example, on an embedded engine.",
    "test": "Play scenarios in memory, under every way records may arrive.",
    "plan": "Show what a backfill would write, read, cost and take.",
    "backfill": "Bring what is in the tables already in line with the rules.",
    "verify": "Compare every copy with its source; mend it with --repair.",
    "explain": "Say why: of an item, a stream record, or all copies of an item.",
    "prune": "Find what removed rules left; remove it with --apply.",
    "run": "Consume the streams and keep the copies true, until stopped.",
    "failures": "Show what failed and was kept: what, why, how often, since when.",
    "redrive": "Put through again what failed; late does no harm.",
    "record": "Write the stream records of all tables to a file, until stopped.",
    "replay": "Do again in memory what was recorded; shrink what ends wrong.",
    "infra": "Write what the template needs of the rules; say what is allowed.",
}

WELL, FAILED, USER_MISTAKE, OUR_BUG, INTERRUPTED = 0, 1, 2, 3, 130
ISSUES = "https://github.com/sync-rules/sync-rules/issues"
DEBUG = "SYNC_RULES_DEBUG"
ONLY_READS = frozenset({"plan", "replay"})  # of these it is worth saying when they are interrupted
NOT_TAKEN = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EPIPE})  # what a write may end with


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code. `arguments` default to the process's own."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = _called(given)
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()  # what is still in memory may not be taken either
    except OSError as error:
        return _not_taken(error)
    return code


def _called(given: list[str]) -> int:
    """The exit code. Raises OSError when what is printed is not taken."""
    try:
        _application(given)(given, prog_name="sync-rules", obj=given)  # what was typed, for reports
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else WELL
    except SyncRulesError as error:
        if os.environ.get(DEBUG):
            traceback.print_exc()
        print(f"sync-rules: {error}", file=sys.stderr)
        return USER_MISTAKE
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        if _of_output(error):
            raise
        return _our_bug(error)
    return WELL


def _of_output(error: Exception) -> bool:
    """Whether it is that an open stream takes no more; one that has a file's name is about that file."""
    return isinstance(error, OSError) and error.filename is None and error.errno in NOT_TAKEN


def _not_taken(error: OSError) -> int:
    """Say so, unless the reader has left: that is no mistake of anybody's, but the output is not whole."""
    if error.errno != errno.EPIPE:
        with suppress(OSError):
            print(f"sync-rules: cannot write the output: {error.strerror}", file=sys.stderr, flush=True)
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except OSError:  # the interpreter would try again at its end, and exit with a code of its own
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return USER_MISTAKE


def _our_bug(error: Exception) -> int:
    # The message of an unexpected exception may hold anything, values of items too, so only its kind is shown.
    if os.environ.get(DEBUG):
        traceback.print_exc()
    print(
        f"sync-rules: a bug of ours ({type(error).__name__}, version {__version__}). Run it again with {DEBUG}=1 and "
        f"report what it prints: {ISSUES}",
        file=sys.stderr,
    )
    return OUR_BUG


def _application(given: list[str]) -> Callable[..., Any]:
    """The typer application: the real function for the verb that is called, a name and a line for the others."""
    app = typer.Typer(
        help="Keeps copied data in DynamoDB true: rules say what every copy must equal.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # the same plain text on a terminal, in a log and in the documentation
    )
    app.callback()(_common)
    called = next((word for word in given if not word.startswith("-")), None)
    for verb, line in VERBS.items():
        app.command(verb, help=None if verb == called else line)(_load(verb) if verb == called else _not_called)
    command = typer.main.get_command(app)
    for one in getattr(command, "commands", {}).values():
        for parameter in one.params:
            told = getattr(getattr(parameter, "type_descriptor", parameter), "parameter_info", None)
            told = told or getattr(parameter, "type", None)  # where typer has click do it
            if told is not None and getattr(told, "readable", False):
                told.readable = False  # who reads a file says in one line why it cannot be
    return command


def _load(verb: str) -> Callable[..., None]:
    """The verb's function, so wrapped that the code it gives is the code the process exits with."""
    function: Callable[..., int] = getattr(import_module(f"sync_rules.cli.commands.{verb}"), verb)

    @wraps(function)
    def run(*arguments: Any, **options: Any) -> None:
        try:
            code = function(*arguments, **options)
        except KeyboardInterrupt as stopped:
            words = str(stopped) or ("interrupted: nothing was written" if verb in ONLY_READS else "interrupted")
            print(f"sync-rules: {words}", file=sys.stderr)
            code = INTERRUPTED
        except BrokenPipeError as error:  # typer, like rich, would exit with 1, which is for drift
            code = _not_taken(error)
        except SystemExit:  # rich's, when the reader has left
            code = USER_MISTAKE
        raise typer.Exit(code)

    return run


def _not_called() -> None:
    raise AssertionError("only the verb that is called is loaded")


def _version(asked: bool) -> None:  # noqa: FBT001 - typer calls it so
    if asked:
        print(f"sync-rules {__version__}")
        raise typer.Exit


def _common(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass
