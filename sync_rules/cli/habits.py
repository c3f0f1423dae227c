"""Habits that all verbs share, added in one place.

They are --rules beside the argument RULES, --json beside --jsonl, and `-` for standard input.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, redirect_stdout
from functools import wraps
from inspect import Parameter, signature
from io import TextIOBase
from pathlib import Path
from typing import Annotated, Any, Final, TextIO

import typer

from sync_rules.cli import options as opt
from sync_rules.cli.dependencies import require_sense
from sync_rules.model.errors import UserError

RULES: Final = "rules_file"  # verbs call the argument so
ROWS: Final = "as_json"  # and the option that prints rows
GIVEN: Final = "given_rules"
DOCUMENT: Final = "document"
READ: Final = frozenset({RULES, "files", "record", "before", "data"})  # files that verbs read once
STDIN: Final = Path("/dev/stdin")

GivenRules = Annotated[
    Path | None, typer.Option("--rules", metavar="FILE", help="The rules file, instead of the argument.")
]
Document = Annotated[bool, typer.Option("--json", help="Print one JSON document: a list of what --jsonl prints.")]


def with_habits(verb: Callable[..., int]) -> Callable[..., int]:
    """The verb, with the options that follow from its own parameters.

    Raises:
        UserError: when two ways to say one thing are both used.
    """
    asked = signature(verb, eval_str=True)
    own = dict(asked.parameters)
    takes_rules = RULES in own and own[RULES].kind is Parameter.POSITIONAL_OR_KEYWORD
    prints_rows = ROWS in own and own[ROWS].annotation == opt.JsonLines

    @wraps(verb)
    def called(context: typer.Context, **options: Any) -> int:
        require_sense(context)
        given, document = options.pop(GIVEN, None), options.pop(DOCUMENT, False)
        if given is not None:
            _require_once(context, options[RULES], given)
            options[RULES] = given
        if document:
            if options[ROWS]:
                raise UserError("--json and --jsonl exclude each other: give one of them")
            options[ROWS] = True
        for name in READ & options.keys():
            options[name] = _opened(options[name])
        if "context" in own:
            options["context"] = context
        with _one_document() if document else nullcontext():
            return verb(**options)

    shown = [Parameter("context", Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)]
    for name, one in own.items():
        shown += [one.replace(kind=Parameter.POSITIONAL_OR_KEYWORD)] if name != "context" else []
        if name == RULES and takes_rules:
            shown += [Parameter(GIVEN, Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=GivenRules)]
        if name == ROWS and prints_rows:
            shown += [Parameter(DOCUMENT, Parameter.POSITIONAL_OR_KEYWORD, default=False, annotation=Document)]
    required = [one for one in shown if one.default is Parameter.empty]
    optional = [one for one in shown if one.default is not Parameter.empty]
    called.__signature__ = asked.replace(parameters=[*required, *optional])  # type: ignore[attr-defined]
    return called


def _opened(given: Any) -> Any:
    """A path, or each of several, with standard input for `-`."""
    if isinstance(given, (list, tuple)):
        return [_opened(one) for one in given]
    return STDIN if given == Path("-") else given


def _require_once(context: typer.Context, argument: Path, option: Path) -> None:
    source = context.get_parameter_source(RULES)
    if source is not None and source.name == "COMMANDLINE":
        raise UserError(f"two rules files were given, {argument} and --rules {option}: give one of them")


@contextmanager
def _one_document() -> Iterator[None]:
    """Make a JSON list of the JSON lines that are printed meanwhile: still a line for each, as soon as it is known."""
    rows = _List(sys.stdout)
    with redirect_stdout(rows):
        try:
            yield
        except BaseException:
            rows.end(failed=True)
            raise
        rows.end()


class _List(TextIOBase):
    """An output that receives JSON lines and passes on a JSON list of them."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._begun = ""
        self._count = 0

    def write(self, text: str, /) -> int:
        *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            self._out.write(("[\n" if not self._count else ",\n") + line)
            self._count += 1
        return len(text)

    def flush(self) -> None:
        self._out.flush()

    def end(self, *, failed: bool = False) -> None:
        """Close the list. What failed before its first row prints none."""
        self._out.write("\n]\n" if self._count else "" if failed else "[]\n")
        self._out.flush()


def completed_words(environ: Mapping[str, str]) -> list[str]:
    """The words of a command line that a shell asks to complete; none when it asks nothing."""
    for name in ("_TYPER_COMPLETE_ARGS", "COMP_WORDS"):
        if text := environ.get(name):
            return text.split()[1:]
    return []
