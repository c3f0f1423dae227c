"""`sync-rules graph`: the rules as the text of a picture, for Mermaid or Graphviz."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Annotated, Final

import typer

from sync_rules.adapters.files import require_ending, require_own
from sync_rules.cli import options as opt
from sync_rules.cli.show.rule_graph import RuleGraph, dot, graph_of, mermaid
from sync_rules.cli.show.text import put_out
from sync_rules.cli.verb import Verb
from sync_rules.language.load import load_rules


class Format(StrEnum):
    """The languages that a graph can be written in."""

    MERMAID = "mermaid"
    DOT = "dot"


WRITERS: Final[Mapping[Format, Callable[[RuleGraph], str]]] = {Format.MERMAID: mermaid, Format.DOT: dot}
REFERENCES: Final = {Format.MERMAID: "#{};", Format.DOT: "&#{};"}  # to characters, by number
BY_ENDING: Final = {
    ".mmd": Format.MERMAID,
    ".md": Format.MERMAID,
    ".mermaid": Format.MERMAID,
    ".dot": Format.DOT,
    ".gv": Format.DOT,
}

VERB: Final = Verb()


def graph(
    rules_file: opt.RulesFile = opt.RULES_FILE,
    *,
    form: Annotated[
        Format | None,
        typer.Option("--format", help="Default: from the extension of --out, otherwise mermaid."),
    ] = None,
    out: opt.Out = None,
) -> int:
    """Draw which attributes are derived from which."""
    if out is not None:
        require_own(out, rules_file)
        require_ending(out, BY_ENDING)
    form = form or (BY_ENDING[out.suffix.lower()] if out else Format.MERMAID)
    text = WRITERS[form](graph_of(load_rules(rules_file)))
    if out is None:
        text = _fit_encoding(text, REFERENCES[form], getattr(sys.stdout, "encoding", None) or "utf-8")
    put_out(text, out)
    return 0


def _fit_encoding(text: str, reference: str, encoding: str) -> str:
    """The text with what an encoding lacks as references to characters, which a reader of the format resolves."""
    lacking = {letter for letter in set(text) if not letter.isascii() and not letter.encode(encoding, "ignore")}
    return text.translate({ord(letter): reference.format(ord(letter)) for letter in lacking})
