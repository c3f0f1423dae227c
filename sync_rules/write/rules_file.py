"""The rules of an application, from a compiled file or from the rules file itself.

Invariant: nothing here imports the reader of rules files until a rules file must be read.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sync_rules.rules import compiled_file, ruleset


class Rules(ruleset.Rules):
    """The rules of an application."""

    @staticmethod
    def load(path: str | Path = "rules.yaml") -> ruleset.Rules:
        """The rules of this file, or of the compiled one beside it, which needs neither pydantic nor a reader of YAML.

        Raises:
            UserError: when neither can be read, or the compiled file is of another rules file than the one beside it.
        """
        return compiled_file.load(Path(path), _reader)


def _reader() -> Callable[[Path], ruleset.Rules]:
    from sync_rules.language.load import load_rules  # noqa: PLC0415 - only where no compiled file is

    return load_rules
