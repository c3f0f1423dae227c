"""Modules that are loaded by their names as text: those of verbs, and those of the extras that a verb uses."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from sync_rules.model.errors import UserError


def load_module(name: str, package: str, use: str) -> ModuleType:
    """Import and return a module. Raises UserError if it needs a library that is not installed; `package` is the
    package to install for `use`.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing in ("", "sync_rules"):
            raise
        raise UserError(f"{use} needs {missing}, which is not installed: pip install '{package}'") from error
