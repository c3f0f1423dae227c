"""The scenarios can fail: a wrong expectation is found, and so is each way of breaking the pipeline tried here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from sync_rules.model.entities import Entity
from sync_rules.model.items import Change, ItemKey
from sync_rules.model.limits import Bounds
from sync_rules.model.values import Item
from sync_rules.model.writes import Transaction
from sync_rules.pipeline import ancestors, consumer, reconcile, sources, tasks
from sync_rules.pipeline.consumer import Consumer
from sync_rules.pipeline.report import Report
from sync_rules.pipeline.requests import Work
from sync_rules.pipeline.sources import Sources
from sync_rules.rules.families import Part
from sync_rules.rules.kinds.copy import CopyRule
from sync_rules.rules.kinds.embed import EmbedRule
from sync_rules.rules.kinds.mirror import MirrorRule
from sync_rules.rules.kinds.tally import TallyRule, TotalRule
from sync_rules.rules.ruleset import Rules
from tests.peers.broken import Refusal
from tests.peers.cases import entries
from tests.peers.report import Verdict, check_variant, row_of
from tests.peers.runner import Case
from tests.peers.scenarios import Unread, read
from tests.peers.stories import GATHERED, HEAD, STORY, WRONG, case_of
from tests.peers.variants import VARIANTS


def failing(case: Case) -> set[int]:
    """The numbers of the variants under which a case fails."""
    return {v.number for v in VARIANTS if row_of(case, [v]).verdict is Verdict.FAILED}


@pytest.mark.parametrize("steps", [pytest.param(steps, id=name) for name, steps in WRONG.items()])
def test_runner_finds_a_wrong_expectation(steps: str) -> None:
    """Each thing that a step can expect is looked at."""
    row = row_of(case_of(steps))
    assert row.verdict is Verdict.FAILED
    assert "variant 1" in row.why


def test_runner_passes_the_story() -> None:
    """The story that the mutilated pipelines below get wrong is one that holds."""
    assert not failing(case_of(STORY))


# ---------------------------------------------------------------- mutilated pipelines
Patch = Callable[[pytest.MonkeyPatch], None]


def no_pull(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CopyRule, "pulls", lambda *_: False)


def no_push(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CopyRule, "pushes", lambda *_: False)


def removed_attributes_stay(patch: pytest.MonkeyPatch) -> None:
    """A peer's bug: only attributes that the source has are looked at."""
    true_desired = CopyRule.desired

    def desired(rule: CopyRule, sources: Sequence[Item | None], target: Item) -> object:
        wanted = true_desired(rule, sources, target)
        return wanted and {path: value for path, value in wanted.items() if value is not None}

    patch.setattr(CopyRule, "desired", desired)


def writes_without_a_difference(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reconcile, "differences", lambda _image, desired: dict(desired))


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


def no_hints(patch: pytest.MonkeyPatch) -> None:
    """Break the pipeline: a member's record does not cause a look at its parent."""
    patch.setattr(EmbedRule, "hints", lambda *_: ())


def no_total_hints(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TotalRule, "hints", lambda *_: ())


def parents_are_not_pulled(patch: pytest.MonkeyPatch) -> None:
    """Break the pipeline: a write over a parent's embedded children or totals is not repaired."""
    patch.setattr(EmbedRule, "pulls", lambda *_: False)
    patch.setattr(TotalRule, "pulls", lambda *_: False)


def old_images_are_not_read(patch: pytest.MonkeyPatch) -> None:
    """Break the pipeline: an id removed from a list keeps its mirror."""
    true_parts = MirrorRule.parts
    patch.setattr(MirrorRule, "parts", lambda self, change, at: true_parts(self, replace(change, old=None), at))


def every_member_belongs(patch: pytest.MonkeyPatch) -> None:
    """A hinting member is taken for one of the parent's without a look at where it points."""
    patch.setattr(EmbedRule, "is_member", lambda *_: True)


def entries_are_not_kept(patch: pytest.MonkeyPatch) -> None:
    """Totals move by the record, without a note of who was counted."""
    true_write_for = TallyRule.write_for

    def write_for(rule: TallyRule, part: Part, target: Item | None, source: Item | None) -> object:
        write = true_write_for(rule, part, target, source)
        return Transaction(write.actions[:-1]) if isinstance(write, Transaction) else write

    def parts(rule: TallyRule, change: Change, entity: Entity) -> Iterable[Part]:
        return true_parts(rule, change, entity) if entity is rule.source else ()

    true_parts = TallyRule.parts
    patch.setattr(TallyRule, "write_for", write_for)
    patch.setattr(TallyRule, "parts", parts)


ALL = {1, 2, 3, 4, 5, 6}
# What breaks the pipeline, and the variants that must notice at the least; the others may.
MUTILATIONS: dict[Patch, set[int]] = {
    no_pull: ALL,
    no_push: ALL,
    removed_attributes_stay: ALL,
    writes_without_a_difference: {1, 3, 4, 5, 6},
    last_record_only: {2},
    done_before_the_effect: {5},
    value_from_the_image: {6},
}
GATHERING_MUTILATIONS: dict[Patch, set[int]] = {
    no_hints: ALL,
    no_total_hints: ALL,
    parents_are_not_pulled: ALL,
    old_images_are_not_read: ALL,
    every_member_belongs: ALL,
    entries_are_not_kept: ALL,
    last_relevant_record_only: {2},
}


@pytest.mark.parametrize("mutilate", [pytest.param(patch, id=patch.__name__) for patch in MUTILATIONS])
def test_variants_notice_a_mutilated_pipeline(mutilate: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipeline without one of its parts fails the story under the variants that were made for that part."""
    mutilate(monkeypatch)
    assert failing(case_of(STORY)) >= MUTILATIONS[mutilate]


def test_runner_passes_the_gathered_story() -> None:
    """The runner passes the story of gathered attributes."""
    assert not failing(case_of("", GATHERED))


@pytest.mark.parametrize("mutilate", [pytest.param(patch, id=patch.__name__) for patch in GATHERING_MUTILATIONS])
def test_variants_notice_a_pipeline_that_gathers_badly(mutilate: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for what is made of many."""
    mutilate(monkeypatch)
    assert failing(case_of("", GATHERED)) >= GATHERING_MUTILATIONS[mutilate]


def test_refusal_fails_when_the_rules_load() -> None:
    """A case of broken rules that are not broken, or are for another reason, does not pass."""
    (entry,) = entries(
        read(
            "scenarios: [{id: E, tables: {}, config_error: true, notes: 'class: unknown rule kind', title: '''copy'''}]",
            "teeth",
        )
    )
    assert isinstance(entry, Refusal)
    assert row_of(entry).verdict is Verdict.FAILED


def test_scenarios_refuse_a_step_they_do_not_know() -> None:
    """A misspelt step is said, and is not a step that does nothing."""
    (entry,) = read(HEAD + "  - updaet: {table: users, key: u}\n", "typo")
    assert isinstance(entry, Unread)
    assert "updaet" in entry.reason


def test_case_names_its_rules_when_it_fails() -> None:
    """A failure carries the schedule and the rules file, to be read without looking for them."""
    case = case_of(WRONG["value"])
    with pytest.raises(AssertionError) as caught:
        check_variant(case, VARIANTS[0])
    assert "into: posts.name" in caught.value.__notes__[0]
