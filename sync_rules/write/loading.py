"""Loads rules for an application: the compiled file where the build left one, else the rules file itself.

Invariant: nothing here imports the reader of rules files until a rules file must be read.
"""

from __future__ import annotations

from pathlib import Path

from sync_rules.model.errors import UserError
from sync_rules.rules import compiled_file, ruleset


class Rules(ruleset.Rules):
    """The rules of an application."""

    @staticmethod
    def load(path: str | Path = "rules.yaml") -> ruleset.Rules:
        """The rules of this file, or of the compiled one beside it, which needs neither pydantic nor a reader of YAML.

        Raises:
            UserError: when neither can be read, or the compiled file is of another rules file than the one beside it.
        """
        file = Path(path)
        built = file if file.suffix == compiled_file.SUFFIX else compiled_file.beside(file)
        if built.exists():
            source = file.read_bytes() if file != built and file.exists() else None
            return compiled_file.read(built.read_bytes(), str(built), source=source)
        try:
            from sync_rules.language.load import load_rules  # noqa: PLC0415 - only where no compiled file is
        except ImportError as error:
            raise UserError(
                f"{built}: no such file, and nothing here reads a rules file. {compiled_file.AGAIN}"
            ) from error
        return load_rules(file)
