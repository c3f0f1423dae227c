"""Capacity and other settings of tables: what a rules file says, and what does not depend on it."""

from __future__ import annotations

import re

import pytest

from sync_rules.language.load import check_rules, parse_rules
from sync_rules.model.capacity import IndexSettings, OnDemand, Provisioned, Scaling, TableSettings, Units, Warm
from sync_rules.rules import compiled_file, fingerprints
from tests.support import capacities

SETTINGS = re.compile(
    r"^    (billing:(\n      provisioned:)?|warm:|class:|deletion_protection:|backups:|ttl:).*\n", re.MULTILINE
)


def test_settings_are_as_the_file_says():
    """Autoscaling for reads and writes apart, its target 70 by default; an index has its own figures or the table's."""
    rules = parse_rules(capacities.text())
    shop, users = rules.settings["shop"], rules.settings["users"]
    billing = Provisioned(Units(10, Scaling(5, 500, 70)), Units(5, Scaling(5, 50, 50)))
    day = IndexSettings(Provisioned(Units(1), Units(2)), Warm(None, 9000))
    assert shop == TableSettings(
        billing, Warm(15_000, 5_000), "infrequent-access", True, True, "expires_at", {"by_day": day}
    )
    first, second, local = rules.tables["shop"].indexes
    assert (shop.of(first), shop.of(second), shop.of(local)) == (IndexSettings(billing), day, IndexSettings())
    assert users.billing == OnDemand(1000, 500)
    mail, town = rules.tables["users"].indexes
    assert (users.of(mail).billing, users.of(town).billing) == (OnDemand(1000, 500), OnDemand(100))


@pytest.mark.parametrize("billing", ["on-demand", "{provisioned: {read: 5, write: 5, autoscaling: {min: 5, max: 9}}}"])
def test_settings_take_one_autoscaling_for_reads_and_writes(billing):
    rules = parse_rules(f"tables: {{things: {{key: {{id: S}}, billing: {billing}}}}}\nentities: {{}}\nrules: {{}}\n")
    both = Units(5, Scaling(5, 9, 70))
    assert rules.settings["things"].billing in (OnDemand(), Provisioned(both, both))


def test_nothing_that_runs_depends_on_settings():
    """Fingerprints and compiled rules are the same, byte for byte, with all settings and with none."""
    full = capacities.text()
    plain = SETTINGS.sub("", full)
    plain = re.sub(r", (billing|warm): \{.*?\}+(?=[,}]|$)", "", plain)
    with_all, with_none = parse_rules(full), parse_rules(plain)
    assert with_all.settings
    assert not with_none.settings
    assert with_all.fingerprint == with_none.fingerprint
    assert fingerprints.of_each(with_all) == fingerprints.of_each(with_none)
    assert compiled_file.written(with_all, {}) == compiled_file.written(with_none, {})


ARCHIVED = """
tables: {{games: {{key: {{game_id: S}}{ttl}}}}}
entities: {{game: {{table: games}}}}
rules: {{kept: {{archive: game, when: expired, into: "s3://games-that-were/"}}}}
"""


@pytest.mark.parametrize(("ttl", "codes"), [("", {"SR470"}), (", ttl: expires_at", set())])
def test_time_to_live_of_a_table_is_one_that_archives_may_rely_on(ttl, codes):
    """An archive of expired items needs no attribute of its own where the table says which."""
    rules, problems = check_rules(ARCHIVED.format(ttl=ttl))
    assert {problem.code for problem in problems} == codes
    assert rules.times_to_live == ({"games": "expires_at"} if ttl else {})
    assert rules.needed_times_to_live == {}
