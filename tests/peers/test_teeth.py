"""The scenarios can fail: a pipeline that only one way of delivery shows wrong is found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import pytest

from sync_rules.model.items import Change, ItemKey
from sync_rules.model.limits import Bounds
from sync_rules.model.values import Item
from sync_rules.pipeline import ancestors, consumer, sources, tasks
from sync_rules.pipeline.consumer import Consumer
from sync_rules.pipeline.report import Report
from sync_rules.pipeline.requests import Work
from sync_rules.pipeline.sources import Sources
from sync_rules.rules.ruleset import Rules
from tests.peers.report import check_variant
from tests.peers.runner import Case
from tests.peers.stories import GATHERED, HEAD, STORY, case_of
from tests.peers.variants import VARIANTS


def failing(case: Case) -> set[int]:
    """The numbers of the variants under which a case fails."""
    passed = set()
    for variant in VARIANTS:
        with suppress(AssertionError):
            check_variant(case, variant)
            passed.add(variant.number)
    return {variant.number for variant in VARIANTS} - passed


@pytest.mark.parametrize("story", [(STORY, HEAD), ("", GATHERED)], ids=["copies", "gathered"])
def test_runner_passes_the_story(story: tuple[str, str]) -> None:
    """The stories that the mutilated pipelines below get wrong are ones that hold."""
    assert not failing(case_of(*story))


# ---------------------------------------------------------------- mutilated pipelines
Patch = Callable[[pytest.MonkeyPatch], None]


def last_record_only(patch: pytest.MonkeyPatch) -> None:
    """Only the last record of an item in a batch counts, even if it can concern no rule."""
    true_handle = Consumer.handle_event

    def handle_event(self: Consumer, event: Mapping[str, Any], remaining_ms: Callable[[], int]) -> dict[str, Any]:
        last = {(r["eventSourceARN"], repr(r["dynamodb"]["Keys"])): r for r in event["Records"]}
        return true_handle(self, {"Records": [*last.values()]}, remaining_ms)

    patch.setattr(Consumer, "handle_event", handle_event)


def last_relevant_record_only(patch: pytest.MonkeyPatch) -> None:
    """The same among those that may concern a rule: what an item pointed to in between is forgotten."""
    true_plan = tasks.tasks_of
    patch.setattr(consumer, "tasks_of", lambda changes, rules: true_plan({c.key: c for c in changes}.values(), rules))


def done_before_the_effect(patch: pytest.MonkeyPatch) -> None:
    """A record is noted as done when it comes, so the retry of a batch that died does nothing."""
    true_handle = Consumer.handle_event

    def handle_event(self: Consumer, event: Mapping[str, Any], _remaining_ms: Callable[[], int]) -> dict[str, Any]:
        done = self.__dict__.setdefault("done", set())
        numbers = {record["dynamodb"]["SequenceNumber"] for record in event["Records"]}
        fresh = [r for r in event["Records"] if r["dynamodb"]["SequenceNumber"] not in done]
        done |= numbers
        return true_handle(self, {"Records": fresh}, lambda: 900_000)

    patch.setattr(Consumer, "handle_event", handle_event)


def value_from_the_image(patch: pytest.MonkeyPatch) -> None:
    """A source's record is believed instead of the source."""
    images: dict[ItemKey, Item | None] = {}
    true_process, true_read = consumer.process, sources.read_sources

    def process(changes: Sequence[Change], rules: Rules, bounds: Bounds) -> Work[Report]:
        images.clear()
        images.update({change.key: change.new for change in changes})
        return (yield from true_process(changes, rules, bounds))

    def read_sources(*args: Any) -> Work[Sources]:
        read = yield from true_read(*args)
        read.items = {key: images.get(key, item) for key, item in read.items.items()}
        return read

    patch.setattr(consumer, "process", process)
    patch.setattr(ancestors, "read_sources", read_sources)


# What breaks the pipeline, and the variant that was made for it. All else is in `tests/simulation/mutants.py`.
MUTILATIONS: dict[Patch, tuple[tuple[str, str], int]] = {
    last_record_only: ((STORY, HEAD), 2),
    last_relevant_record_only: (("", GATHERED), 2),
    done_before_the_effect: ((STORY, HEAD), 5),
    value_from_the_image: ((STORY, HEAD), 6),
}


@pytest.mark.parametrize("mutilate", [pytest.param(patch, id=patch.__name__) for patch in MUTILATIONS])
def test_variants_notice_a_mutilated_pipeline(mutilate: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipeline without one of its parts fails the story under the variant that was made for that part."""
    story, variant = MUTILATIONS[mutilate]
    mutilate(monkeypatch)
    assert variant in failing(case_of(*story))
