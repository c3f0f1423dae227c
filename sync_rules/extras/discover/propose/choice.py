"""Leads, which may become rules, and the choice among them: one for each attribute, along its shortest link, in no
circle.

Invariant: the module that makes a lead judges it once, and the choice changes no figure. At most one chosen lead writes
an attribute, and no chosen leads cause each other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sync_rules.extras.discover.propose.evidence import GRADES, Grade
from sync_rules.extras.discover.propose.frames import Column, Frame
from sync_rules.extras.discover.propose.link_search import Join

EXAMPLES: Final = 5  # of a lead
MANY: Final = 1.2  # targets of a source: with one each, the source may be the copy
AS_GOOD: Final = 0.005  # of the items: leads that differ by less agree as well


@dataclass(eq=False)
class Lead:
    """A possible rule. `writes` are the columns that it explains, `reads` the columns that it is made from."""

    kind: str
    source: Frame
    target: Frame
    writes: tuple[Column, ...]
    reads: tuple[Column, ...]
    rule: Mapping[str, Any]
    grade: Grade
    checked: int
    agree: int
    orphans: int = 0
    sources: int = 0
    join: Join | None = None
    plainness: int = 0  # less is plainer: what is preferred among leads that agree as well
    spoke_for: list[str] = field(default_factory=list)
    spoke_against: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)
    examples: tuple[str, ...] = ()  # keys of items that differ
    named: float = 0.0
    overwrites: int = 0  # values that a backfill would replace or remove

    def hold_back(self, why: str) -> None:
        """Make the lead a comment with the reason."""
        self.grade = "weak"
        self.spoke_against.append(why)

    @property
    def differ(self) -> int:
        return self.checked - self.agree

    @property
    def rate(self) -> float:
        return self.agree / self.checked if self.checked else 0.0

    @property
    def weight(self) -> int:
        """The grade as a number, to compare by."""
        return GRADES[self.grade]

    @property
    def is_likely(self) -> bool:
        """True if the lead becomes a rule; otherwise it becomes a comment."""
        return self.weight >= GRADES["likely"]

    def __repr__(self) -> str:
        return f"{self.kind} {dict(self.rule)} {self.agree}/{self.checked} {self.grade}"


def select_examples(keys: Iterable[str]) -> tuple[str, ...]:
    """Return the keys to keep as examples: the first in their order."""
    return tuple(sorted(keys)[:EXAMPLES])


def choose(leads: Sequence[Lead]) -> list[Lead]:
    """Choose the leads that become rules or comments."""
    by_column: dict[int, list[Lead]] = defaultdict(list)
    doubles = _choose_mirrors(leads)
    mirrored = {id(one.target) for one in doubles}
    others = (one for one in leads if one.kind != "mirror" or one.grade == "weak")
    leads = [one for one in others if not _is_of_mirror(one, doubles)]
    for lead in leads:
        if lead.grade != "none":
            for column in lead.writes:
                by_column[id(column)].append(lead)
    first = {key: max(each, key=_score) for key, each in by_column.items()}
    derived = {key for key, lead in first.items() if lead.is_likely}
    taken: list[Lead] = []
    for each in by_column.values():
        best = _choose_best(each, derived, mirrored)
        if best not in taken:
            taken.append(best)
    left = _drop_parts(_keep_one_writer(taken))
    _hold_back_doubtful_links(left)
    comments = [one for one in left if not one.is_likely]
    return [*_drop_circles([*doubles, *(one for one in left if one.is_likely)]), *comments]


def _hold_back_doubtful_links(leads: Sequence[Lead]) -> None:
    """Hold back copies of sources that items name by an attribute which may be wrong itself."""
    doubtful = {id(one.writes[0]): one for one in leads if one.kind == "copy" and not one.is_likely and one.overwrites}
    for lead in leads:
        for column in lead.join.columns if lead.join is not None and lead.kind == "copy" and lead.overwrites else ():
            other = doubtful.get(id(column))
            if other is not None and lead.is_likely and "mode" not in lead.rule:
                lead.hold_back(f"{column.path} may be wrong itself: it is not {other.reads[0].column_name} for all")


def _choose_mirrors(leads: Sequence[Lead]) -> list[Lead]:
    """The mirrors: of two entities that mirror each other the one whose source tells more, and none of a mirror."""
    sure = [one for one in leads if one.kind == "mirror" and one.grade == "sure"]
    taken: list[Lead] = []
    for one in sorted(sure, key=lambda each: (-_count_attributes(each.source), -each.rate)):
        if not any(other.target in (one.target, one.source) or other.source is one.target for other in taken):
            taken.append(one)
    return taken


def _count_attributes(frame: Frame) -> float:
    """The attributes of an item, on average."""
    return sum(one.profile.count for one in frame.columns if not one.is_field) / max(frame.rows, 1)


def _is_of_mirror(lead: Lead, doubles: Sequence[Lead]) -> bool:
    """True for what a mirror writes itself, and for what would write its source from it."""
    for one in doubles:
        if any(column in one.writes for column in lead.writes):
            return True
        if lead.source is one.target and lead.target is one.source:
            return True
    return False


def _score(lead: Lead) -> tuple[float, ...]:
    return lead.weight, lead.rate, lead.named, -lead.plainness


def _choose_best(leads: Sequence[Lead], derived: Collection[int], mirrored: Collection[int]) -> Lead:
    """The lead that explains an attribute best: of those that agree as well, the one from the original."""
    top = max(one.weight for one in leads)
    known = [one for one in leads if one.weight >= min(top, GRADES["likely"])]
    most = max(one.rate for one in known)
    good = [one for one in known if one.rate >= most - AS_GOOD]

    def rank(lead: Lead) -> tuple[float, ...]:
        original = id(lead.source) not in mirrored and not any(id(column) in derived for column in lead.reads)
        return (
            -lead.plainness // 10,
            _is_listable(lead),
            original,
            lead.named,
            lead.weight,
            -lead.plainness,
            lead.rate,
            lead.checked,
        )

    return max(good, key=rank)


def _is_listable(lead: Lead) -> bool:
    """False for one whose link lies in a map, where no index reaches it."""
    return lead.join is None or all(len(column.road) == 1 for column in lead.join.columns)


def _keep_one_writer(leads: Sequence[Lead]) -> list[Lead]:
    """One lead for each attribute: of two that write the same attribute, the one that explains more stays."""
    taken: dict[int, Lead] = {}
    kept = []
    for lead in sorted(leads, key=lambda one: (-len(one.writes), -one.weight, -one.rate)):
        if not any(id(column) in taken for column in lead.writes):
            kept.append(lead)
            taken |= {id(column): lead for column in lead.writes}
    return kept


def _drop_parts(leads: Sequence[Lead]) -> list[Lead]:
    """The leads, without those for what lies inside a map that another one explains whole."""
    whole = {(id(column.frame), column.road): lead for lead in leads if lead.is_likely for column in lead.writes}

    def lies_inside(column: Column, lead: Lead) -> bool:
        outer = (whole.get((id(column.frame), column.road[:end])) for end in range(1, len(column.road)))
        return any(one is not None and one is not lead for one in outer)

    return [one for one in leads if not any(lies_inside(column, one) for column in one.writes)]


# ---------------------------------------------------------------- circles
def _drop_circles(leads: Sequence[Lead]) -> list[Lead]:
    """The leads, without the one that says least of each circle of attributes that would write each other."""
    kept = list(leads)
    while circle := _find_circle(kept):
        last = min(circle, key=_weigh_direction)
        kept.remove(last)
        match [one for one in circle if one is not last]:
            case [other] if (
                other.join and _weigh_direction(other)[:3] == _weigh_direction(last)[:3]
            ):  # two that write each other
                other.remarks.append(
                    f"{last.writes[0].column_name} may be the copy and {other.writes[0].column_name} the source"
                )
    return kept


def _weigh_direction(lead: Lead) -> tuple[float, ...]:
    """Weigh this direction of a copy between items that name each other: names, then the source that tells more."""
    told, theirs = _count_attributes(lead.source), _count_attributes(lead.target)
    several = 2 if lead.kind == "mirror" else lead.join is None or lead.join.each > MANY
    return several, lead.weight, lead.named, lead.source.rows, told - theirs, -len(lead.reads)


def _find_circle(leads: Iterable[Lead]) -> list[Lead]:
    """The leads of a circle; empty without one."""
    writers: dict[int, Lead] = {id(column): one for one in leads for column in one.writes}
    done: set[int] = set()

    def walk(lead: Lead, way: list[Lead]) -> list[Lead]:
        if lead in way:
            return way[way.index(lead) :]
        if id(lead) in done:
            return []
        for column in lead.reads:
            writer = writers.get(id(column))
            if writer is not None and writer is not lead:
                circle = walk(writer, [*way, lead])
                if circle:
                    return circle
        done.add(id(lead))
        return []

    for lead in leads:
        circle = walk(lead, [])
        if circle:
            return circle
    return []
