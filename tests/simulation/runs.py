"""Runs of histories: one by its number or by its choices, or many in a row, with the story of a failure.

A number gives the rules file (each for `HISTORIES_PER_FILE` histories) and the choices of its history; in a world, the
world gives the file. So both are all that a failure needs to be seen again: `python -m tests.simulation --replay NUMBER`.
"""

from __future__ import annotations

import hashlib
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from tests.simulation import checks
from tests.simulation.choices import Choices, drawn, given
from tests.simulation.commands import DivergenceError, threadless
from tests.simulation.followers import check_readers
from tests.simulation.grammar import Made, made, made_of
from tests.simulation.history import History
from tests.simulation.oracle import Verdict
from tests.simulation.safety import UnsafeError
from tests.simulation.shrink import Lists, shrunk
from tests.simulation.transacting import check_alone
from tests.simulation.world import START
from tests.simulation.worlds import ALL, as_played, is_random, made_in

HISTORIES_PER_FILE: Final = 5
SHRINK_MAX_REPLAYS: Final = 1_500
TURNS: Final = {"backfill": 2, "damage": 5}  # the last check of histories in these modes
Seen = Counter[tuple[str, str]]


@dataclass(frozen=True)
class Failed:
    """A history that failed: its file and its choices, and why. `number` is None where it is given by its choices,
    `world` "" where the file is of the grammar.
    """

    text: str
    choices: Mapping[str, list[int]]
    reason: str
    number: int | None = None
    world: str = ""

    def __str__(self) -> str:
        where = f" --only {self.world}" if self.world else ""
        return f"history {self.number}{where}: {self.reason}\n  replay: python -m tests.simulation --replay {self.number}{where}"

    def body(self) -> Mapping[str, Any]:
        rules = {"world": self.world} if self.world else {}
        rules |= {} if self.world and not is_random(self.world) else {"rules": self.text}
        return {"reason": self.reason, **rules, "choices": dict(self.choices)}


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
        seen["clock", "table-seconds"] += round((history.world.now - START) * len(file.spec.tables))
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
    if history.world.lost:
        checks.repaired(history, "what no record showed")
    if history.tampered:
        history.world.safety.judge = None
        checks.repaired(history, "damage to the books while everybody was at work")
    verdict = _judged(history)
    quiet = not verdict.open and not verdict.orphans
    if history.mode == "readers" and quiet and not history.world.notes:
        check_readers(history)
        verdict = _judged(history)
    if history.transacting and quiet:
        check_alone(history)
        verdict = _judged(history)
    _last_check(history, verdict, TURNS.get(history.mode, pick(6)))


def _judged(history: History) -> Verdict:
    """Put all that waits through, and judge all items and effects. From here on, people look."""
    history.redrive()
    history.world.safety.judge = None
    verdict = history.judged()
    checks.check_effects(history)
    return verdict


def _last_check(history: History, verdict: Verdict, turn: int) -> None:
    pick = history.choices.configuration
    if history.people is not None and checks.may_come_again(verdict):
        history.people.put_all_through_again()
    if turn in (0, 1):
        checks.check_verify(history, verdict)
    if turn == 2:
        checks.check_backfill(history, verdict)
    if turn == 3:
        checks.check_replay(history)
    if turn == 4:
        checks.check_quiet(history, verdict)
    if turn == 5:
        checks.check_damage(history, verdict, pick)
    if turn in (1, 5):
        checks.check_books(history, pick)


def play_number(number: int, *, seen: Seen | None = None, story: list[str] | None = None) -> Failed | None:
    """The history of a number."""
    file, choices = made(number // HISTORIES_PER_FILE), drawn(number)
    if seen is not None and number % HISTORIES_PER_FILE == 0:
        seen["file", "refused before"] += file.refused
        seen.update(("kind", rule["kind"]) for rule in file.spec.rules.values())
    reason = play(file, choices, seen=seen, story=story)
    return Failed(file.text, choices.taken(), reason, number) if reason else None


def play_in(world: str, seed: int, *, seen: Seen | None = None, story: list[str] | None = None) -> Failed | None:
    """A history in a world of `worlds`; a random one has the file of the seed."""
    file = made_in(world, seed // HISTORIES_PER_FILE)
    choices = drawn(seed)
    reason = play(file, choices, seen=seen, story=story)
    return Failed(file.text, choices.taken(), reason, seed, world) if reason else None


def failures_in(worlds: Sequence[str], first: int, count: int, seen: Seen | None = None) -> Iterator[Failed]:
    """Play histories in some worlds by turns, and yield those that fail."""
    for number in range(first, first + count):
        failed = play_in(worlds[number % len(worlds)], number, seen=seen)
        if failed is not None:
            yield failed


def failures(first: int, count: int, seen: Seen | None = None) -> Iterator[Failed]:
    """Play histories, and yield those that fail."""
    for number in range(first, first + count):
        failed = play_number(number, seen=seen)
        if failed is not None:
            yield failed


# ---------------------------------------------------------------- a failure, made short
def play_given(text: str, lists: Lists, story: list[str] | None = None, world: str = "") -> str | None:
    """A history by its file or its world, and its choices; None if the file is refused."""
    if world and not is_random(world):
        return play(made_in(world), given(lists), story=story)
    file, _ = made_of(text)
    return None if file is None else play(as_played(file, world) if world else file, given(lists), story=story)


def shorter(failed: Failed, replays_max: int = SHRINK_MAX_REPLAYS) -> Failed:
    """The same failure with as few rules and choices as could be found."""
    words, world = kind_of(failed.reason), failed.world

    def still(text: str, lists: Lists) -> bool:
        again = play_given(text, lists, world=world)
        return bool(again) and kind_of(again or "") == words

    text = failed.text
    for line in [line for line in text.splitlines() if line.startswith("  rule")]:
        fewer = text.replace(f"{line}\n", "")
        if still(fewer, failed.choices):
            text = fewer
    lists = shrunk(failed.choices, lambda lists: still(text, lists), replays_max)
    return replace(failed, text=text, choices=lists, reason=play_given(text, lists, world=world) or "")


def kind_of(reason: str) -> str:
    """The kind of a failure: its reason without items and values."""
    line = reason.strip().splitlines()[-1 if reason.startswith("Traceback") else 0] if reason else ""
    return line.split(" on ")[0].split(" of ")[0][:60] if line else ""


def story_of(failed: Failed) -> str:
    """The rules and the history in words, step by step."""
    story: list[str] = []
    reason = play_given(failed.text, failed.choices, story, failed.world)
    return "\n".join([failed.text, *story, f"=> {reason or 'nothing is wrong'}"])


def trace_hash(first: int, count: int) -> str:
    """A digest of everything that happens in some histories: the same on every machine."""
    digest = hashlib.sha256()
    for number in range(first, first + count):
        story: list[str] = []
        play_number(number, story=story)
        play_in(ALL[number % len(ALL)], number, story=story)
        digest.update("\n".join(story).encode())
    return digest.hexdigest()
