"""The scenarios can fail: a wrong expectation is found, and so is each way of breaking the pipeline tried here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sync_rules import batch, plan, reconcile
from sync_rules.attributes import Item
from sync_rules.batch import Consumer
from sync_rules.errors import UserError
from sync_rules.kinds import copy
from sync_rules.model import Change, ItemKey
from sync_rules.reconcile import Pace, Report, Sources, Target
from sync_rules.rules import CopyRule, Rules
from sync_rules.store import Work
from tests.peers import __main__ as command
from tests.peers.broken import Refusal
from tests.peers.cases import entries
from tests.peers.report import Verdict, check_variant, row_of
from tests.peers.runner import Case
from tests.peers.scenarios import load, read
from tests.peers.variants import VARIANTS

HEAD = """
scenarios:
- id: TOOTH
  tables: {users: id, posts: id}
  rules:
  - {table: posts, attr: name, copy: {path: [{to: users, by: user_id}], attr: name}}
  initial:
    users: [{id: u, name: Ann}, {id: w, name: Wim}]
    posts: [{id: p, user_id: u}, {id: q, user_id: u}]
  steps:
"""
STORY = """
  - update: {table: users, key: u, set: {name: Anna}}
    expect: {posts: {p: {name: Anna}, q: {name: Anna}}}
  - put: {table: posts, item: {id: p, user_id: u, name: stale}}
  - update: {table: posts, key: p, set: {note: x}}
    expect: {posts: {p: {name: Anna}}}
    max_target_writes: 0
  - update: {table: posts, key: p, set: {user_id: w}}
    expect: {posts: {p: {name: Wim}}}
  - update: {table: posts, key: p, set: {note: y}}
  - update: {table: users, key: u, remove: [name]}
    expect: {posts: {q: {name: <absent>}}}
  - update: {table: users, key: u, set: {name: Anne}}
    expect: {posts: {q: {name: Anne}}}
    max_target_writes: 1
  - delete: {table: users, key: u}
    expect: {posts: {q: {name: <absent>}}}
"""
WRONG = {
    "value": "  - update: {table: users, key: u, set: {name: Anna}}\n    expect: {posts: {q: {name: Ann}}}",
    "absent": "  - delete: {table: users, key: w}\n    expect: {posts: {q: {name: <absent>}}}",
    "item": "  - delete: {table: users, key: u}\n    expect: {posts: {q: <no item>}}",
    "no item": "  - delete: {table: users, key: u}\n    expect: {users: {u: {id: u}}}",
    "writes": "  - update: {table: users, key: u, set: {name: Anna}}\n    max_target_writes: 1",
    "fixed": "  - corrupt: {table: posts, key: p, set: {name: x}}\n  - repair: true\n    expect_fixed: []",
    "fixed count": "  - repair: true\n    expect_fixed_count: 1",
    "nothing left": "  - corrupt: {table: posts, key: p, set: {name: x}}\n  - put: {table: users, item: {id: z}}",
}


def case_of(steps: str) -> Case:
    (case,) = entries(read(HEAD + steps, "teeth"))
    assert isinstance(case, Case)
    return case


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
    patch.setattr(copy, "pulls", lambda *_: False)


def no_push(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(copy, "pushes", lambda *_: False)


def removed_attributes_stay(patch: pytest.MonkeyPatch) -> None:
    """A peer's bug: only attributes that the source has are looked at."""
    true_desired = copy.desired

    def desired(rule: CopyRule, source: Item | None, target: Item) -> object:
        wanted = true_desired(rule, source, target)
        return wanted and {path: value for path, value in wanted.items() if value is not None}

    patch.setattr(copy, "desired", desired)


def writes_without_a_difference(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reconcile, "differences", lambda _image, desired: dict(desired))


def last_record_only(patch: pytest.MonkeyPatch) -> None:
    """Only the last record of an item in a batch counts."""
    true_plan = plan.plan_batch
    patch.setattr(batch, "plan_batch", lambda changes, rules: true_plan({c.key: c for c in changes}.values(), rules))


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
    true_process, true_read = batch.process, reconcile.read_sources

    def process(changes: Sequence[Change], rules: Rules, pace: Pace) -> Work[Report]:
        images.clear()
        images.update({change.key: change.new for change in changes})
        return (yield from true_process(changes, rules, pace))

    def read_sources(targets: Iterable[Target]) -> Work[Sources]:
        sources = yield from true_read(targets)
        return {key: images.get(key, item) for key, item in sources.items()}

    patch.setattr(batch, "process", process)
    patch.setattr(reconcile, "read_sources", read_sources)


# What breaks the pipeline, and the variants that must notice at the least; the others may.
MUTILATIONS: dict[Patch, set[int]] = {
    no_pull: {1, 2, 3, 4, 5, 6},
    no_push: {1, 2, 3, 4, 5, 6},
    removed_attributes_stay: {1, 2, 3, 4, 5, 6},
    writes_without_a_difference: {1, 3, 4, 5, 6},
    last_record_only: {2},
    done_before_the_effect: {5},
    value_from_the_image: {6},
}


@pytest.mark.parametrize("mutilate", [pytest.param(patch, id=patch.__name__) for patch in MUTILATIONS])
def test_variants_notice_a_mutilated_pipeline(mutilate: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipeline without one of its parts fails the story under the variants that were made for that part."""
    mutilate(monkeypatch)
    assert failing(case_of(STORY)) >= MUTILATIONS[mutilate]


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


# ---------------------------------------------------------------- the command
def test_command_exits_1_when_a_scenario_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The table names the first difference, and the exit code says that something failed."""
    (tmp_path / "wrong.yaml").write_text(HEAD + WRONG["value"])
    assert command.main([str(tmp_path)]) == 1
    shown = capsys.readouterr().out
    assert "posts q name: expected 'Ann', found 'Anna'" in shown
    assert "1 failed" in shown


def test_command_exits_0_when_all_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is not yet supported is told, and fails nothing."""
    (tmp_path / "a.yaml").write_text(HEAD + STORY)
    agg = "{table: users, attr: posts, agg: count, path: [{from: posts, 'on': user_id}]}"
    mixed = (HEAD + STORY).replace("  initial:", f"  - {agg}\n  initial:").replace("id: TOOTH", "id: MIXED")
    (tmp_path / "b.yaml").write_text(mixed)
    assert command.main([str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "agg: count (kind count, planned)" in shown
    assert "2 passed, 0 failed, 1 not yet supported" in shown
    assert "MIXED (copies only)" in shown


@pytest.mark.parametrize("text", [None, "scenarios: []", "scenarios: [{id: X}]", "a: ["])
def test_command_exits_2_when_there_is_nothing_to_run(
    text: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A directory without scenarios, or a file that is none, is the user's mistake and is said."""
    if text is not None:
        (tmp_path / "bad.yaml").write_text(text)
    assert command.main([str(tmp_path)]) == 2
    assert str(tmp_path) in (err := capsys.readouterr().err) or "bad" in err


def test_scenarios_refuse_a_step_they_do_not_know(tmp_path: Path) -> None:
    """A misspelt step is an error, not a step that does nothing."""
    (tmp_path / "typo.yaml").write_text(HEAD + "  - updaet: {table: users, key: u}\n")
    with pytest.raises(UserError, match=r"typo TOOTH.*updaet"):
        load(tmp_path)


def test_case_names_its_rules_when_it_fails() -> None:
    """A failure carries the schedule and the rules file, to be read without looking for them."""
    case = replace(case_of(WRONG["value"]), id="x")
    with pytest.raises(AssertionError) as caught:
        check_variant(case, VARIANTS[0])
    assert "into: posts.name" in caught.value.__notes__[0]
