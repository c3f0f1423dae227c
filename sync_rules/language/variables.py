"""Environment variables in a rules file, ${VAR} and ${VAR:-default}: for names that differ between deployments.

A missing variable stops a run, but not a check, which may run without a deployment.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from sync_rules.language.problems import Location, Problems
from sync_rules.model import json_bytes

VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


@dataclass(frozen=True)
class Variables:
    """The environment. Like in a shell, an empty variable counts as not set."""

    environ: Mapping[str, str]
    problems: Problems
    running: bool

    def fill(self, text: str, location: Location) -> str | None:
        """Return the text with the values of its variables. If some are not set, report each and return None."""
        missing = False

        def value(match: re.Match[str]) -> str:
            nonlocal missing
            found = self.environ.get(match[1]) or match[2]
            wrong = _explain_missing_value(found)
            if wrong:
                missing = True
                code = "SR005" if self.running else "SR405"
                self.problems.add(code, location, f"the environment variable {match[1]} {wrong}")
            return found or ""

        text = VARIABLE.sub(value, text)
        return None if missing else text


def _explain_missing_value(found: str | None) -> str:
    if not found:
        return "is not set"
    return "" if json_bytes.is_encodable(found) else "is not UTF-8"  # bytes that are no UTF-8 are half characters here
