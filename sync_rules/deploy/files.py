"""Finds the files that are deployed as they are: in a clone at their own places, in an installed package carried in it.

The wheel carries handlers, template, state machine, locked requirements and examples in one folder of this package,
because top-level packages called `handlers` or `infra` would collide with a user's own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from sync_rules.deploy.yamltext import read_yaml
from sync_rules.model import json_bytes

PACKAGE: Final = Path(__file__).resolve().parent.parent
CARRIED: Final = PACKAGE / "deploy" / "carried"  # made by the build of the wheel: pyproject.toml says of what
ROOT: Final = CARRIED if CARRIED.is_dir() else PACKAGE.parent

HANDLERS: Final = ROOT / "handlers"
EXAMPLES: Final = ROOT / "examples"
TEMPLATE: Final = "template.yaml"
SAM_CONFIG: Final = "samconfig.toml"
MACHINE: Final = "infra/machine.asl.json"
REQUIREMENTS: Final = "infra/requirements.txt"
PARTS: Final = Path(__file__).with_name("parts.yaml")
CLI_REQUIREMENTS: Final = "infra/requirements-cli.txt"  # what the command line imports and is built with, with hashes


def read_file(name: str) -> str:
    """Return the text of a deployed file, such as TEMPLATE."""
    return (ROOT / name).read_text(encoding="utf-8")


def read_part(name: str, **marks: str) -> Any:
    """Return a part of generated resources from parts.yaml, with values in place of marks such as @ID@."""
    return json_bytes.parse_json(fill_marks(json.dumps(_read_parts()[name]), marks))


@cache
def _read_parts() -> Any:
    return read_yaml(PARTS.read_text(encoding="utf-8"), PARTS.name)


def fill_marks(text: str, marks: Mapping[str, str]) -> str:
    """Return a text with values in place of marks such as @ID@."""
    return re.sub(r"@([A-Z]+)@", lambda match: marks[match[1]], text)
