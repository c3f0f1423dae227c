"""The checks at the end of a replay: an end with one different item is wrong, though all others are right."""

from __future__ import annotations

from dataclasses import replace

from sync_rules.lab.delivery import VARIANTS
from sync_rules.lab.recompute import list_discrepancies
from sync_rules.lab.recording_replay import Replay
from tests.support import every_kind
from tests.support.tapes import in_memory, shopping

RULES = every_kind.rules_of()


def test_each_item_of_the_application_that_is_lost_changed_or_new_is_found(tmp_path_factory):
    """One item of the application that is lost, changed or new in the end is found, and no other."""
    played = Replay(RULES, VARIANTS[0])
    records = in_memory(tmp_path_factory, RULES, shopping(RULES, 5, actions=25).bodies)
    assert list(played.list_mismatches(records)) == []
    ending = played._tables.make_ending()
    application = [key for key in ending.images if ending.applied.item(key) is not None]
    assert application
    for key in application:
        for change in ("lost", "changed", "new"):
            end = played.store.copy()
            item = end.item(key) or key.attributes()
            other = key
            if change == "lost":
                end.delete(key)
            elif change == "changed":
                end.put(key.table, {**item, "of_nobody": {"S": "other"}})
            else:
                name, _, _ = key.values[-1]
                other = end.put(key.table, {**item, name: {"S": f"{item[name]['S']}0"}})
            found = [one.key for one in list_discrepancies(replace(ending, store=end)) if one.check == "application"]
            assert found == [other], change
