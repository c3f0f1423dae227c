"""Puts what a project without a clone needs into the wheel, where `sync_rules/deploy/files.py` finds it.

An editable installation uses the clone, and gets no copies that would grow old. So this is no `force-include` of
pyproject.toml, which makes them in both.
"""

from __future__ import annotations

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

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
