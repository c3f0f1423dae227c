"""The scope of a backfill, as JSON: the rules to apply, and whether an unfinished backfill is of the same scope.

Invariant: a scope holds all that gives a cursor its meaning. These are the rules' fingerprints, the tables' identities,
the choice of items, and the number of segments.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sync_rules.adapters.state import (
    Body,
    State,
    read_applied_fingerprints,
    read_applied_time,
    save_applied_fingerprints,
)
from sync_rules.jobs.backfill.progress import abandon, load_beginning, load_unfinished_head
from sync_rules.model.errors import UserError
from sync_rules.pipeline.books import read_incomplete_books
from sync_rules.pipeline.requests import NULL_PORTS, Store, World, run_work
from sync_rules.rules import fingerprints
from sync_rules.rules.ruleset import Rules
from sync_rules.rules.selection import select_rules

OF: Final = {"rules": "rules", "tables": "tables", "table": "--table", "where": "--where", "segments": "segments"}


NOTHING_THERE: Final = "It keeps nothing in a table, so there is nothing to backfill."
NOTHING_NEW: Final = "no rule that keeps something in a table is new or changed"


@dataclass(frozen=True)
class Scope:
    """The scope of a backfill. `rules` are fingerprints by rule name, and `tables` the ARN and id of each table."""

    rules: Mapping[str, str]
    tables: Mapping[str, str]
    segments: int
    table: str | None = None
    where: str | None = None

    def body(self) -> Body:
        """Return the scope, ready for JSON."""
        return {**vars(self), "rules": dict(self.rules), "tables": dict(self.tables)}


def describe_scope(body: Body) -> str:
    said = [f"of {join_names(body['rules'])}"]
    said += [f"{OF[name]} {_format_value(body[name])}" for name in ("table", "where") if body[name] is not None]
    return ", ".join(said)


def require_beginning(state: State, scope: Body, where: str, *, resume: bool, restart: bool) -> None:
    """Require --resume for an unfinished backfill, and the same scope. `where` names the state in messages.

    Raises:
        UserError: if an option is missing, the scope differs, or no backfill is unfinished.
        StoreError: if the state does not answer.
    """
    if restart:
        abandon(state)
    found = load_unfinished_head(state)
    if found is None:
        if resume:
            raise UserError(f"{where} has no unfinished backfill: leave out --resume")
    elif resume:
        require_same(found["scope"], scope)
    else:
        raise UserError(
            f"{where} has an unfinished backfill, {describe_scope(found['scope'])}. "
            "Continue it with --resume, or discard it and start from the beginning with --restart."
        )


def require_same(found: Body, asked: Body) -> None:
    """Raise UserError with each difference between the scope of the unfinished backfill and the requested scope."""
    lines = "".join(f"\n  {line}" for line in _describe_differences(found, asked))
    if lines:
        raise UserError(
            f"the unfinished backfill has other options or rules:{lines}\n"
            "Give the same options and rules to continue it, or --restart to discard it."
        )


def _describe_differences(found: Body, asked: Body) -> Iterator[str]:
    for name, words in OF.items():
        before, now = found.get(name), asked[name]
        if before == now:
            continue
        if not isinstance(now, Mapping) or not isinstance(before, Mapping | None):
            yield f"{words}: it has {_format_value(before)}, this command {_format_value(now)}"
        elif (before := before or {}).keys() != now.keys():
            yield f"{words}: it has {join_names(before)}, this command {join_names(now)}"
        else:
            for key in (key for key in before if before[key] != now[key]):
                changed = f"it has {before[key]}, this command {now[key]}" if name == "tables" else "has changed since"
                yield f"{words}: {key} {changed}" if name == "rules" else f"{words}: {key}: {changed}"


def _format_value(value: Any) -> str:
    return "none" if value is None else str(value)


def join_names(names: Iterable[str]) -> str:
    """Return the names as text, sorted and separated by commas; "none" for no names."""
    return ", ".join(sorted(names)) or "none"


def select_rules_to_apply(
    rules: Rules, names: list[str], before: Mapping[str, str] | None
) -> tuple[frozenset[str], frozenset[str]]:
    """Return the names of the rules to apply, with their parts, and the titles of all requested rules. A rule that only
    acts on changes has nothing to apply.

    Raises:
        UserError: if no rule has a name, or all rules only act on changes.
    """
    effects = {rule.title: rule for rule in rules.rules.values() if not rule.swept_entities}
    for name in names:
        if name in effects:
            raise UserError(f"rule {name} is one of kind {effects[name].kind}: it acts on changes. {NOTHING_THERE}")
    kept = select_rules(rules, names)
    if before is not None:
        prints = fingerprints.compute_rule_fingerprints(rules)
        new = frozenset(title for title, digest in prints.items() if before.get(title) != digest)
        return frozenset(name for name in kept if rules.rules[name].title in new), new
    if not kept:
        raise UserError(f"all rules are of kinds that act on changes. {NOTHING_THERE}")
    return kept, list_titles(rules, kept) | (frozenset() if names else frozenset(effects))


def list_titles(rules: Rules, names: Iterable[str]) -> frozenset[str]:
    return frozenset(rules.rules[name].title for name in names)


def list_waiting_titles(rules: Rules, store: Store) -> frozenset[str]:
    """List the titles of the rules whose books are not complete. Raises StoreError."""
    return frozenset(
        rule.title for rule in run_work(read_incomplete_books(rules), World(store, NULL_PORTS, NULL_PORTS))
    )


def note_applied_rules(documents: State, rules: Rules, titles: Iterable[str]) -> None:
    """Save that these rules, as they are now, were applied. What the state holds of other rules stays, and so does
    their time.
    """
    prints = fingerprints.compute_rule_fingerprints(rules)
    done = {title: prints[title] for title in titles}
    if done:
        gone = {former for title, (former, _) in fingerprints.map_former_titles(rules).items() if title in done}
        known = {title: digest for title, digest in read_applied_fingerprints(documents).items() if title not in gone}
        others = (known.keys() & list_titles(rules, rules.keeper_names)) - done.keys()
        before = read_applied_time(documents) if others else None
        save_applied_fingerprints(documents, known | done, before or load_beginning(documents))
