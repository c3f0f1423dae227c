"""Planned rules: how today's rules differ from those applied before."""

from __future__ import annotations

from sync_rules.jobs.dryrun.figures import compare_fingerprints
from sync_rules.language.load import parse_rules
from sync_rules.rules import fingerprints
from tests.support import every_kind

RULES = every_kind.RULES | every_kind.EFFECTS


def test_since_tells_new_changed_unchanged_and_gone():
    """Rules are new, changed, unchanged or gone by comparing fingerprints under the file's names."""
    before = fingerprints.compute_rule_fingerprints(parse_rules(every_kind.text_of(RULES)))
    text = {name: rule for name, rule in RULES.items() if name != "tags"} | {
        "spent": "sum order.total into user.spend",
        "more": "copy user.rank into order.user_rank",
    }
    rules = parse_rules(every_kind.text_of(text))
    now = fingerprints.compute_rule_fingerprints(rules)
    stands = compare_fingerprints(rules, now, before)
    assert (stands.new, stands.changed, stands.gone) == ({"more"}, {"spent"}, {"tags"})
    assert stands.unchanged == RULES.keys() - {"spent", "tags"} - every_kind.EFFECTS.keys()
    assert [stands.word(name) for name in ("more", "spent", "names")] == ["new", "changed", "unchanged"]
