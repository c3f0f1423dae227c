"""The core of backfill: a scanned page, keys of an export, one item with all that it has to do with."""

from __future__ import annotations

from threading import current_thread

import pytest

from sync_rules.jobs.backfill import page
from sync_rules.jobs.backfill.page import Selection, make_supplies, process_keys, process_page
from sync_rules.jobs.backfill.progress import Totals
from sync_rules.jobs.backfill.throttle import Crew
from sync_rules.model.errors import StoreError
from sync_rules.model.items import Outcome
from sync_rules.model.limits import Bounds
from sync_rules.pipeline.requests import Scan
from tests.support import every_kind
from tests.support.builders import s
from tests.support.worlds import Scene

RULES = every_kind.rules_of(effects=False)


def of_all(scene: Scene, wanted=lambda _key, _item: True) -> Selection:
    return Selection(scene.rules, frozenset(scene.rules.rules), wanted)


def test_backfill_counts_a_part_on_one_side_only():
    """An element is seen with its edge and with its node; when it is right it counts once."""
    scene = Scene(RULES)
    scene.there("shop", every_kind.user("1", orders={"SS": ["1"]}), every_kind.order("1", "1", 5))
    selection = Selection(RULES, frozenset(["tags"]))
    result = scene.drive(process_page(Scan("shop", 10), selection, Bounds()))
    assert result.report.outcomes == {("tags", Outcome.RIGHT): 1}
    alone = scene.drive(process_keys([scene.at("shop", "USER#1", "PROFILE")], selection, Bounds()))
    assert +alone.report.outcomes == {}


def test_backfill_says_how_many_levels_the_paths_on_a_page_have():
    """The longest path that stands on an item, of the rules asked for; 0 where there is none."""
    scene = Scene(RULES)
    scene.there("parts", {**every_kind.part("a"), "path": s("a")}, {**every_kind.part("b"), "path": s("x|y|b")})
    page = Scan("parts", 10)
    assert scene.drive(process_page(page, of_all(scene), Bounds())).levels == 3
    assert scene.drive(process_page(page, Selection(RULES, frozenset(["names"])), Bounds())).levels == 0


def test_page_that_no_retry_can_finish_is_tried_once():
    """A missing right is reported at once; a throttle is tried again."""
    for reason, tries in (("AccessDeniedException", 1), ("Throttled", page.TRIES_MAX)):
        scene, waits = Scene(RULES), []
        scene.tap.refuse(Scan, StoreError(reason, "table shop"))
        pages = page.Pages(Bounds(), lambda: False, waits.append)
        supply = next(iter(make_supplies(RULES, 1)(frozenset(["names"]))))
        with pytest.raises(StoreError, match=reason):
            pages.process(supply, None, of_all(scene), scene.world, Totals(), recording=True)
        assert len(waits) == tries - 1


def test_crew_of_one_works_in_the_thread_of_its_caller():
    """One worker needs no thread: a browser has none. It goes on after a part that is not finished."""
    threads = []

    def work(part: int) -> bool:
        threads.append(current_thread())
        return part > 1

    assert not Crew(1, lambda: False).run(work, [1, 2, 3])
    assert threads == [current_thread()] * 3
