"""Finds the files that are deployed as they are: in a clone at their own places, in an installed package carried in it.

The wheel carries handlers, template, state machine, locked requirements and examples in one folder of this package,
because top-level packages called `handlers` or `infra` would collide with a user's own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

PACKAGE: Final = Path(__file__).resolve().parent.parent
CARRIED: Final = PACKAGE / "deploy" / "carried"  # made by the build of the wheel: pyproject.toml says of what
ROOT: Final = CARRIED if CARRIED.is_dir() else PACKAGE.parent

HANDLERS: Final = ROOT / "handlers"
EXAMPLES: Final = ROOT / "examples"
TEMPLATE: Final = "template.yaml"
SAM_CONFIG: Final = "samconfig.toml"
MACHINE: Final = "infra/machine.asl.json"
REQUIREMENTS: Final = "infra/requirements.txt"
CLI_REQUIREMENTS: Final = "infra/requirements-cli.txt"  # what the command line imports and is built with, with hashes


def text_of(name: str) -> str:
    """The text of one of these files, such as TEMPLATE."""
    return (ROOT / name).read_text(encoding="utf-8")
