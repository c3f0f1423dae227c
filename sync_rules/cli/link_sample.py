"""The sample of links that verbs take before their first write, and the option that accepts a rule in spite of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from sync_rules.audit.link_check import LinkFinding, sample_links
from sync_rules.model.errors import UserError
from sync_rules.pipeline.requests import Store
from sync_rules.rules import fingerprints
from sync_rules.rules.ruleset import Rules


def sample_new_rules(
    rules: Rules, names: Iterable[str], applied: Mapping[str, str], accepted: Collection[str], store: Store
) -> tuple[LinkFinding, ...]:
    """Sample the links of the rules in `names`, except applied rules that have not changed and rules whose titles are
    in `accepted`. Raises StoreError if a table does not answer.
    """
    prints = fingerprints.compute_rule_fingerprints(rules)
    known = {title for title, digest in applied.items() if prints.get(title) == digest}
    skipped = known.union(accepted)
    return sample_links(rules, (name for name in names if rules.rules[name].title not in skipped), store)


def require_hits(findings: Iterable[LinkFinding]) -> list[str]:
    """Return the findings as lines if none of them stops its rule. Otherwise raise UserError with the stopping findings
    and cures.
    """
    found = tuple(findings)
    stopping = [one for one in found if one.stops]
    if stopping:
        lines = "\n".join(f"  {one.text}" for one in stopping)
        options = " ".join(dict.fromkeys(f"--accept {one.title}" for one in stopping))
        raise UserError(
            f"a sample of the tables says that these rules would write wrong values, so nothing was written:\n{lines}\n"
            f"If this is meant, add {options}"
        )
    return [one.text for one in found]
