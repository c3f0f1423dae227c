"""Rules of kinds `count`, `sum`, `mean`, `min` and `max`: a number on a parent, computed from its items.

With a ledger, NAME.ledger keeps entries and totals, and NAME writes the parent's attribute. A recount lists the items
in the base table only: an index lags about as long as the record that asks for the recount.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

from pydantic import Field

from sync_rules.language import links
from sync_rules.language.compiler import AttributeRef, RuleCompiler
from sync_rules.language.kinds.books import UNLISTED, BookedForm, find_deleted_children, find_ledger_table, make_ledger
from sync_rules.language.kinds.groups import GroupLink, compile_groups
from sync_rules.language.kinds.options import Chosen, Kind, Shards, make_parent_rule
from sync_rules.language.kinds.weights import WeightsOption, compile_weights
from sync_rules.model.entities import Entity, Table
from sync_rules.model.groups import Each
from sync_rules.model.lookups import Link
from sync_rules.model.values import Path, show_path
from sync_rules.model.where import Where
from sync_rules.rules.kinds.counted_rule import Function, Weights
from sync_rules.rules.kinds.rank import RankRule
from sync_rules.rules.kinds.recount import RecountRule
from sync_rules.rules.kinds.tally import TallyRule, TotalRule
from sync_rules.rules.ledger import AMOUNT, Ledger
from sync_rules.rules.rule import Rule

PLACES_MAX = 18
PLACES_DEFAULT = 2
SUMS_MAX = 20  # in one rule: an entry has room for their names and numbers in 1 KB, one write unit
SUM_LEVELS_MAX = 7  # of maps around each: a condition on all of them has at most 4 KB


class GroupForm(BookedForm):
    """The options that all kinds here have in common."""

    link: GroupLink = {}  # type: ignore[assignment]  # wider: a group is not a name
    per: str | None = Field(
        default=None,
        description="An attribute of the items: then a map is kept, with a number for each of its values.",
        examples=["status"],
    )
    mode: Literal["ledger", "recount"] = Field(
        default="ledger",
        description="ledger: exact books in a table of their own, for any number of items. recount: the items are "
        "listed each time, for small groups that the base table lists.",
    )


class ShardedForm(GroupForm):
    """The options that count, sum and mean have in common."""

    shards: Shards = Field(default=1, description="How many totals are kept per parent: for parents that are hot.")


class CountForm(ShardedForm):
    """count: how many items point to their parent."""

    count: str = Field(description="The entity that is counted.", examples=["order"])
    weights: WeightsOption = None
    sums: Chosen | None = Field(
        default=None,
        description="Attributes of the items whose sums the parent holds, too: {attribute: attribute of the parent}. "
        "An item adds to all numbers of the rule with one entry and one total.",
        examples=[["units"], {"total": "revenue"}],
    )


class SumForm(ShardedForm):
    """sum: the total of a number attribute of the items."""

    sum: str = Field(description="The number: entity.attribute.", examples=["order.total"])


class MeanForm(ShardedForm):
    """mean: the mean of a number attribute of the items, rounded."""

    mean: str = Field(description="The number: entity.attribute.", examples=["review.stars"])
    places: int = Field(
        default=PLACES_DEFAULT, ge=0, le=PLACES_MAX, description="The decimal places. A half is rounded away from zero."
    )


class MinForm(GroupForm):
    """min: the least of a number attribute of the items."""

    min: str = Field(description="The number: entity.attribute.", examples=["order.total"])


class MaxForm(GroupForm):
    """max: the greatest of a number attribute of the items."""

    max: str = Field(description="The number: entity.attribute.", examples=["order.total"])


@dataclass(frozen=True)
class CountParts:
    """The parts that both modes are compiled from."""

    function: Function
    child: Entity
    into: AttributeRef
    link: Link
    of: Path | None
    weights: Weights | None
    per: Path | None
    where: Where | None
    shards: int
    places: int | None
    sums: Mapping[Path, Path]


def _compile_count(compiler: RuleCompiler, form: CountForm) -> tuple[Rule, ...]:
    child = compiler.entity(form.count, "count")
    weights = compile_weights(compiler, form.weights, child)
    sums = {} if form.sums is None else _compile_sums(compiler, form, form.sums, child)
    return _compile(compiler, form, "count", child, weights=weights, sums=sums)


def _compile_sums(
    compiler: RuleCompiler, form: CountForm, given: list[str] | dict[str, str], child: Entity | None
) -> dict[Path, Path]:
    """Compile the further sums of a rule: by attribute of the parent, the field of a child."""
    compiler.own(child, given, "sums")
    parent = compiler.known.entities.get(form.into.partition(".")[0])
    for text, name in given.items() if isinstance(given, dict) else ():
        compiler.own(parent, name, "sums", text, written=True)
    pairs = compiler.parse_renames(given, "sums")
    if deep := [into for _, into in pairs if len(into) > SUM_LEVELS_MAX]:
        message = f"{show_path(deep[0])!r} has {len(deep[0])} levels: expected at most {SUM_LEVELS_MAX} for a sum"
        compiler.add("SR106", "sums", message, f"write it less deep, such as {deep[0][0]}.{deep[0][-1]}")
    if len(given) > SUMS_MAX:
        message = f"expected at most {SUMS_MAX} sums, found {len(given)}"
        compiler.add("SR106", "sums", message, "give the others to another rule")
    if form.mode == "recount":
        instead = "{sum: ENTITY.ATTRIBUTE, into: ENTITY.ATTRIBUTE, mode: recount}"
        compiler.refuse("sums", "a recount keeps no entries for sums", f"remove it, and add a rule for each: {instead}")
    if form.per is not None:
        compiler.refuse("per", "a map holds one number for each group, and no sums", "remove it, or remove sums")
    if form.weights is not None:
        compiler.refuse("weights", "weights change the count of an item, and not its sums", "remove it, or remove sums")
    return {into: path for path, into in pairs}


def _compile_function(
    function: Function, compiler: RuleCompiler, form: SumForm | MeanForm | MinForm | MaxForm
) -> tuple[Rule, ...]:
    ref = compiler.resolve(getattr(form, function), function, attribute=True)
    return () if ref is None else _compile(compiler, form, function, ref.entity, of=ref.path)


def _compile(
    compiler: RuleCompiler,
    form: GroupForm,
    function: Function,
    child: Entity | None,
    *,
    of: Path | None = None,
    weights: Weights | None = None,
    sums: Mapping[Path, Path] | None = None,
) -> tuple[Rule, ...]:
    into, per = compiler.into(form.into), compiler.parse_option_path(form.per, "per")
    compiler.own(child, form.per, "per")
    shards = form.shards if isinstance(form, ShardedForm) else 1
    places = form.places if isinstance(form, MeanForm) else None
    _check_options(compiler, form, function, shards)
    instead = "or use mode: recount for small groups"
    table = find_ledger_table(compiler, form.ledger, function, instead) if form.mode == "ledger" else None
    if child is None or into is None:
        return ()
    groups = compile_groups(compiler, form.link, into.entity, child)
    if groups is None:
        return ()
    names = {field: name for field, name in form.link.items() if isinstance(name, str)}
    where, named = (
        compiler.compile_own_where(form.where, child),
        compiler.link(names, into.entity, child, within=bool(groups)),
    )
    if named is None:
        return ()
    link = tuple((field, groups.get(field, ref)) for field, ref in named)
    _check_amounts(compiler, link, of, sums or {})
    parts = CountParts(function, child, into, link, of, weights, per, where, shards, places, sums or {})
    name = form.renamed_from or compiler.name  # the books keep the name that they began with
    _check_via(compiler, form)
    _check_made_parent(compiler, form, into.entity, groups=bool(groups))
    if form.mode == "recount":
        rules = _compile_recount(compiler, form, parts) if form.via is None else ()
    else:
        rules = _compile_books(compiler, name, parts, table)
    find = None if groups else find_deleted_children(compiler, form, named, into.entity, child)
    if not compiler.sound or not rules:
        return ()
    return *rules, *make_parent_rule(compiler, rules[0], link, find, where=where, on_delete=form.on_delete, child=child)


def _check_options(compiler: RuleCompiler, form: GroupForm, function: Function, shards: int) -> None:
    """Report options that mean nothing in the mode chosen."""
    recount, drop = form.mode == "recount", "remove it, or drop mode: recount"
    if recount and form.ledger is not None:
        compiler.refuse("ledger", "a recount keeps no ledger", drop)
    if recount and shards > 1:
        compiler.refuse("shards", "a recount keeps no totals to shard", drop)
    if form.sparse and form.on_delete == "keep":
        compiler.refuse("sparse", UNLISTED, "remove it, or say on_delete")
    if not recount and form.per is not None and function in ("mean", "min", "max"):
        message = f"a ledger keeps the {function} of all children of a parent, not one per group"
        compiler.refuse("per", message, "remove it, or use mode: recount")


def _check_via(compiler: RuleCompiler, form: GroupForm) -> None:
    """Report an index for the items of one parent, where nothing lists them through one."""
    if form.via is not None and form.mode == "recount":
        message = f"index {form.via!r} would be listed: it lags behind the records that ask for a recount"
        cure = "remove it; if the key of the items' own table does not list them, use mode: ledger too"
        compiler.add("SR206", "via", message, cure)
    elif form.via is not None and form.on_delete == "keep":
        compiler.refuse("via", UNLISTED, "remove it, or say on_delete")


def _check_amounts(compiler: RuleCompiler, link: Link, of: Path | None, sums: Mapping[Path, Path]) -> None:
    """Report a number that is also the list or text whose elements name the parents: no item has both."""
    lists = [ref.path for _, ref in link if isinstance(ref, Each)]
    if found := [path for path in lists if path == of or path in sums.values()]:
        message = f"`each` takes a list or text in {show_path(found[0])!r}, and the rule adds up numbers there"
        compiler.refuse("link", message, "name another attribute in one of them")


def _check_made_parent(compiler: RuleCompiler, form: GroupForm, parent: Entity, *, groups: bool) -> None:
    """Report options that need a parent of the application's own, or a field that lists its items."""
    if groups and (form.mode == "recount" or form.on_delete != "keep"):
        option = "mode" if form.mode == "recount" else "on_delete"
        compiler.refuse(
            option, "no key lists the items of a group that `each`, `first` or `constant` names", "remove it"
        )
        return
    if parent.made and form.mode == "recount":
        message = f"rules make and remove {parent.name!r} by the books of its members, and a recount keeps none"
        compiler.refuse("mode", message, "remove it, or remove made_by")
    if parent.made and form.on_delete != "keep":
        message = f"rules remove {parent.name!r} only when it has no members left"
        compiler.refuse("on_delete", message, "remove it, or remove made_by")


def _compile_recount(compiler: RuleCompiler, form: GroupForm, parts: CountParts) -> tuple[Rule, ...]:
    child, parent = parts.child, parts.into.entity
    found = [way.find for way in links.list_ways(parent, child, parts.link) if way.find.index is None]
    if not found:
        known = ", ".join(f"{{{ref.field}}}" for _, ref in parts.link) or "nothing"
        message = f"the key of table {child.table.name!r} does not list the items of {child.name!r} by {known}"
        compiler.add("SR206", "mode", message)
        return ()
    rule = RecountRule(
        name=compiler.name,
        source=child,
        target=parent,
        find=found[0],
        settle_seconds=form.settle_seconds,
        into=parts.into.path,
        link=parts.link,
        where=parts.where,
        function=parts.function,
        of=parts.of,
        weights=parts.weights,
        per=parts.per,
        places=parts.places,
    )
    return (rule,)


def _compile_books(compiler: RuleCompiler, name: str, parts: CountParts, table: Table | None) -> tuple[Rule, ...]:
    """The rule that keeps the books of this name, and the rule that copies its result to the parent."""
    each = next((name for name, ref in parts.link if isinstance(ref, Each)), None)
    books = make_ledger(compiler, name, (parts.child, parts.into.entity), table, parts.shards, each=each)
    if books is None:
        return ()
    compile_books = _compile_rank if parts.function in ("min", "max") else _compile_tally
    return compile_books(compiler, parts, books)


def _compile_tally(compiler: RuleCompiler, parts: CountParts, books: Ledger) -> tuple[Rule, ...]:
    assert parts.function in ("count", "sum", "mean")
    tally = TallyRule(
        name=f"{compiler.name}.ledger",
        source=parts.child,
        target=books.entries,
        parent=parts.into.entity,
        marks=books.marks,
        totals=books.totals,
        function=parts.function,
        link=parts.link,
        of=parts.of,
        weights=parts.weights,
        per=parts.per,
        where=parts.where,
        shards=parts.shards,
        sums=tuple(sorted({*parts.sums.values()})),
    )
    total = TotalRule(
        name=compiler.name,
        source=books.totals,
        target=parts.into.entity,
        into=parts.into.path,
        books=tally.books,
        function=parts.function,
        per=parts.per is not None,
        shards=parts.shards,
        places=parts.places,
        sums=parts.sums,
    )
    return total, tally


def _compile_rank(compiler: RuleCompiler, parts: CountParts, books: Ledger) -> tuple[Rule, ...]:
    assert parts.function in ("min", "max")
    assert parts.of is not None
    rank = RankRule(
        name=f"{compiler.name}.ledger",
        source=parts.child,
        target=books.ranks,
        parent=parts.into.entity,
        marks=books.marks,
        function=parts.function,
        of=parts.of,
        link=parts.link,
        where=parts.where,
    )
    ends = RecountRule(
        name=compiler.name,
        source=books.ranks,
        target=parts.into.entity,
        find=books.find,
        into=parts.into.path,
        link=books.link,
        function=parts.function,
        of=(AMOUNT,),
        books=rank.books,
    )
    return ends, rank


OF_AN_ATTRIBUTE: dict[Function, type[GroupForm]] = {"sum": SumForm, "mean": MeanForm, "min": MinForm, "max": MaxForm}
KINDS = (
    Kind(
        "count",
        CountForm,
        _compile_count,
        sentence="count ENTITY into ENTITY.ATTRIBUTE",
        example="count order into user.orders",
        missing={"values": "values: {attribute: {value: weight}}"},
        meant={
            "weights.*": "name the attribute first: weights: {{attribute: {{{key}: {}}}}}",
            "weights.values.*": "name the attribute first: values: {{attribute: {{{key}: {}}}}}",
        },
    ),
    *(
        Kind(name, form, partial(_compile_function, name), sentence=f"{name} ENTITY.ATTRIBUTE into ENTITY.ATTRIBUTE")
        for name, form in OF_AN_ATTRIBUTE.items()
    ),
)
