"""Write a proposal as a rules file: each rule with its evidence, the uncertain rules as comments with the reason.

Invariant: the text passes `check`. A rule that `check` refuses is a comment with check's message. A missing index is
written with a `# CHECK:`, so that the file is right once you add it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from sync_rules.extras.discover.imports.identifiers import split_words
from sync_rules.extras.discover.imports.imported_model import FoundEntity, FoundTable
from sync_rules.extras.discover.imports.normalization import SettledEntity, SettledModel, SettledTable
from sync_rules.extras.discover.imports.rules_writer import (
    EDITOR_LINE,
    LINE_MAX,
    format_flow,
    format_scalar,
    join_lines,
    wrap_comment,
    write_sections,
)
from sync_rules.extras.discover.propose.proposal import MissingIndex, Proposal, Proposed, ProposedTable
from sync_rules.language.load import check_rules
from sync_rules.language.problems import Problem, list_errors
from sync_rules.model.entities import Index, KeyAttribute

ADVICE: Final = re.compile(r"add an index under tables\.([^.]+)\.indexes: ([A-Za-z0-9_.-]+): (\{[^;(]*\})")
MORE: Final = ("an index cannot reach into a map", "outside its key")  # cures that ask for more than an index
NEEDED: Final = re.compile(r"say entities\.([^.]+)\.required: \[([^\],]+)\]")
TYPED: Final = re.compile(r'"?([^\s"{}:,]+)"?: ([SNB])\b')
OPTIONS_MAX: Final = 3  # of a rule in one line: more are easier to read one below the other
INDEXES_MAX: Final = 20  # global ones of a table, without asking AWS for more
SENTENCES: Final = frozenset({"copy", "count", "sum", "mean", "min", "max", "mirror", "collect"})
LEDGER: Final = "ledger"
LEDGER_CHECK: Final = (
    "counters and values are booked here. plan, backfill and verify refuse this file until the table exists: make it "
    "with sync-rules tables create, or by the template"
)
WORDS: Final = re.compile(r"[^\W_]+")
SLOTS: Final = re.compile(r"(\{[^}]*\})")
HIDDEN: Final = "it has a text that your items share, which … stands for: --values writes it"
NOTHING: Final = "rules: {}"


def write_proposal(proposal: Proposal, head: str = "data") -> str:
    """The rules file of a proposal from `settle_proposal`. `head` says what it was made from."""
    settled = _settle(proposal)
    top = f"# Proposed from {join_lines(head)}. Nothing is applied yet: look at each rule, then run sync-rules plan."
    left_out = [f"# table {join_lines(name)} is left out: its export has no items" for name in proposal.without_items]
    effect = [f"# {line.strip(' #')}" for line in wrap_comment(proposal.overwritten)]
    body = [EDITOR_LINE, *effect, top, *left_out, *write_sections(settled)]
    kept = [one for one in proposal.rules if one.held_back is None]
    body.append("rules:" if kept else NOTHING)
    if not proposal.rules:
        body += wrap_comment(f"Nothing was found: {proposal.nothing_because or 'no rule holds'}")
    for one in kept:
        body += _list_evidence(one)
        body += _list_rule_lines(one)
    held = [one for one in proposal.rules if one.held_back is not None]
    if held:
        body += ["", "  # Not sure, or not possible as it is. To take one in, remove the # before it:"]
    for one in held:
        body += _list_evidence(one)
        body += [f"  # {line[2:]}" for line in _list_rule_lines(one)]
    return "\n".join(body) + "\n"


def settle_proposal(proposal: Proposal) -> Proposal:
    """Return the proposal with check's results: missing indexes, and rules that must become comments."""
    while True:
        wrong = list_errors(check_rules(write_proposal(proposal), {})[1])
        if not wrong:
            return proposal
        rules = _correct(proposal, wrong)
        if rules == proposal.rules:  # it is not a rule: no rule can stand
            rules = tuple(replace(one, held_back=one.held_back or wrong[0].message) for one in rules)
            if rules == proposal.rules:
                return proposal
        proposal = replace(proposal, rules=rules)


def _correct(proposal: Proposal, wrong: Sequence[Problem]) -> tuple[Proposed, ...]:
    by_rule: dict[str, Problem] = {}
    for problem in wrong:
        match problem.location.key_path:
            case ("rules", str(name), *_):
                by_rule.setdefault(name, problem)
            case ("tables", str(table), "indexes", str(index), *_):
                for one in proposal.rules:
                    if one.index is not None and (one.index.table, one.index.name) == (table, index):
                        by_rule.setdefault(one.name, problem)
    return tuple(_judge(proposal, one, by_rule[one.name]) if one.name in by_rule else one for one in proposal.rules)


def _judge(proposal: Proposal, rule: Proposed, problem: Problem) -> Proposed:
    needed = [] if rule.required else NEEDED.findall(problem.cure or "")
    always = {one.name: one.always for one in proposal.entities}
    if needed and all(name in always.get(entity, ()) for entity, name in needed):
        return replace(rule, required=tuple(name for _, name in needed))
    index = _find_missing_index(problem) if rule.index is None else None
    if index is not None and _has_room(proposal, index):
        return replace(rule, index=index)
    cure = f". Cure: {problem.cure}" if problem.cure else ""
    return replace(rule, held_back=f"{problem.message}{cure}")


def _find_missing_index(problem: Problem) -> MissingIndex | None:
    cure = problem.cure or ""
    match = ADVICE.search(cure)
    only = match is not None and not any(more in cure for more in MORE)
    return MissingIndex(match[1], match[2], match[3]) if match is not None and only else None


def _has_room(proposal: Proposal, index: MissingIndex) -> bool:
    table = next((one for one in proposal.tables if one.name == index.table), None)
    added = {one.index.name for one in proposal.rules if one.index is not None and one.index.table == index.table}
    return table is not None and len(table.found.indexes) + len({*added, index.name}) <= INDEXES_MAX


def hide_texts(proposal: Proposal) -> Proposal:
    """Return the proposal without texts of items: a rule whose formula has such a text becomes a comment without it.
    Words of keys, and names of entities and attributes, are not values.
    """
    names = [text for one in proposal.entities for text in (one.name, one.table, *one.attributes, *one.key.values())]
    known = {word.casefold() for text in names for part in WORDS.findall(text) for word in (part, *split_words(part))}

    def hide(text: str) -> str:
        return WORDS.sub(lambda match: match[0] if match[0].casefold() in known else "…", text)

    def hide_rule(rule: Proposed) -> Proposed:
        made = {
            name: hide(str(rule.rule[name])) for name in ("join", "separator", "ids_separator") if _is_text(rule, name)
        }
        if rule.kind == "derive" and _is_text(rule, "as") and not str(rule.rule["as"]).startswith("ttl("):
            made["as"] = "".join(one if one[:1] == "{" else hide(one) for one in SLOTS.split(str(rule.rule["as"])))
        if all(rule.rule[name] == text for name, text in made.items()):
            return rule
        return replace(rule, rule={**rule.rule, **made}, held_back=rule.held_back or HIDDEN)

    return replace(proposal, rules=tuple(map(hide_rule, proposal.rules)))


def _is_text(rule: Proposed, name: str) -> bool:
    return isinstance(rule.rule.get(name), str)


# ---------------------------------------------------------------- tables and entities
def _settle(proposal: Proposal) -> SettledModel:
    needs = [one for one in proposal.rules if one.held_back is None]
    tables, entities = [], []
    for table in proposal.tables:
        settled_table = _settle_table(table, needs)
        tables.append(settled_table)
        for entity in table.entities:
            found = FoundEntity(entity.name, table.found)
            found.required = [name for one in needs if one.target == entity.name for name in one.required]
            entities.append(SettledEntity(entity.name, settled_table, found, dict(entity.key), list(entity.checks)))
    if any(needs_ledger(one) for one in proposal.rules) and not any(one.name == LEDGER for one in tables):
        found_ledger = FoundTable(LEDGER, LEDGER, (KeyAttribute("PK", "S"), KeyAttribute("SK", "S")))
        tables.append(SettledTable(LEDGER, found_ledger, "", [], [LEDGER_CHECK]))
    return SettledModel(tables, entities)


def needs_ledger(rule: Proposed) -> bool:
    """True for a rule that needs a ledger."""
    values = rule.kind == "collect" and ("." in str(rule.rule["collect"]) or "fields" in rule.rule)
    return (values or rule.kind in ("count", "sum", "mean", "min", "max")) and rule.rule.get("mode") != "recount"


def _settle_table(table: ProposedTable, needs: Sequence[Proposed]) -> SettledTable:
    checks, indexes = list(table.checks), list(table.found.indexes)
    for rule in needs:
        missing = rule.index
        if missing is None or missing.table != table.name or any(one.name == missing.name for one in indexes):
            continue
        keys = tuple(KeyAttribute(name, kind) for name, kind in TYPED.findall(missing.text))
        indexes.append(Index(missing.name, keys))
        checks.append(f"index {missing.name} is not there yet, and {rule.name} needs it: add it to the table")
    physical = "" if table.found.physical == table.name else table.found.physical
    return SettledTable(table.name, table.found, physical, indexes, checks)


# ---------------------------------------------------------------- rules
def _list_evidence(rule: Proposed) -> list[str]:
    said = f"{rule.agree:,} of {rule.checked:,} agree ({rule.agreement:.1%})"
    if rule.differ:
        said += f"; {rule.differ:,} {'differs' if rule.differ == 1 else 'differ'}"
        said += f", e.g. {', '.join(rule.examples[:3])}" if rule.examples else ""
    if rule.orphans:
        said += f"; {rule.orphans:,} name no item"
    parts = [f"{said}; confidence {rule.confidence}"]
    parts += rule.remarks
    if rule.held_back is not None:
        parts.append(f"not taken: {rule.held_back}")
        if rule.index is not None:
            parts.append(f"it needs an index of {rule.index.table}: {rule.index.name}: {rule.index.text}")
    return [line for part in parts for line in wrap_comment(part)]


def _list_rule_lines(rule: Proposed) -> list[str]:
    first = rule.rule.get(rule.kind)
    if rule.kind in SENTENCES and set(rule.rule) == {rule.kind, "into"} and isinstance(first, str):
        sentence = f"{rule.kind} {first} into {rule.rule['into']}"
        line = f"  {rule.name}: {sentence}"
        if not re.search(r"[\"':#{}\[\]&*!|>%@`]", sentence) and len(line) <= LINE_MAX:
            return [line]
    whole = f"  {rule.name}: {_format_yaml(rule.rule)}"
    if len(whole) <= LINE_MAX and len(rule.rule) <= OPTIONS_MAX:
        return [whole]
    return [f"  {rule.name}:", *(f"    {key}: {_format_yaml(value)}" for key, value in rule.rule.items())]


def _format_yaml(value: Any) -> str:
    if isinstance(value, Mapping):
        return format_flow({str(name): _format_yaml(inner) for name, inner in value.items()})
    if isinstance(value, str):
        return format_scalar(value)
    if isinstance(value, Sequence):
        return "[" + ", ".join(_format_yaml(inner) for inner in value) + "]"
    return json.dumps(value)
