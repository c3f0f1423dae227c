"""Chooses among findings: one explanation for each attribute, each copy along its shortest link, and no circle.

Invariant: an attribute is written by at most one rule that is chosen, and no chosen rules cause each other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from sync_rules.extras.discover.propose.candidates import Finding
from sync_rules.extras.discover.propose.evidence import GRADES
from sync_rules.extras.discover.propose.frames import Column, Frame

MANY: Final = 1.2  # targets of a source: with one each, the source may be the copy
AS_GOOD: Final = 0.005  # of the items: findings that differ by less agree as well


def chosen(findings: Sequence[Finding]) -> list[Finding]:
    """The findings that become rules, those that stand as comments among them."""
    by_column: dict[int, list[Finding]] = defaultdict(list)
    doubles = _mirrors(findings)
    mirrored = {id(one.target) for one in doubles}
    others = (one for one in findings if one.kind != "mirror" or one.grade == "weak")
    findings = [one for one in others if not _is_of_mirror(one, doubles)]
    for finding in findings:
        if finding.grade != "none":
            for column in finding.writes:
                by_column[id(column)].append(finding)
    first = {key: max(each, key=_score) for key, each in by_column.items()}
    derived = {key for key, finding in first.items() if finding.is_likely}
    taken: list[Finding] = []
    for each in by_column.values():
        best = _best(each, derived, mirrored)
        if best not in taken:
            taken.append(best)
    return _without_circles([*doubles, *_without_parts(_one_writer(taken))])


def _mirrors(findings: Sequence[Finding]) -> list[Finding]:
    """The mirrors: of two entities that mirror each other the one whose source tells more, and none of a mirror."""
    sure = [one for one in findings if one.kind == "mirror" and one.grade == "sure"]
    taken: list[Finding] = []
    for one in sorted(sure, key=lambda each: (-_told(each.source), -each.rate)):
        if not any(other.target in (one.target, one.source) or other.source is one.target for other in taken):
            taken.append(one)
    return taken


def _told(frame: Frame) -> float:
    """The attributes of an item, on average."""
    return sum(one.profile.count for one in frame.columns if not one.is_field) / max(frame.rows, 1)


def _is_of_mirror(finding: Finding, doubles: Sequence[Finding]) -> bool:
    """True for what a mirror writes itself, and for what would write its source from it."""
    for one in doubles:
        if any(column in one.writes for column in finding.writes):
            return True
        if finding.source is one.target and finding.target is one.source:
            return True
    return False


def _score(finding: Finding) -> tuple[float, ...]:
    return finding.weight, finding.rate, finding.named, -finding.plainness


def _best(findings: Sequence[Finding], derived: Collection[int], mirrored: Collection[int]) -> Finding:
    """The finding that explains an attribute best: of those that agree as well, the one from the original."""
    top = max(one.weight for one in findings)
    known = [one for one in findings if one.weight >= min(top, GRADES["likely"])]
    most = max(one.rate for one in known)
    good = [one for one in known if one.rate >= most - AS_GOOD]

    def rank(finding: Finding) -> tuple[float, ...]:
        original = id(finding.source) not in mirrored and not any(id(column) in derived for column in finding.reads)
        return (
            -finding.plainness // 10,
            _is_listable(finding),
            original,
            finding.named,
            finding.weight,
            -finding.plainness,
            finding.rate,
            finding.checked,
        )

    return max(good, key=rank)


def _is_listable(finding: Finding) -> bool:
    """False for one whose link lies in a map, where no index reaches it."""
    return finding.join is None or all(len(column.road) == 1 for column in finding.join.columns)


def _one_writer(findings: Sequence[Finding]) -> list[Finding]:
    """The findings, without those of which another one writes an attribute too, and explains more."""
    taken: dict[int, Finding] = {}
    kept = []
    for finding in sorted(findings, key=lambda one: (-len(one.writes), -one.weight, -one.rate)):
        if not any(id(column) in taken for column in finding.writes):
            kept.append(finding)
            taken |= {id(column): finding for column in finding.writes}
    return kept


def _without_parts(findings: Sequence[Finding]) -> list[Finding]:
    """The findings, without those for what lies inside a map that another one explains whole."""
    whole = {
        (id(column.frame), column.road): finding
        for finding in findings
        if finding.is_likely
        for column in finding.writes
    }

    def lies_inside(column: Column, finding: Finding) -> bool:
        outer = (whole.get((id(column.frame), column.road[:end])) for end in range(1, len(column.road)))
        return any(one is not None and one is not finding for one in outer)

    return [one for one in findings if not any(lies_inside(column, one) for column in one.writes)]


# ---------------------------------------------------------------- circles
def _without_circles(findings: Sequence[Finding]) -> list[Finding]:
    """The findings, without the one that says least of each circle of attributes that would write each other."""
    kept = list(findings)
    while circle := _circle(kept):
        last = min(circle, key=_direction)
        kept.remove(last)
        match [one for one in circle if one is not last]:
            case [other] if other.join and _direction(other)[:3] == _direction(last)[:3]:  # two that write each other
                other.remarks.append(f"{last.writes[0].shown} may be the copy and {other.writes[0].shown} the source")
    return kept


def _direction(finding: Finding) -> tuple[float, ...]:
    """Weigh this direction of a copy between items that name each other: names, then the source that tells more."""
    told, theirs = _told(finding.source), _told(finding.target)
    several = 2 if finding.kind == "mirror" else finding.join is None or finding.join.each > MANY
    return several, finding.weight, finding.named, finding.source.rows, told - theirs, -len(finding.reads)


def _circle(findings: Iterable[Finding]) -> list[Finding]:
    """The findings of a circle; empty without one."""
    writers: dict[int, Finding] = {id(column): one for one in findings for column in one.writes}
    done: set[int] = set()

    def walk(finding: Finding, way: list[Finding]) -> list[Finding]:
        if finding in way:
            return way[way.index(finding) :]
        if id(finding) in done:
            return []
        for column in finding.reads:
            writer = writers.get(id(column))
            if writer is not None and writer is not finding:
                circle = walk(writer, [*way, finding])
                if circle:
                    return circle
        done.add(id(finding))
        return []

    for finding in findings:
        circle = walk(finding, [])
        if circle:
            return circle
    return []
