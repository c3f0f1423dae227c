"""The call of a verb from the command line: `-` for standard input, --format json, and options checked first."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, redirect_stdout
from functools import wraps
from inspect import Parameter, signature
from io import TextIOBase
from pathlib import Path
from typing import Any, Final, TextIO

import typer

from sync_rules.cli.options import LineForm
from sync_rules.cli.verb import Verb

READ: Final = frozenset({"rules_file", "files", "record", "before", "data", "write"})  # files that verbs read once
STDIN: Final = Path("/dev/stdin")


def adapt_verb(verb: Verb, function: Callable[..., int]) -> Callable[..., int]:
    """Wrap the function of a verb for typer: with a context as its first parameter."""
    declared = signature(function, eval_str=True)
    own = dict(declared.parameters)

    @wraps(function)
    def call(context: typer.Context, **options: Any) -> int:
        verb.require_sense(context)
        for name in READ & options.keys():
            options[name] = _open_stdin(options[name])
        if "context" in own:
            options["context"] = context
        with _print_json_list() if options.get("form") is LineForm.JSON else nullcontext():
            return function(**options)

    parameters = [Parameter("context", Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)]
    parameters += [one.replace(kind=Parameter.KEYWORD_ONLY) for name, one in own.items() if name != "context"]
    call.__signature__ = declared.replace(parameters=parameters)  # type: ignore[attr-defined]
    return call


def _open_stdin(given: Any) -> Any:
    """A path, or each of several, with standard input for `-`."""
    if isinstance(given, (list, tuple)):
        return [_open_stdin(one) for one in given]
    return STDIN if given == Path("-") else given


@contextmanager
def _print_json_list() -> Iterator[None]:
    """Print the JSON lines of a command as one JSON list, each line as soon as it is printed."""
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


def read_completed_words(environ: Mapping[str, str]) -> list[str]:
    """Return the words of a command line that a shell asks to complete; none if it asks nothing."""
    for name in ("_TYPER_COMPLETE_ARGS", "COMP_WORDS"):
        if text := environ.get(name):
            return text.split()[1:]
    return []
