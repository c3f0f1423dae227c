"""The invariants, each removed once, and the oracles that must notice.

Invariant: the production code has no switches. A mutant replaces a function from outside; at least one oracle must
notice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from sync_rules.pipeline import reconcile
from sync_rules.pipeline.handover import Listing
from sync_rules.pipeline.messages import PullMessage
from tests.kinds import TRIALS
from tests.simulation import (
    mutants_backfill,
    mutants_booked,
    mutants_chunks,
    mutants_default,
    mutants_errands,
    mutants_gathered,
    mutants_history,
    mutants_own,
    mutants_parts,
    mutants_reads,
    mutants_relay,
    mutants_rules,
    mutants_sieve,
    mutants_waiting,
    mutants_work,
    mutants_writers,
    mutants_writes,
)
from tests.simulation.breaking import Mutant, Mutation, replacing, results, unsent, wrapping
from tests.simulation.runs import Failed, failures_in
from tests.simulation.worlds import among, forget, small

# Where a mutant of no particular kind of rule is tried: among plain copies, which are quick to play.
COPIES = small("", "copy", "copy-within", "chain-copy", "copy-derive")
COPY = small("", "copy")
BASE, TABLES = among("", "base"), among("", "base", "index")
LINK = among("", "writes-link")
DELETES = among("", "index-delete", "delete-where")
OFTEN = among("", "often-base")

LAWS: Mapping[str, Mutation] = {
    # guards
    "no link guard": Mutation(mutants_writes.no_link_guard, among("", "index-delete")),
    "upsert": Mutation(mutants_writes.upsert),
    "no existence guard": Mutation(mutants_writes.no_existence_guard, COPY),
    "no guard on the copy": Mutation(mutants_writes.no_copy_guard, BASE),
    "copy = NULL": Mutation(mutants_writes.null_guard),
    "guard from the old link": Mutation(mutants_writes.old_link),
    "judged by a link in change": Mutation(replacing(reconcile, "list_rules_to_delay", lambda _wanted: []), LINK),
    "deferred rule forgotten": Mutation(mutants_writes.deferred_forgotten, LINK),
    "right copies written again": Mutation(
        replacing(reconcile, "find_differences", lambda _image, desired: dict(desired)), COPY
    ),
    # reading the source
    "eventually consistent source": Mutation(mutants_reads.eventual_read),
    "source read before the images": Mutation(mutants_reads.source_first, among("", "index-delete")),
    "impossible key asked for": Mutation(mutants_reads.impossible_keys, BASE),
    "value from the image": Mutation(mutants_reads.value_from_image),
    "value in the message": Mutation(mutants_reads.value_in_message, OFTEN),
    # which records matter
    "own records ignored": Mutation(mutants_work.own_records_ignored, COPY),
    "no pull on insert": Mutation(mutants_work.no_pull_on_insert, among("", "shop")),
    "no pull on link change": Mutation(mutants_work.pulls_without(lambda rule: rule.link_paths)),
    "no pull on a change of the copy": Mutation(mutants_work.pulls_without(lambda rule: rule.copies)),
    "map around a copy ignored": Mutation(mutants_work.pulls_without(lambda _rule: ()), small("impatient", "copy")),
    "net difference of a batch": Mutation(lambda: mutants_work.planned(mutants_work.net_difference), COPY),
    "last record of an item only": Mutation(lambda: mutants_work.planned(mutants_work.last_record), among("", "own")),
    "one rule re-checked": Mutation(lambda: mutants_work.planned(mutants_work.one_rule), COPY),
    "no push": Mutation(lambda: mutants_work.planned(mutants_work.no_push)),
    "REMOVE ignored": Mutation(lambda: mutants_work.planned(mutants_work.ignore_remove)),
    **mutants_sieve.MUTANTS,
    # listing
    "index row as image": Mutation(mutants_work.index_row_as_image, among("stale", "index")),
    "first page only": Mutation(mutants_work.first_page_only, TABLES),
    "no second look": Mutation(lambda: mutants_work.second_look_if(lambda _listing, _bounds: False), COPY),
    "unread target forgotten": Mutation(
        replacing(Listing, "unread", property(lambda _self: False, lambda *_args: None)),
        among("prompt", "index-strict"),
    ),
    # deletes and transactions
    "delete without transaction": Mutation(
        lambda: mutants_writes.deletion(mutants_writes.without_transaction), DELETES
    ),
    "delete compares the copy": Mutation(lambda: mutants_writes.deletion(mutants_writes.comparing_the_copy), DELETES),
    "refused delete not judged again": Mutation(
        lambda: mutants_writes.deletion(mutants_writes.not_judged_again), among("", "delete-where")
    ),
    "delete from a pull": Mutation(mutants_writes.delete_from_pull, COPY),
    "strict without source check": Mutation(mutants_writes.no_source_check, COPY),
    "conflict taken as refused": Mutation(
        wrapping(reconcile, "_apply", results(mutants_writes.conflict_is_refused)), among("", "index-strict")
    ),
    # what fails
    "throttled write taken as done": Mutation(
        wrapping(reconcile, "_apply", results(mutants_writes.failed_is_written)),
        among("", "base", "index", "writes-where"),
    ),
    "failures forgotten": Mutation(mutants_writes.failures_forgotten),
    "dead letters dropped": Mutation(mutants_writes.dead_letters_dropped, mutants_errands.REDRIVES),
    "full item blocks its shard": Mutation(wrapping(reconcile, "_apply", results(mutants_writes.rejected_is_failed))),
    "full item dropped": Mutation(mutants_writes.full_item_dropped),
    "no park retry": Mutation(
        wrapping(reconcile, "retry_parked_items", unsent(lambda message: isinstance(message, PullMessage)))
    ),
    # what stands where there is nothing to copy
    **mutants_default.MUTANTS,
    # what is made of the item itself, or of many
    **mutants_own.MUTANTS,
    **mutants_gathered.MUTANTS,
    # what stands for itself
    **mutants_parts.MUTANTS,
    **mutants_booked.MUTANTS,
    **mutants_history.MUTANTS,
    # what goes on in chunks
    **mutants_chunks.MUTANTS,
    **mutants_relay.MUTANTS,
    **mutants_waiting.MUTANTS,
    # what people do beside the pipeline
    **mutants_backfill.MUTANTS,
    **mutants_errands.MUTANTS,
    # what applications do by themselves
    **mutants_writers.MUTANTS,
    # what random rules cover
    **mutants_rules.MUTANTS,
    # kinds that bring their own
    **{name: mutation for trial in TRIALS for name, mutation in trial.mutants.items()},
}
MUTANTS = {name: replace(one, worlds=one.worlds or COPIES) for name, one in LAWS.items()}


@contextmanager
def applied(*some: str | Mutant) -> Iterator[None]:
    """The product without some invariants: mutants, or their names. Rules are made again, because they remember what was computed of them."""
    forget()
    try:
        with ExitStack() as stack:
            for one in some:
                stack.enter_context(MUTANTS[one].mutant() if isinstance(one, str) else one())
            yield
    finally:
        forget()


def caught(name: str, first: int, count: int) -> Failed | None:
    """The first history that catches a mutant."""
    with applied(name):
        found = failures_in(MUTANTS[name].worlds, first, count)
        return next((failed for failed in found if MUTANTS[name].raises or "Traceback" not in failed.reason), None)


def report(first: int, count: int, names: Iterable[str] = (), workers: int | None = None) -> int:
    """Print for each mutant the number of the history that catches it. Returns 1 if one survives."""
    asked = list(names) or list(MUTANTS)
    survivors = 0
    with ProcessPoolExecutor(workers) as pool:
        found = pool.map(caught, asked, [first] * len(asked), [count] * len(asked))
        for name, failed in zip(asked, found, strict=True):
            where = "survives"
            if failed is not None:
                where = f"{failed.number:>6} {failed.world:20} {failed.reason.splitlines()[-1][:90]}"
            print(f"{name:46} {where}", flush=True)
            survivors += failed is None
    return 1 if survivors else 0
