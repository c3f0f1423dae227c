"""A proposal for people and machines: entities, rules with their evidence, and what was looked at for an attribute.

Invariant: nothing here says a value of an item. Keys name items, as everywhere. A rule with a condition names what it
compares with.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rich.console import Console
from rich.table import Table as Grid

from sync_rules.cli.show.console import make_grid
from sync_rules.cli.show.text import format_count
from sync_rules.extras.discover.propose.proposal import Candidate, Proposal, Proposed, ProposedEntity, ProposedTable
from sync_rules.extras.discover.propose.proposal_writer import LEDGER, needs_ledger
from sync_rules.model.errors import UserError
from sync_rules.model.suggest import explain_unknown_name

ENTITIES_SHOWN_MAX: Final = 12
NEARLY_ALL: Final = 99.0  # percent: above, a second digit tells how few differ
SHORT_OF_ALL: Final = 99.99


@dataclass(frozen=True)
class ShownProposal:
    """A proposal with its rules file."""

    proposal: Proposal
    text: str

    @property
    def active_rules(self) -> list[Proposed]:
        """The rules that are written as rules."""
        return [rule for rule in self.proposal.rules if rule.held_back is None]

    @property
    def commented_rules(self) -> list[Proposed]:
        """The rules that are written as comments."""
        return [rule for rule in self.proposal.rules if rule.held_back is not None]

    @property
    def headline(self) -> str:
        if not self.proposal.rules:
            return f"nothing found, because {self.proposal.nothing_because.rstrip('.') or 'no rule holds'}"
        more = f", {len(self.commented_rules)} held back" if self.commented_rules else ""
        differ = sum(rule.differ for rule in self.active_rules)
        drift = f"; {format_count(differ, 'target differs', 'targets differ')}" if differ else ""
        return f"{format_count(len(self.active_rules), 'rule')} proposed{more}{drift}"

    # ------------------------------------------------------------ for people
    def print(self, console: Console) -> None:
        if self.active_rules:
            print(f"{self.proposal.overwritten}\n")
        for table in self.proposal.tables:
            print(format_entities(table))
        for name in self.proposal.without_items:
            print(f"table {name}: left out, for its export has no items")
        if self.proposal.rules:
            print()
            console.print(self._make_grid())
            for rule in self.commented_rules:
                print(f"held back: {rule.name}: {rule.held_back}")
            for line in (*list_missing_indexes(self.proposal.rules), *self._list_missing_tables()):
                print(line)
            print()
        print(self.headline)

    def _make_grid(self) -> Grid:
        table = make_grid(["rule", "is", "confidence"], ["checked", "agree", "differ", "orphans", "agreement"])
        for rule in (*self.active_rules, *self.commented_rules):
            numbers = (f"{number:,}" for number in (rule.checked, rule.agree, rule.differ, rule.orphans))
            word = rule.confidence if rule.held_back is None else "held back"
            style = None if rule.held_back is None else "dim"
            table.add_row(rule.name, rule.kind, word, *numbers, format_percent(rule), style=style)
        return table

    def _list_missing_tables(self) -> Iterator[str]:
        """Yield the cure if a rule needs the ledger, and no table of the data is one."""
        names = [rule.name for rule in self.active_rules if needs_ledger(rule)]
        if names and not any(table.name == LEDGER for table in self.proposal.tables):
            why = "plan, backfill and verify refuse the file until it exists: sync-rules tables create FILE"
            yield f"table to make: {LEDGER} for {', '.join(names)}; {why}"

    # ------------------------------------------------------------ for machines
    def as_json(self) -> dict[str, Any]:
        """Return the whole proposal, ready for JSON, without the candidates that became no rule."""
        proposal = self.proposal
        return {
            "tables": [_make_table_row(table) for table in proposal.tables],
            "without_items": list(self.proposal.without_items),
            "overwrites": sum(rule.overwrites for rule in self.active_rules),
            "rules": [_make_rule_row(rule) for rule in proposal.rules],
            "links": [
                {
                    "source": link.source, "target": link.target, "fields": [list(pair) for pair in link.fields],
                    "targets": link.targets, "held": link.held, "reached": link.reached,
                }
                for link in proposal.links
            ],
            "nothing_because": proposal.nothing_because,
            "file": self.text,
        }  # fmt: skip


def _make_rule_row(rule: Proposed) -> dict[str, Any]:
    return {
        **{name: getattr(rule, name) for name in ("name", "kind", "rule", "source", "target")},
        **{name: getattr(rule, name) for name in ("checked", "agree", "differ", "orphans", "sources", "overwrites")},
        "agreement": round(rule.agreement, 6),
        "confidence": rule.confidence,
        "held_back": rule.held_back,
        "index": rule.index and {"table": rule.index.table, "name": rule.index.name, "yaml": rule.index.text},
        "remarks": list(rule.remarks),
        "examples": [{"key": key} for key in rule.examples],
    }


def format_percent(rule: Proposed) -> str:
    """Return the agreement as a percentage: never 100 % while something differs."""
    if not rule.checked:
        return ""
    share = 100 * rule.agreement
    if not rule.differ:
        return f"{share:.0f} %"
    if share > NEARLY_ALL:
        return f"{min(share, SHORT_OF_ALL):.2f} %"
    return f"{share:.1f} %"


def format_entities(table: ProposedTable) -> str:
    """Return a table with its entities and their item counts as a line, the largest first."""
    most = sorted(table.entities, key=lambda one: (-one.items, one.name))
    named = [f"{entity.name} {entity.items:,}" for entity in most[:ENTITIES_SHOWN_MAX]]
    more = len(most) - ENTITIES_SHOWN_MAX
    unknown = table.items - sum(entity.items for entity in most)
    rest = [*([f"and {more} more"] if more > 0 else []), *([f"{unknown:,} of no entity"] if unknown else [])]
    listed = ", ".join([*named, *rest])
    return f"table {table.name}: {format_count(table.items, 'item')}{f': {listed}' if listed else ''}"


def list_missing_indexes(rules: Iterable[Proposed]) -> Iterator[str]:
    """Yield a line for each index that some rules need and their table lacks."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for rule in rules:
        if rule.index is not None:
            found.setdefault((rule.index.table, rule.index.name, rule.index.text), []).append(rule.name)
    for (table, name, text), names in found.items():
        yield f"index to add: table {table}, {name}: {text} for {', '.join(names)}"


def _list_attributes(entity: ProposedEntity) -> Iterable[str]:
    """The names of an entity's attributes. What is in them may be named by values, such as the entries of a map."""
    return dict.fromkeys(name.partition(".")[0] for name in entity.attributes)


def _make_table_row(table: ProposedTable) -> dict[str, Any]:
    return {
        "name": table.name,
        "physical": table.found.physical,
        "items": table.items,
        "checks": list(table.checks),
        "entities": [
            {
                "name": entity.name,
                "items": entity.items,
                "key": dict(entity.key),
                "attributes": list(_list_attributes(entity)),
                "checks": list(entity.checks),
            }
            for entity in table.entities
        ],
    }


# ---------------------------------------------------------------- why
RULE: Final = re.compile(r"(?:([a-z]+) )?(\S+) into (\S+)")


def list_candidates(proposal: Proposal, asked: str) -> list[Candidate]:
    """List what was compared for an attribute (`order.user_name` or `user_name`), or for a rule (`copy user.name into
    order.user_name`). Those that became rules come first.

    Raises:
        UserError: if no item has the attribute.
    """
    rule = RULE.fullmatch(asked)
    attribute = rule[3] if rule else asked

    def is_meant(name: str) -> bool:
        entity, _, path = name.partition(".")
        return attribute in (name, path) or (attribute == entity and bool(path))

    names = [f"{entity.name}.{name}" for entity in proposal.entities for name in entity.attributes]
    known = [f"{entity.name}.{name}" for entity in proposal.entities for name in _list_attributes(entity)]
    found = [one for one in proposal.candidates if is_meant(one.target)]
    if not found and not any(map(is_meant, names)):
        raise UserError(f"--why {attribute}: {explain_unknown_name('attribute', attribute, known)}")
    if rule:
        sources = (rule[2], f"{rule[2]}.")
        found = [one for one in found if one.kind == (rule[1] or one.kind) and f"{one.source}.".startswith(sources)]
    return sorted(found, key=lambda one: (not one.taken, one.target, one.source))


def list_why_lines(proposal: Proposal, asked: str, found: Sequence[Candidate]) -> Iterator[str]:
    """Yield the candidates in words: the evidence for and against each. Without candidates, yield what was missing."""
    held_back = {one.name: one.held_back for one in proposal.rules}
    if not found:
        yield f"{asked}: {_explain_absence(proposal, asked)}"
    for one in found:
        reason = held_back.get(one.rule)
        state = "not proposed" if not one.taken else f"a comment, for {reason}" if reason else "proposed"
        yield f"{one.target} · {one.kind} of {one.source}: {state}"
        yield from (f"  for: {reason}" for reason in one.spoke_for)
        yield from (f"  against: {reason}" for reason in one.spoke_against)
        if one.figures:
            yield f"  {', '.join(f'{name} {_format_figure(value)}' for name, value in one.figures.items())}"


def _explain_absence(proposal: Proposal, asked: str) -> str:
    """The reason why nothing was compared for an attribute or a rule."""
    rule = RULE.fullmatch(asked)
    ends = {rule[2].partition(".")[0], rule[3].partition(".")[0]} if rule else set()
    links = [one for one in proposal.links if {one.source, one.target} == ends]
    if not rule or len(ends) == 1:
        return "nothing was looked at: no other values are like its own"
    if not links:
        return f"nothing was compared: no attribute of {' or '.join(sorted(ends))} names items of the other"
    fields = ", ".join(f"{one.target}.{path}" for one in links for _, path in one.fields)
    return f"too few values agree by {fields}: less than chance, or less than a third of a sample"


def make_why_rows(found: Sequence[Candidate]) -> list[dict[str, Any]]:
    return [
        {
            **{name: getattr(one, name) for name in ("target", "source", "kind", "taken", "rule")},
            "for": list(one.spoke_for),
            "against": list(one.spoke_against),
            "figures": dict(one.figures),
        }
        for one in found
    ]


def _format_figure(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:.3f}"
