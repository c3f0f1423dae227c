"""The command line: `sync-rules VERB`. It parses and calls; each verb is a plain function in `commands/<verb>.py`. Each
ends with a code of `exit_codes`. Only the module of the called verb is imported, so that `--help` is quick.
"""

from __future__ import annotations

import errno
import os
import platform
import sys
import tomllib
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from functools import wraps
from importlib.resources import files
from io import TextIOWrapper
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup

from sync_rules import HOME, RULES_FORMAT, __version__
from sync_rules.adapters.patience import PATIENCE_SECONDS, Patience, use_patience
from sync_rules.cli.exit_codes import ExitCode
from sync_rules.cli.modules import load_module
from sync_rules.cli.show.output import wrap_output
from sync_rules.cli.show.waits import show_wait
from sync_rules.cli.verb import Verb
from sync_rules.cli.verb_call import adapt_verb, read_completed_words
from sync_rules.model.errors import SyncRulesError, UserError


class VerbEntry(NamedTuple):
    """A verb in its group: what it does, and what its exit codes mean ("" for the usual meaning). `module` has `VERB`,
    and a function of the verb's name. `package` is the package to install for the verb's libraries.
    """

    group: str
    module: str
    line: str = ""
    well: str = ""
    found: str = ""
    mistake: str = ""
    interrupted: str = ""
    package: str = "sync-rules"


# All built-in verbs, as text: `--help` imports no module of theirs.
GROUPS: dict[str, dict[str, dict[str, str]]] = tomllib.loads(
    files("sync_rules.cli").joinpath("verbs.toml").read_text("utf-8")
)
ROOMS = {"Design": "extras.design", "Discover": "extras.discover", "Prove": "extras.proof"}  # others are in `cli`
VERBS = {
    verb: VerbEntry(group, f"sync_rules.{ROOMS.get(group, 'cli')}.commands.{verb}", **said)
    for group, verbs in GROUPS.items()
    for verb, said in verbs.items()
}
PLUG_INS = "sync_rules.verbs"  # entry points of other packages: the name is the verb, the value its module
ISSUES = f"{HOME}/issues"
DEBUG = "SYNC_RULES_DEBUG"
COMPLETING = "_SYNC_RULES_COMPLETE"  # set by the shell's completion, which typer installs
OUTPUT_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EPIPE})  # output cannot be written


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code. `arguments`: default to the process's own."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a name may have letters that the output's encoding has not
            stream.reconfigure(errors="backslashreplace")
    with redirect_stdout(wrap_output(sys.stdout)), redirect_stderr(wrap_output(sys.stderr)):
        return _run(given)


def _run(given: list[str]) -> int:
    try:
        code = _run_application(given)
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()  # buffered output may fail to be written too
    except OSError as error:
        return _report_output_error(error)
    return code


def _run_application(given: list[str]) -> int:
    """The exit code. Raises OSError when output cannot be written."""
    try:
        _make_application(given)(given, prog_name="sync-rules", obj=given)  # the words as typed
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else ExitCode.WELL
    except SyncRulesError as error:
        _print_traceback()
        print(f"sync-rules: {error.sentence}", file=sys.stderr)
        return ExitCode.MISTAKE
    except KeyboardInterrupt:
        print("sync-rules: interrupted", file=sys.stderr)
        return ExitCode.INTERRUPTED
    except Exception as error:
        if _is_output_error(error):
            raise
        if isinstance(error.__cause__, KeyboardInterrupt):  # Python 3.11 wraps it where a class is being made
            print("sync-rules: interrupted", file=sys.stderr)
            return ExitCode.INTERRUPTED
        return _report_bug(error)
    return ExitCode.WELL


def _is_output_error(error: Exception) -> bool:
    """An open output stream could not be written. An error with a file name is about that file instead."""
    return isinstance(error, OSError) and error.filename is None and error.errno in OUTPUT_ERRORS


def _report_output_error(error: OSError) -> int:
    """Report the error, unless the reader has closed the pipe: then the incomplete output is not a mistake."""
    if error.errno != errno.EPIPE:
        with suppress(OSError):
            print(f"sync-rules: cannot write the output: {error.strerror}", file=sys.stderr, flush=True)
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except OSError:  # the interpreter would flush again at exit, and exit with its own code
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return ExitCode.MISTAKE


def _print_traceback() -> None:
    """Print the traceback of the exception being handled, if the user asked for tracebacks."""
    if os.environ.get(DEBUG):
        import traceback  # noqa: PLC0415 - half of the time that this module takes to import

        traceback.print_exc()


def _report_bug(error: Exception) -> int:
    # The message of an unexpected exception may hold values of items, so only its type is shown.
    _print_traceback()
    print(
        f"sync-rules: a bug in sync-rules ({type(error).__name__}, version {__version__}). Run it again with {DEBUG}=1 "
        f"and report the output: {ISSUES}",
        file=sys.stderr,
    )
    return ExitCode.BUG


class _Verbs(TyperGroup):
    def format_commands(self, ctx: Any, formatter: Any) -> None:
        del ctx
        width = max(map(len, VERBS))
        for group, verbs in GROUPS.items():
            with formatter.section(group):
                formatter.write_dl([(verb.ljust(width), said["line"]) for verb, said in verbs.items()])


def _make_application(given: list[str]) -> Callable[..., Any]:
    """The typer application: the called verb alone, or each verb with its line of help if none of them is called."""
    app = typer.Typer(
        cls=_Verbs,
        help="Keep copied and derived data in DynamoDB correct. Rules say what each copy must equal.",
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # the same plain text on a terminal, in a log and in the documentation
    )
    app.callback()(_common)
    words = read_completed_words(os.environ) if COMPLETING in os.environ else given
    called = next((word for word in words if not word.startswith("-")), None)
    found = None if called is None else VERBS.get(called) or _find_plug_in(called)
    if called is not None and found is not None:
        app.command(called)(_load(called, found))
    else:
        for verb, listed in VERBS.items():
            app.command(verb, help=listed.line)(_refuse_call)
    command = typer.main.get_command(app)
    for one in getattr(command, "commands", {}).values():
        for parameter in one.params:
            kind = getattr(getattr(parameter, "type_descriptor", parameter), "parameter_info", None)
            kind = kind or getattr(parameter, "type", None)  # where typer leaves the parsing to click
            if kind is not None and getattr(kind, "readable", False):
                kind.readable = False  # the module that reads the file reports in one line why it cannot
    return command


def _find_plug_in(verb: str) -> VerbEntry | None:
    """The verb of another package, by its entry point; None if no installed package has it."""
    from importlib import metadata  # noqa: PLC0415 - slow to import, and only needed here

    for point in metadata.entry_points(group=PLUG_INS, name=verb):
        return VerbEntry("", point.module, package=point.dist.name if point.dist else "sync-rules")
    return None


def _load(verb: str, listed: VerbEntry) -> Callable[..., None]:
    """The verb's function, wrapped so that the process exits with the code it returns."""
    module = load_module(listed.module, listed.package, verb)
    declared = getattr(module, "VERB", None)
    if not isinstance(declared, Verb) or not hasattr(module, verb):
        raise UserError(f"package {listed.package}: module {listed.module} has no VERB, or no function {verb}")
    function = adapt_verb(declared, getattr(module, verb))
    seconds = PATIENCE_SECONDS if declared.ends else None

    @wraps(function)
    def run(*arguments: Any, **options: Any) -> None:
        try:
            with use_patience(Patience(show_wait, seconds)):
                code = function(*arguments, **options)
        except KeyboardInterrupt as stopped:
            words = str(stopped) or ("interrupted: nothing was written" if declared.only_reads else "interrupted")
            print(f"sync-rules: {words}", file=sys.stderr)
            code = ExitCode.INTERRUPTED
        except BrokenPipeError as error:  # typer, like rich, would exit with 1, which means drift
            code = _report_output_error(error)
        except SystemExit:  # raised by rich when the reader has closed the pipe
            code = ExitCode.MISTAKE
        raise typer.Exit(ExitCode(code).value)

    return run


def _refuse_call() -> None:
    raise AssertionError("only the called verb is loaded")


def _version(asked: bool) -> None:  # noqa: FBT001 - typer calls it so
    if asked:
        from importlib import metadata  # noqa: PLC0415 - slow to import, and only needed here

        boto3, python = metadata.version("boto3"), platform.python_version()
        print(f"sync-rules {__version__} (Python {python}, boto3 {boto3}, rules format {RULES_FORMAT})")
        raise typer.Exit


def _common(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass
