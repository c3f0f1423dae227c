"""`sync-rules schema`: the JSON Schema of rules files, so that editors complete and check while one types."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from sync_rules.adapters.files import as_mistake, require_ending
from sync_rules.language.schema import json_schema


def schema(
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write it to a file, not to the terminal.")] = None,
) -> int:
    """Write the JSON Schema of rules files, for editors."""
    if out is not None:
        require_ending(out, [".json"])  # above all, not the rules file that it is for
    text = json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"
    if out is None:
        print(text, end="")
        return 0
    with as_mistake(out):
        out.write_text(text, encoding="utf-8")
    print(f"wrote {out}. First line of your rules file: # yaml-language-server: $schema={out}")
    return 0
