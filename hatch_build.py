"""Puts what a project without a clone needs into the wheel, where `sync_rules/deploy/files.py` finds it, and makes the
links of README.md absolute: a package index has no files beside it.

An editable installation uses the clone, and gets no copies that would grow old. So this is no `force-include` of
pyproject.toml, which makes them in both.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

RELATIVE = re.compile(r"\]\((?![a-z]+:|#)")
PLACE = "sync_rules/deploy/carried"
CARRIED = (
    *("handlers", "examples"),
    *("infra/machine.asl.json", "infra/requirements.txt", "infra/requirements-cli.txt"),
    *("samconfig.toml", "template.yaml"),
)


class CarriedFiles(BuildHookInterface):  # type: ignore[type-arg] # of any builder
    """The hook that hatchling calls for each wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the files; `version` is "editable" or "standard"."""
        if version != "editable":
            build_data["force_include"] |= {name: f"{PLACE}/{name}" for name in CARRIED}


class ReadmeLinks(MetadataHookInterface):
    """The hook that hatchling calls for the metadata of each distribution."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add README.md. Its relative links lead below the place of the changelog in `urls`, to pictures themselves."""
        files = metadata["urls"]["Changelog"].rpartition("/")[0]
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        text = RELATIVE.sub(f"]({files}/", text).replace(".png)", ".png?raw=true)")
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
