"""`sync-rules schema`: the JSON Schema of rules files, for completion and checks in editors."""

from __future__ import annotations

from typing import Final

from sync_rules.adapters.files import require_ending
from sync_rules.cli import options as opt
from sync_rules.cli.show.text import put_out
from sync_rules.cli.verb import Verb
from sync_rules.language.schema import format_schema

VERB: Final = Verb()


def schema(out: opt.Out = None) -> int:
    """Write the JSON Schema of rules files, for editors."""
    if out is not None:
        require_ending(out, [".json"])  # above all, not the rules file itself
    put_out(format_schema(), out, f". First line of your rules file: # yaml-language-server: $schema={out}")
    return 0
