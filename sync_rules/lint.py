"""What is wrong between rules that are each well written: two writers, cycles, copies into keys, doubtful cost.

Law: one lint is one generator over compiled rules; it knows nothing of YAML but the spots. `LINTS` is all of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from graphlib import CycleError, TopologicalSorter
from itertools import combinations, pairwise

from sync_rules.attributes import Path, overlaps, show_path
from sync_rules.entities import Entity
from sync_rules.keys import may_overlap
from sync_rules.problems import Problem, Report, errors
from sync_rules.rules import CopyRule, Rules, causes
from sync_rules.yamlspots import Document

Lint = Callable[[Rules, Document], Iterator[Problem]]
QUOTED_NAME = re.compile(r'"([A-Za-z_][A-Za-z0-9_]*)"')  # which needs no quotes


def lint(rules: Rules, document: Document, report: Report) -> None:
    """Add what every lint finds. What is unused is only said of a file that has no errors, which may be the reason."""
    for each in LINTS:
        for problem in each(rules, document):
            report.add(problem.code, problem.spot, problem.message, problem.cure)
    if not errors(report.problems):
        for problem in unused(rules, document):
            report.add(problem.code, problem.spot, problem.message, problem.cure)


def attribute(entity: Entity, path: Path) -> str:
    """A path with its entity, as the rules file spells it."""
    return f"{entity.name}.{show_path(path)}"


# ---------------------------------------------------------------- writers
def two_writers(rules: Rules, document: Document) -> Iterator[Problem]:
    """No two copies of one entity overlap, be they of two rules or of one."""
    writers = [(rule, index, path) for rule in rules.rules.values() for index, path in enumerate(rule.copies)]
    for (one, _, left), (two, _, right) in combinations(writers, 2):
        if one.target != two.target or not overlaps(left, right):
            continue
        what = attribute(two.target, right)
        spot = document.value("rules", two.name, "into")
        if one is two:
            yield Problem("SR301", f"{what} is written twice by this rule", spot)
            continue
        line = document.value("rules", one.name, "into").line
        inside = "" if left == right else f" as {attribute(one.target, left)}"
        yield Problem("SR301", f"{what} is written by rule {one.name} in line {line} already{inside}", spot)


def key_writers(rules: Rules, document: Document) -> Iterator[Problem]:
    """No copy goes into the table's key; into an index key only whole, and with a warning."""
    for rule in rules.rules.values():
        table = rule.target.table
        spot = document.value("rules", rule.name, "into")
        keys = {a.name for a in table.key}
        for path in rule.copies:
            what = attribute(rule.target, path)
            if path[0] in keys:
                yield Problem("SR302", f"{what} is part of the key of table {table.name!r}", spot)
                continue
            for index in table.indexes:
                if path[0] in {a.name for a in index.attributes}:
                    yield Problem("SR403", f"{what} is part of the key of index {index.name!r}", spot)


def own_reads(rules: Rules, document: Document) -> Iterator[Problem]:
    """No rule writes what tells it which source to copy from, or whether."""
    for rule in rules.rules.values():
        spot = document.value("rules", rule.name, "into")
        for path in rule.copies:
            what = attribute(rule.target, path)
            if any(overlaps(path, link) for link in rule.link_paths):
                yield Problem("SR303", f"{what} is what links {rule.target.name!r} to {rule.source.name!r}", spot)
            if any(overlaps(path, read) for read in rule.where_paths):
                yield Problem("SR304", f"{what} is what `where` decides by", spot)


def deletes(rules: Rules, document: Document) -> Iterator[Problem]:
    """No rule asks a source that is gone whether its targets go too."""
    for rule in rules.rules.values():
        if rule.on_delete == "delete" and rule.where is not None and rule.where.source_paths:
            read = attribute(rule.source, rule.where.source_paths[0])
            yield Problem(
                "SR307", f"{read} cannot be read once it is deleted", document.value("rules", rule.name, "where")
            )


def slips(rules: Rules, document: Document) -> Iterator[Problem]:
    """What is sound in a `where`, and hardly meant."""
    for rule in rules.rules.values():
        if rule.where is None:
            continue
        spot = document.value("rules", rule.name, "where")
        for quoted in QUOTED_NAME.findall(rule.where.text):
            yield Problem("SR410", f"\"{quoted}\" is the attribute {quoted}: for the text, write '{quoted}'", spot)
        for (name,) in rule.where.target_paths:
            if f"{name}." in rule.where.text and get_close_matches(name, [rule.source.name]):
                what = f"{name!r} is a map of {rule.target.name!r}. Did you mean {rule.source.name!r}?"
                yield Problem("SR411", what, spot)


# ---------------------------------------------------------------- cycles
Node = tuple[str, int]  # one pair of a rule's mapping


def cycles(rules: Rules, document: Document) -> Iterator[Problem]:
    """No copy causes itself through other copies, their links or their conditions. Each cycle is drawn."""
    nodes: dict[Node, CopyRule] = {
        (rule.name, index): rule for rule in rules.rules.values() for index in range(len(rule.mapping))
    }
    after: dict[Node, set[Node]] = {
        effect: {cause for cause in nodes if causes(nodes[cause], cause[1], rule, effect[1])}
        for effect, rule in nodes.items()
    }
    while True:
        try:
            TopologicalSorter(after).prepare()
        except CycleError as error:
            circle: list[Node] = list(error.args[1])
        else:
            return
        yield _drawn(circle, nodes, document)
        for cause, effect in pairwise(circle):  # taken apart, so that the next cycle can be found
            after[effect].discard(cause)


def _drawn(circle: list[Node], nodes: dict[Node, CopyRule], document: Document) -> Problem:
    written = [attribute(nodes[node].target, nodes[node].copies[node[1]]) for node in circle]
    names = list(dict.fromkeys(name for name, _ in circle))
    last = max(names, key=lambda name: document.value("rules", name).line)
    spot = document.value("rules", last, "into")
    if len(circle) == 2:  # noqa: PLR2004 - a circle of one: it begins and ends with the same pair
        rule = nodes[circle[0]]
        written.insert(0, attribute(rule.source, rule.mapping[circle[0][1]][0]))
        written = written[:2]
    return Problem("SR305", f"{' -> '.join(written)} (rules {', '.join(names)})", spot)


# ---------------------------------------------------------------- entities
def same_items(rules: Rules, document: Document) -> Iterator[Problem]:
    """No key is of two entities."""
    for one, two in combinations(rules.entities.values(), 2):
        if one.table == two.table and all(
            may_overlap(one.templates[a.name], two.templates[a.name]) for a in one.table.key
        ):
            message = f"a key of table {one.table.name!r} may be of {one.name!r} and of {two.name!r}"
            yield Problem("SR306", message, document.value("entities", two.name, "key"))


def unused(rules: Rules, document: Document) -> Iterator[Problem]:
    """Entities without a rule and tables without an entity."""
    used = {entity.name for rule in rules.rules.values() for entity in (rule.source, rule.target)}
    for name in rules.entities:
        if name not in used:
            yield Problem("SR406", f"no rule reads or writes {name!r}", document.key("entities", name))
    tables = {entity.table.name for entity in rules.entities.values()}
    for name in rules.tables:
        if name not in tables:
            yield Problem("SR407", f"no entity is in {name!r}", document.key("tables", name))


# ---------------------------------------------------------------- cost
def costs(rules: Rules, document: Document) -> Iterator[Problem]:
    """What works, and is dearer or later than it looks."""
    for rule in rules.rules.values():
        spot = document.value("rules", rule.name, "into")
        for index in rule.target.table.indexes:
            shown = index.projection if isinstance(index.projection, tuple) else ()
            keys = {a.name for a in index.attributes}
            hit = [p for p in rule.copies if p[0] not in keys and (index.projection == "all" or p[0] in shown)]
            if hit:
                names = ", ".join(attribute(rule.target, path) for path in hit)
                yield Problem("SR401", f"{names} is projected into index {index.name!r}", spot)
        if rule.find.index and not rule.settle_seconds:
            message = f"targets are found through index {rule.find.index!r}, and settle_seconds is 0"
            yield Problem("SR402", message, document.value("rules", rule.name, "settle_seconds"))
        if rule.strict:
            message = f"each copy of {rule.source.name!r} is a transaction"
            yield Problem("SR404", message, document.value("rules", rule.name, "strict"))


LINTS: tuple[Lint, ...] = (same_items, two_writers, key_writers, own_reads, deletes, slips, cycles, costs)
