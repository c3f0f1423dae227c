"""`sync-rules graph`: the rules as the text of a picture, for Mermaid."""

from __future__ import annotations

import sys
from typing import Final

from sync_rules.adapters.files import require_ending, require_own
from sync_rules.cli import options as opt
from sync_rules.cli.show.rule_graph import format_mermaid, make_graph
from sync_rules.cli.show.text import put_out
from sync_rules.cli.verb import Verb
from sync_rules.language.load import load_rules

REFERENCE: Final = "#{};"  # of Mermaid to a character, by its number
ENDINGS: Final = (".mmd", ".md", ".mermaid")

VERB: Final = Verb()


def graph(
    rules_file: opt.RulesFile = opt.RULES_FILE,
    *,
    out: opt.Out = None,
) -> int:
    """Draw which attributes are derived from which."""
    if out is not None:
        require_own(out, rules_file)
        require_ending(out, ENDINGS)
    text = format_mermaid(make_graph(load_rules(rules_file)))
    if out is None:
        text = _fit_encoding(text, getattr(sys.stdout, "encoding", None) or "utf-8")
    put_out(text, out)
    return 0


def _fit_encoding(text: str, encoding: str) -> str:
    """The text with what an encoding lacks as references to characters, which Mermaid resolves."""
    lacking = {letter for letter in set(text) if not letter.isascii() and not letter.encode(encoding, "ignore")}
    return text.translate({ord(letter): REFERENCE.format(ord(letter)) for letter in lacking})
