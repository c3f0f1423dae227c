"""The rules of an application, from a compiled file or from the rules file itself."""

from __future__ import annotations

from pathlib import Path

from sync_rules.rules import compiled_file, ruleset


class Rules(ruleset.Rules):
    """The rules of an application."""

    @staticmethod
    def load(path: str | Path = "rules.yaml") -> ruleset.Rules:
        """Load the rules of this file, or of the compiled file next to it, which needs neither pydantic nor a YAML
        parser.

        Raises:
            UserError: if neither can be read, or the compiled file belongs to another version of the rules file.
        """
        return compiled_file.load(Path(path))
