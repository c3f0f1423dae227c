"""`sync-rules graph`: the rules as a picture, or as the text that draws one.

Exit code 0 when it was written, 2 when it cannot be: the rules file is not sound, or there is no Graphviz for an SVG.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer

from sync_rules.adapters.files import as_mistake, require_ending, require_own
from sync_rules.cli.show.picture import svg
from sync_rules.cli.show.rule_graph import RuleGraph, dot, graph_of, mermaid
from sync_rules.language.load import load_rules


class Format(StrEnum):
    """What a graph can be written as."""

    MERMAID = "mermaid"
    DOT = "dot"
    SVG = "svg"


WRITERS: Final[Mapping[Format, Callable[[RuleGraph], str]]] = {
    Format.MERMAID: mermaid,
    Format.DOT: dot,
    Format.SVG: svg,
}
BY_ENDING: Final = {
    ".mmd": Format.MERMAID,
    ".md": Format.MERMAID,
    ".mermaid": Format.MERMAID,
    ".dot": Format.DOT,
    ".gv": Format.DOT,
    ".svg": Format.SVG,
}


def graph(
    rules_file: Annotated[Path, typer.Argument(metavar="RULES", help="The rules file.")] = Path("rules.yaml"),
    *,
    form: Annotated[
        Format | None, typer.Option("--format", help="Else the ending of --out says it; mermaid without one.")
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write it to a file, not to the terminal.")] = None,
) -> int:
    """Draw the rules: which entity's attributes make which of another."""
    if out is not None:
        require_own(out, rules_file)
        require_ending(out, BY_ENDING)
    drawn = graph_of(load_rules(rules_file))
    form = form or (BY_ENDING[out.suffix.lower()] if out else Format.MERMAID)
    text = WRITERS[form](drawn)
    if out is None:
        print(text, end="" if text.endswith("\n") else "\n")
        return 0
    with as_mistake(out):
        out.write_text(text, encoding="utf-8")
    print(f"wrote {out}")
    return 0
