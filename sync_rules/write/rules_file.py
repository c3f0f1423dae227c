"""The rules of an application, from a compiled file or from the rules file itself."""

from __future__ import annotations

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
        return compiled_file.load(Path(path))
