"""The command line: `sync-rules VERB`. It parses and calls; each verb is a plain function in `commands/<verb>.py`.

Law: the exit code says whose turn it is. 0 well; 1 drift, or a failed check; 2 the user's mistake, or a world that does
not answer; 3 our bug. Only the module of the verb that is called is imported, so that `--help` is quick.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Sequence
from functools import wraps
from importlib import import_module
from typing import Annotated, Any

import typer

from sync_rules import __version__
from sync_rules.errors import SyncRulesError

# `commands/<verb>.py` has a function of the verb's name, which takes its options and gives the exit code.
VERBS: dict[str, str] = {
    "check": "Say what is wrong with a rules file, why, and what cures it.",
    "graph": "Draw the rules: which entity's attributes make which of another.",
    "schema": "Write the JSON Schema of rules files, for editors.",
    "demo": "Show the whole story, or one example, on an embedded engine: no account, no docker.",
    "test": "Play scenarios for your own rules in memory, under every way in which records may arrive.",
    "plan": "Show what a backfill would write, read, cost and take. Nothing is written.",
    "backfill": "Bring what is in the tables already in line with the rules.",
    "verify": "Compare every copy with its source; mend it with --repair.",
    "explain": "Say why: of an item, of a stream record, or of all places that hold something of an item.",
    "prune": "Find what removed or renamed rules left in the tables, and remove it with --apply.",
    "run": "Consume the streams and keep the copies true, until stopped.",
    "failures": "Show what failed and was kept: what, why, how often, since when.",
    "redrive": "Put through again what failed; late does no harm.",
    "record": "Write the stream records of all tables to a file, until stopped.",
    "replay": "Do again what was recorded, in memory, under every way of delivery; shrink what ends wrong.",
}

WELL, FAILED, USER_MISTAKE, OUR_BUG, INTERRUPTED = 0, 1, 2, 3, 130
ISSUES = "https://github.com/sync-rules/sync-rules/issues"
DEBUG = "SYNC_RULES_DEBUG"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code. `arguments` default to the process's own."""
    given = list(sys.argv[1:] if arguments is None else arguments)
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
    except Exception as error:  # noqa: BLE001 - whatever nobody expected is our bug, and is said to be
        return _our_bug(error)
    return WELL


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
    return typer.main.get_command(app)


def _load(verb: str) -> Callable[..., None]:
    """The verb's function, so wrapped that the code it gives is the code the process exits with."""
    function: Callable[..., int] = getattr(import_module(f"sync_rules.commands.{verb}"), verb)

    @wraps(function)
    def run(*arguments: Any, **options: Any) -> None:
        raise typer.Exit(function(*arguments, **options))

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
