"""Mutants of the fan-out in chunks: keys not sent, failures not reported, chunks not checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from sync_rules.model.errors import StoreError
from sync_rules.pipeline import consumer, fanout, handover
from sync_rules.pipeline.messages import ChunkMessage, Message, PushMessage
from sync_rules.pipeline.requests import Later, List, Request
from tests.simulation.breaking import Mutation, Work, answered, at_each_history, known, unsent, wrapping
from tests.simulation.worlds import among, small

OFTEN = among("prompt", "often-index")  # without a second look, which is no chunk
TWO, INDEX = among("prompt", "often-two-index"), among("", "often-index")
DELETE = among("", "often-delete")
SETS = among("prompt", "often-collect-index")
OF_A_CHUNK = {"of": {"S": "a chunk"}}  # stands as the cursor of a push whose targets came in a chunk


# ---------------------------------------------------------------- what is sent
def dropping(dropped: Callable[[Message, Any, Any], bool]) -> Any:
    """Mutant: some messages of a spread are not sent, chosen by listing and limits."""
    original = handover._send_chunks

    def _send_chunks(listing: Any, rules: Any, bounds: Any) -> Work:
        return answered(
            original(listing, rules, bounds), unsent(lambda message: dropped(message, listing, bounds.limits))
        )

    return lambda: patch.object(handover, "_send_chunks", _send_chunks)


def before_the_rest(message: Message, listing: Any, _limits: Any) -> bool:
    return isinstance(message, ChunkMessage) and listing.handed_over


def the_rest(message: Message, _listing: Any, _limits: Any) -> bool:
    return isinstance(message, PushMessage)


def sent_anyway(request: Request) -> Work:
    """A message that could not be sent is taken as sent."""
    try:
        return (yield request)
    except StoreError:
        if not isinstance(request, Later):
            raise


def nothing(*_args: object) -> Work:
    return
    yield


# ---------------------------------------------------------------- what is looked at
def looked_at(change: Callable[[Any, Any, Any], Work]) -> Any:
    """A look at chunks replaced by a function of it, the chunks and the bounds."""
    original = fanout.process_chunks
    return patch.object(consumer, "process_chunks", lambda chunks, bounds: change(original, chunks, bounds))


def failures_forgotten(original: Any, chunks: Any, bounds: Any) -> Work:
    report = yield from original(chunks, bounds)
    report.failed = {}
    return report


def not_removed(original: Any, chunks: Any, bounds: Any) -> Work:
    return original([replace(one, push=replace(one.push, removed=False)) for one in chunks], bounds)


def first_target_only(original: Any, chunks: Any, bounds: Any) -> Work:
    return original([replace(one, targets=one.targets[:1]) for one in chunks], bounds)


def marked(original: Any, chunks: Any, bounds: Any) -> Work:
    return original([replace(one, push=replace(one.push, cursor=OF_A_CHUNK)) for one in chunks], bounds)


@contextmanager
def no_parts() -> Iterator[None]:
    """Mutant: only the targets of a chunk are looked at, not its parts."""
    original = fanout.list_parts

    def list_parts(push: Any, key: Any, image: Any) -> Any:
        return [] if push.cursor == OF_A_CHUNK else original(push, key, image)

    with looked_at(marked), patch.object(fanout, "list_parts", list_parts):
        yield


@contextmanager
def rows_as_images() -> Iterator[None]:
    """Mutant: index rows of a chunk's targets are taken for their images."""
    rows: dict[Any, Any] = {}
    list_page = handover.list_page

    def noting(listing: Any, rules: Any, bounds: Any) -> Work:
        table = listing.push.rules[0].listed_entity.table

        def ask(request: Request) -> Work:
            answer = yield request
            if isinstance(request, List):
                rows.update({table.key_of(item): item for item in answer.items})
            return answer

        return answered(list_page(listing, rules, bounds), ask)

    def believing(original: Any, chunks: Any, bounds: Any) -> Work:
        return answered(original(chunks, bounds), known(rows))

    with ExitStack() as stack:
        stack.enter_context(patch.object(handover, "list_page", noting))
        stack.enter_context(at_each_history(rows.clear))
        stack.enter_context(looked_at(believing))
        yield


MUTANTS = {
    "keys before the rest not sent": Mutation(dropping(before_the_rest), OFTEN),
    "rest of a spread not sent": Mutation(dropping(the_rest), OFTEN),
    "spread done though a send failed": Mutation(wrapping(handover, "_send_chunks", sent_anyway), TWO),
    "spread never fails": Mutation(
        lambda: patch.object(handover, "report_unfinished_pushes", lambda _listings, report: report), TWO
    ),
    "no second look after a spread": Mutation(
        lambda: patch.object(handover, "send_second_look_of_push", nothing), INDEX
    ),
    "chunk never fails": Mutation(lambda: looked_at(failures_forgotten), OFTEN),
    "first target of a chunk only": Mutation(
        lambda: looked_at(first_target_only), small("prompt", "copy", how="often-")
    ),
    "chunk forgets the removal": Mutation(lambda: looked_at(not_removed), DELETE),
    "chunk without parts": Mutation(no_parts, SETS),
    "chunk takes index rows for images": Mutation(rows_as_images, INDEX),
}
