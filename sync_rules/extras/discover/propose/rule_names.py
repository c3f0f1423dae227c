"""Names for rules, made of what they keep: user-name-on-orders, orders-of-users."""

from __future__ import annotations

import re
from typing import Final

from sync_rules.extras.discover.imports.identifiers import RESERVED, Unique, plural, words
from sync_rules.extras.discover.propose.candidates import Finding

NAME_MAX: Final = 64


def name_of(finding: Finding, unique: Unique) -> str:
    """A name for a rule, which no other one has."""
    source, target = finding.source.name, plural(finding.target.name)
    written = _slug(*finding.writes[0].road) if finding.writes else ""
    match finding.kind:
        case "copy":
            read = _slug(*finding.reads[0].road)
            own = read if read.startswith(_slug(source)) else f"{_slug(source)}-{read}"
            wanted = f"{own}-on-{_slug(target)}"
        case "mirror":
            wanted = f"{_slug(plural(source))}-as-{_slug(target)}"
        case _:
            wanted = f"{written}-of-{_slug(target)}"
    made = wanted[:NAME_MAX].rstrip("-")
    return unique.name(made if re.match("[a-z]", made) and made not in RESERVED else f"rule-{made}"[:NAME_MAX])


def _slug(*names: str) -> str:
    return "-".join(re.sub(r"[^a-z0-9]", "", word) for name in names for word in words(name)).strip("-") or "it"
