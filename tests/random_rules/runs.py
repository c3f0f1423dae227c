"""Runs of histories: one by its number or by its choices, or many in a row, with the story of a failure.

A number gives the rules file (each for `HISTORIES_PER_FILE` histories) and the choices of its history, so it is all that
a failure needs to be seen again: `python -m tests.random_rules --replay NUMBER`.
"""

from __future__ import annotations

import hashlib
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from tests.random_rules import checks
from tests.random_rules.commands import DivergenceError, threadless
from tests.random_rules.grammar import Made, made, made_of
from tests.random_rules.history import History
from tests.random_rules.safety import UnsafeError
from tests.random_rules.transacting import check_alone
from tests.simulation.choices import Choices, drawn, given
from tests.simulation.shrink import Lists, shrunk

HISTORIES_PER_FILE: Final = 5
SHRINK_MAX_REPLAYS: Final = 1_500
Seen = Counter[tuple[str, str]]


@dataclass(frozen=True)
class Failed:
    """A history that failed: its rules file and choices, and why. `number` is None where it is given by its choices."""

    text: str
    choices: Mapping[str, list[int]]
    reason: str
    number: int | None = None

    def __str__(self) -> str:
        return f"history {self.number}: {self.reason}\n  replay: python -m tests.random_rules --replay {self.number}"

    def body(self) -> Mapping[str, Any]:
        return {"reason": self.reason, "rules": self.text, "choices": dict(self.choices)}


def play(file: Made, choices: Choices, *, seen: Seen | None = None, story: list[str] | None = None) -> str:
    """Play one history. Returns why it failed, "" if it did not. Whatever the product raises is a failure."""
    history: History | None = None
    try:
        history = History(file, choices, story)
        with threadless():
            _whole(history)
        reason = ""
    except (DivergenceError, UnsafeError) as error:
        reason = str(error)
    except Exception:  # noqa: BLE001 - the product must raise nothing: what it raises is the finding
        reason = traceback.format_exc()
    finally:
        if history is not None:
            history.end()
    if seen is not None and history is not None:
        seen.update(history.seen)
        seen["steps", "steps"] += history.steps
    return reason


def _whole(history: History) -> None:
    """A history, then what must hold at its end. Each check takes its turn, as the choices have it."""
    pick = history.choices.configuration.pick
    late = history.begin()
    history.storm()
    history.rest()
    if late:
        history.tell("-- a backfill of what was there before")
        history.backfilled()
        history.rest()
    if history.tampered:
        history.world.safety.judge = None
        checks.repaired(history, "damage to the books while everybody was at work")
    history.redrive()
    history.world.safety.judge = None  # from here on, people look
    verdict = history.judged()
    checks.check_effects(history)
    if history.transacting and not verdict.open and not verdict.orphans:
        check_alone(history)
        history.redrive()
        verdict = history.judged()
        checks.check_effects(history)
    turn = pick(6)
    if turn in (0, 1):
        checks.check_verify(history, verdict)
    if turn == 2:
        checks.check_backfill(history, verdict)
    if turn == 3:
        checks.check_replay(history)
    if turn == 4:
        checks.check_quiet(history, verdict)
    if turn == 5:
        checks.check_damage(history, verdict, history.choices.configuration)
    if turn in (1, 5):
        checks.check_books(history, history.choices.configuration)


def play_number(number: int, *, seen: Seen | None = None, story: list[str] | None = None) -> Failed | None:
    """The history of a number."""
    file, choices = made(number // HISTORIES_PER_FILE), drawn(number)
    if seen is not None and number % HISTORIES_PER_FILE == 0:
        seen["file", "refused before"] += file.refused
        seen.update(("kind", rule["kind"]) for rule in file.spec.rules.values())
    reason = play(file, choices, seen=seen, story=story)
    return Failed(file.text, choices.taken(), reason, number) if reason else None


def failures(first: int, count: int, seen: Seen | None = None) -> Iterator[Failed]:
    """Play histories, and yield those that fail."""
    for number in range(first, first + count):
        failed = play_number(number, seen=seen)
        if failed is not None:
            yield failed


# ---------------------------------------------------------------- a failure, made short
def play_given(text: str, lists: Lists, story: list[str] | None = None) -> str | None:
    """A history by its rules file and its choices; None if the file is refused."""
    file, _ = made_of(text)
    return None if file is None else play(file, given(lists), story=story)


def shorter(failed: Failed, replays_max: int = SHRINK_MAX_REPLAYS) -> Failed:
    """The same failure with as few rules and choices as could be found."""
    words = kind_of(failed.reason)

    def still(text: str, lists: Lists) -> bool:
        again = play_given(text, lists)
        return bool(again) and kind_of(again or "") == words

    text = failed.text
    for line in [line for line in text.splitlines() if line.startswith("  rule")]:
        fewer = text.replace(f"{line}\n", "")
        if still(fewer, failed.choices):
            text = fewer
    file, _ = made_of(text)
    assert file is not None, "a file that was played"
    lists = shrunk(failed.choices, lambda lists: kind_of(play(file, given(lists))) == words, replays_max)
    reason = play(file, given(lists))
    return replace(failed, text=text, choices=lists, reason=reason)


def kind_of(reason: str) -> str:
    """The kind of a failure: its reason without items and values."""
    line = reason.strip().splitlines()[-1 if reason.startswith("Traceback") else 0] if reason else ""
    return line.split(" on ")[0].split(" of ")[0][:60] if line else ""


def story_of(failed: Failed) -> str:
    """The rules and the history in words, step by step."""
    story: list[str] = []
    reason = play_given(failed.text, failed.choices, story)
    return "\n".join([failed.text, *story, f"=> {reason or 'nothing is wrong'}"])


def trace_hash(first: int, count: int) -> str:
    """A digest of everything that happens in some histories: the same on every machine."""
    digest = hashlib.sha256()
    for number in range(first, first + count):
        story: list[str] = []
        play_number(number, story=story)
        digest.update("\n".join(story).encode())
    return digest.hexdigest()
