"""The tables of the replay: for each model, its steps as steps of the code, and the mutant of each line.

`#` stands for a number in a step of a model. An item is written as `table key=value`, `~` is a space. A step that ends
in "?" is one that the code may make otherwise: it reads two things in one request, or has the image of a record.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sync_rules.model.limits import Limits
from sync_rules.pipeline import fanout, reconcile
from sync_rules.pipeline.messages import PushMessage
from sync_rules.pipeline.requests import Apply, Read
from sync_rules.pipeline.sources import read_sources
from tests.kinds.rollup import HEAD
from tests.models.__main__ import models
from tests.models.replay import Replay, Step, Table, Worker, judge_copies
from tests.simulation.breaking import Mutant, replacing, unsent, wrapping
from tests.simulation.safety import UnsafeError
from tests.simulation.worlds import COUNTED, EDGES, NUMBERED, history

LATE: Final[Step] = ("late",)
Mutants = Mapping[str, str | Mutant]
# the bounds of workers that send all targets on but the first
ONE_EACH: Final = {"limits": Limits(fan_out_page_max_items=1, fan_out_round_max_items=1, fan_out_inline_max_items=1)}


def copy_table(world: str, team: str, mutants: Mutants, *more: str, **options: Any) -> Table:
    """The model `copy` in a world whose keys begin with a team, or in one that is listed by an index. `more`: targets."""
    key, at = (f"team={team} ", f"{team} ") if team else ("", "")
    target = f"targets {key}target={{0}}"
    steps: dict[str, Step] = {
        "application: source # = #": ("put", f"sources {key}source={{0}} name={{0}}~#{{1}}"),
        "application: delete target #": ("put", f"-{target}"),
        "application: put target # of source # with copy #": ("put", f"{target} source={{1}} rank=a"),
        "application: put target # with copy #": ("change", target, "source_name="),
        "application: target # names source #": ("change", target, "source={1}"),
        "record of source #: push": ("look?", f"push sources {at}{{0}}"),
        "record of target #: pull": ("look", f"pull targets {at}{{0}}"),
        "list the targets of source #: #": ("list", "targets"),
        "read source #: #": ("read?", "sources"),
        "written: target # gets #": ("write", "targets", "#{1}'"),
        "refused: target # is not as it was seen": ("write", "targets"),
        "throttled: target #": ("throttle", "targets"),
        "the worker dies; its write of # to target # is in flight": ("die", "targets", "#{0}'"),
        "the late write arrives": LATE,
        "relay the rest of source #": ("nothing",),  # at the end of the worker that wrote
        "the index follows target #": ("catch_up",),
    }
    first: Step = (
        "put_before", f"sources {key}source=0 name=0~#1", f"sources {key}source=1 name=1~#1",
        *(f"targets {key}target={number} source=0 rank=a source_name=0~#1" for number in ("0", *more)),
    )  # fmt: skip
    return Table("copy", world, (first,), steps, mutants, **options)


def collect_table(world: str, mutants: Mutants, *, indexed: bool = False) -> Table:
    """The model `collect`. An edge that is not `indexed` has its node in its key."""
    edge = "members member=e goal={} state=OPEN" if indexed else "members goal={} user=e state=OPEN"
    steps: dict[str, Step] = {
        "application: the edge names node 0 (2: it is deleted)": ("put", f"-{edge.format(1)}", edge.format(0)),
        "application: the edge names node 1 (2: it is deleted)": ("put", f"-{edge.format(0)}", edge.format(1)),
        "application: delete node #": ("put", "-goals goal={0}"),
        "application: put node # without the element": ("put", "goals goal={0}"),
        "look at the element of node #": ("look", "part goals {0}"),
        "list the edges of node #": ("look_twice", "push goals {0}"),
        "read the edge: it names #": ("read", "members"),
        "written: node # #": ("write", "goals {0}"),
        "written: the key of the edge in the index": ("look", "pull members"),
        "the worker dies; its write to node # is in flight": ("die", "goals {0}"),
        "the late write arrives": LATE,
    }
    return Table("collect", world, (("put_before", "goals goal=0", "goals goal=1"),), steps, mutants)


def watch_books(replay: Replay, worker: Worker, request: Any) -> None:
    """As the model: a number may be written only if the books were complete when their total was read."""
    mark, _ = replay._item("ledger PK=orders/B SK=-")
    if isinstance(request, Read) and worker.is_at(Read, "ledger orders/T"):
        worker.notes["good"] = replay.world.items[mark]["complete"] == {"BOOL": True}
    if isinstance(request, Apply) and worker.is_at(Apply, "users") and not worker.notes["good"]:
        raise UnsafeError("a number from books that are not complete")


def count_table(mutants: Mutants, *, old: bool) -> Table:
    """The model `count`. `old`: the child came before the rule."""
    child = "orders team=x order=0"
    books = "-ledger PK=orders/L/x SK=0", "-ledger PK=orders/T/x SK=0", "-ledger PK=orders/T/x SK=1"
    steps: dict[str, Step] = {
        "application: the parent of child # is #": ("put", f"{child} user={{1}} state=OPEN"),
        "backfill: child #": ("sweep?", "orders"),
        "finish the books": ("finish", "orders"),
        "another version of the rule begins the books again": ("restart", *books),
        "look at child #": ("look?", "part ledger orders/L"),
        "read the entry of child #: parent #": ("read?", "ledger orders/L"),
        "read child #: parent #": ("read?", "orders"),
        "written: child # counts for parent #, no longer for #": ("write", "ledger orders/L", "", "ledger orders/B"),
        "the worker dies; its transaction is in flight": ("die", "ledger orders/L", "", "ledger orders/B"),
        "the worker dies before it writes the totals": ("lose", "ledger orders/T"),
        "the late transaction arrives": LATE,
        "look at the number of parent #": ("look", "pull users x {0}"),
        "read the mark: complete #": ("read", "ledger orders/B"),
        "read the total of parent #: #": ("read?", "ledger orders/T"),
        "written: the number of parent # is #": ("write", "users x {0}", "", "ledger orders/B"),
    }
    first: Step = ("put_before", "users team=x user=0", "users team=x user=1", *([f"{child} user=0 state=OPEN"] * old))
    last: tuple[Step, ...] = (("sweep", "orders"), ("finish", "orders")) if old else ()
    world = f"{COUNTED}  orders: {{count: order, into: user.orders, where: \"state == 'OPEN'\"}}\n"
    return Table("count", world, (first, ("begin",)), steps, mutants, last, watch_books)


def rollup_table(mutants: Mutants, *, waiting: bool) -> Table:
    """The model of roll-ups. `waiting`: the member of the second rule came before, and its books are not complete."""
    item = "shop PK=DAY#0 SK=TOTAL"
    one, two = "orders order_id=0 day=0 state=OPEN", "orders order_id=1 day=0 state=SENT"
    steps: dict[str, Step] = {
        "the first rule has a member: 1": ("count", one),
        "the first rule has a member: 0": ("count", f"-{one}"),
        "application: puts the item with an attribute of its own": ("put", f"{item} day=0 GSI1PK=DAYS GSI1SK=0 own=1"),
        "finish the books of the second rule": ("finish", "sent"),
        "read the item: there #, #, #, extra #": ("look", "pull shop", "shop"),
        "read rule 0: member #": ("read?", "ledger open/T", "ledger"),
        "read rule 1: complete #, member #": ("nothing",),
        "created: #, #": ("write", "shop", "", "ledger", "shop"),
        "removed": ("write", "shop", "", "ledger", "shop"),
        "refused: the item is not as it was seen": ("write", "shop", "", "ledger", "shop"),
        "the worker dies; its delete is in flight": ("die", "shop", "", "ledger", "shop"),
        "the late write arrives": LATE,
    }
    world = f"""{HEAD}
  open: {{count: order, into: day.open, where: "state == 'OPEN'"}}
  sent: {{count: order, into: day.sent, where: "state == 'SENT'"}}
"""
    begin: tuple[Step, ...] = (("begin",), ("finish", "open", *(["sent"] * (not waiting))))
    first = (*begin, ("put_before", two), ("sweep", "orders"), ("rest",)) if waiting else begin
    return Table("rollup", world, first, steps, mutants, (("finish", "sent"),) * waiting)


MIRROR: Final = Table(
    "mirror",
    "/mirror-taken",
    (),
    {
        "application: source # names mirror # (2: none)": ("put", "users user={0} email={1} name={0}"),
        "look at mirror # for source #": ("look", "part emails {0} of users {1}"),
        "read mirror #: source #": ("read", "emails {0}"),
        "read source #: mirror #": ("read", "users {0}"),
        "written: mirror # of source #": ("write", "emails {0}"),
        "written: mirror # is removed": ("write", "emails {0}"),
        "the worker dies; its transaction is in flight": ("die", "emails"),
        "the late transaction arrives": LATE,
    },
    {"NO_SOURCE_CHECK": "mirror: no check of the source", "NO_OWNER_GUARD": "mirror: whose it is not guarded"},
)


def history_table(mutants: Mutants) -> Table:
    """The model of versions."""
    steps: dict[str, Step] = {
        "application: version # of the item": ("put", "sources source=0 rank=N:{0} bio=1"),
        "application: another state under version #": ("put", "sources source=0 rank=N:{0} bio=2"),
        "record of version # with state #": ("look", "part versions 0 V#0{0} of sources 0 by sources"),
        "read the item: version #": ("read", "sources"),
        "written: version # with state #": ("write?", "versions 0 V#0{0}"),
        "the worker dies; its put is in flight": ("die", "versions"),
        "the late put arrives": LATE,
    }
    return Table("history", history(NUMBERED, ""), (), steps, mutants)


SOURCE: Final = "sources team=x source=0 name="
TRANSACT: Final = Table(
    "transact",
    "/base",
    (("put_before", f"{SOURCE}0~#1"),),
    {
        "transact: read the source: #": ("transact", "target", "targets team=x target=0 source=0"),
        "application: the source = #": ("put", f"{SOURCE}0~#{{0}}"),
        "read the target: #": ("look", "push sources x 0"),  # there is no target yet
        "read the source: #": ("nothing",),
        "written: the target with copy #": ("commit",),
    },
    {"NO_SOURCE_COMPARE": "transact: sources not compared"},
)


def find_orphan(replay: Replay) -> str:
    """A target that outlived its source."""
    tables = {place[0] for place in replay.world.items}
    return "a target of no source" if tables == {"targets"} else judge_copies(replay)


DELETE: Final = Table(
    "delete",
    "/delete",
    (("put_before", f"{SOURCE}1", *(f"targets team=x target={n} source=0 source_name=1" for n in "01")),),
    {
        "application: delete the source": ("put", f"-{SOURCE}1"),
        "application: put the source again": ("put", f"{SOURCE}1"),
        "application: rename the source": ("put", f"{SOURCE}2"),
        "push: read the source": ("look", "push sources x 0"),
        "the write is in flight": ("die", "targets x 0"),
        "list the targets of the deleted source": ("look", "push sources x 0 by sources x 0 REMOVE"),
        "the late write arrives": ("arrive",),
        "refused: target #": ("write", "targets x {0}"),
        "written: delete target #": ("write", "targets x {0}"),
    },
    {"NO_ABSENT_CHECK": "delete without transaction", "COMPARE_COPY": "delete compares the copy"},
    judge=find_orphan,
)


def embed_table(mutants: Mutants, *without: str, there: bool = True) -> Table:
    """The model `embed`, whose index shows nothing new until the end. `there`: the parent has an empty map at first."""
    child = "children child={0}"
    steps: dict[str, Step] = {
        "application: child # = 0 (0: it is deleted)": ("put", f"-{child}"),
        "application: child # = # (0: it is deleted)": ("put", f"{child} parent=0 rank=a name={{1}}"),
        "look at the parent, asked by child -1 (-1: by itself)": ("look", "pull parents 0 by parents"),
        "look at the parent, asked by child # (-1: by itself)": ("look", "pull parents 0 by children {0}"),
        "read the parent: #, #": ("read?", "parents"),
        "read the children: #, #": ("list", "children"),
        "written: the map is #, #": ("write", "parents"),
        "refused: the map is not as it was read": ("write", "parents"),
    }
    first: Step = ("put" if there else "put_before", "parents parent=0")
    return Table("embed", "/embed-index", (first, ("rest",), ("lag",)), steps, mutants, without=without)


PATH_MAX_IDS: Final = 5
IDS: Final = ("an1", "n1", "n2")  # by the numbers of the model's nodes: the second is a part of the first


def watch_paths(_replay: Replay, worker: Worker, request: Any) -> None:
    """As the model: no path grows for ever, and a backfill leaves the path of the last node, which is right."""
    if not isinstance(request, Apply):
        return
    if worker.look is None and worker.is_at(Apply, f"nodes x {IDS[2]}"):
        raise UnsafeError("a backfill changes a right path")
    if any(path["S"].count("|") >= PATH_MAX_IDS for write in request.writes for _, path in write.sets):
        raise UnsafeError("a path grows and grows")


def path_table(paths: tuple[str, ...], mutants: Mutants, *last: Step) -> Table:
    """The model `path`. A record of a node asks for a look at it, and for one at its children."""
    first = ("put_before", *(f"nodes team=x node={node} rank=a {path}" for node, path in zip(IDS, paths, strict=True)))
    steps: dict[str, Step] = {}
    for n, node in enumerate(IDS):
        for p, parent in enumerate(IDS):
            steps |= {
                f"application: node {n} goes under node {p} (3: to the top)": (
                    "change",
                    f"nodes team=x node={node}",
                    f"up={parent}",
                ),
                f"list the children of node {p}: node {n}, path #": (
                    "look",
                    f"push nodes x {parent} by",
                    f"nodes x {node}",
                ),
            }
        steps |= {
            f"read node {n}: parent #, path #": ("look", f"pull nodes x {node} by"),
            f"read parent {n}: path #": ("read", f"nodes x {node}"),
            f"written: the path of node {n} is #": ("write", f"nodes x {node}"),
            f"refused: node {n} is not as it was read": ("write", f"nodes x {node}"),
            f"report a ring at node {n}": ("nothing",),
            f"sweep: read node {n}: path #": ("fill", f"nodes team=x node={node}"),
        }
    return Table("path", "/path-keep", (first,), steps, mutants, last, watch=watch_paths)


def find_lost_value(replay: Replay) -> str:
    """The application's own value, if a rule has replaced it."""
    place, _ = replay._item("targets team=x target=0")
    return "" if replay.world.items[place]["source_name"] == {"S": "own"} else "a value of the application is gone"


ACCEPTANCE: Final = Table(
    "acceptance",
    "/keep",
    (("put_before", f"{SOURCE}1", "targets team=x target=0 source=0 source_name=own"),),
    {
        "application: the source = #, before #": ("put", f"{SOURCE}{{0}}"),
        "read the target: #": ("look", "push sources x 0"),
        "written: the target = #": ("write", "targets x 0"),
    },
    {"NO_ACCEPTANCE": "acceptance: targets are not protected"},
    judge=find_lost_value,
    bounds={"unaccepted": {"name": "run a backfill"}},
)
VERSIONED: Final = """
tables:
  users: {key: {user: S}}
  orders: {key: {user: S, order: S}}
  authors: {key: {author: S}}
  notes: {key: {author: S, note: S}}
entities:
  user: {table: users}
  order: {table: orders}
  author: {table: authors}
  note: {table: notes}
rules:
"""
VERSIONS: Final = Table(
    "versions",
    f"""{VERSIONED}  user-names: {{copy: user.name, into: order.user_name, renamed_from: names}}
  authors: {{copy: author.name, into: note.author_name}}
""",
    (
        ("put_before", "users user=0 name=1", *(f"orders user=0 order={number} user_name=1" for number in "01")),
        ("put_before", "authors author=0 name=1", *(f"notes author=0 note={number} author_name=1" for number in "01")),
    ),
    {
        "deploy the new version": ("deploy", "1"),
        "deploy the old version again": ("deploy", "0"),
        "relay the rest of the old rule as #": ("relay", "users user=0 name=2"),
        "relay the rest of the added rule": ("relay", "authors author=0 name=2"),
        "message for rule #": ("message", "users"),
        "message for the added rule, to version #": ("message", "authors", "{0}"),
    },
    {
        "NO_FAILED_MESSAGE": "versions: an unknown rule is acknowledged in silence",
        "NEW_NAMES": "versions: messages carry the new name of a rule",
    },
    older=f"{VERSIONED}  names: {{copy: user.name, into: order.user_name}}\n",
    bounds=ONE_EACH,
)
CLAIM: Final = Table(
    "claim",
    "/embed-claimed",
    (("put_before", "parents parent=0"),),
    {
        "application: child # claims the entry: 1": ("put", "children parent=0 child={0} label=entry"),
        "application: child # claims the entry: 0": ("put", "-children parent=0 child={0}"),
        "read the parent: the entry is of child # (2: no child)": ("look", "pull parents 0", "parents"),
        "read the children: #, #": ("list", "children"),
        "written: the entry is of child #": ("write", "parents"),
        "refused: the entry is not as it was read": ("write", "parents"),
    },
    {"NO_FIRST": "entry claimed: first come first served"},
)


TABLES: Final = (
    copy_table("/keep", "x", {
        "NO_LEVEL": "value from the image",
        "NO_IMAGE_FIRST": "source read before the images",
        "NO_LINK_GUARD": "no link guard",
        "NO_COPY_GUARD": "no guard on the copy",
        "NO_OWN_RECORDS": "own records ignored",
        "NO_PUSH": "no push",
        "NO_INSERT_PULL": "no pull on insert",
        "NO_LINK_PULL": "no pull on link change",
        "NO_RETRY": "throttled write taken as done",
    }),
    copy_table("/keep", "x", {
        "NO_RELAY": wrapping(fanout, "hand_over", unsent(lambda message: isinstance(message, PushMessage))),
    }, "1", bounds=ONE_EACH),
    copy_table("/index", "", {"NO_SECOND_LOOK": "no second look"}),
    collect_table("/collect", {
        "NO_ELEMENT_CHECK": "collect: sets not looked at again",
        "NO_LISTING": "collect: edges of a new node not listed",
        "NO_EXISTS": "collect: node created",
    }),
    collect_table(
        EDGES
        + '  rank: {derive: member.rank, as: "{state}"}\n  members: {collect: member, into: goal.members, as: "{member}"}\n',
        {"NO_ENTRY": "entry into an index ignored"},
        indexed=True,
    ),
    count_table({
        "NO_ENTRY_GUARD": "count: entry unguarded",
        "NO_TRANSACTION": "count: totals outside the transaction",
        "NO_ENTRY_RECORDS": "count: entries not looked at again",
    }, old=False),
    count_table({
        "NO_MARK_BEFORE": "books: mark read too late",
        "NO_MARK_AFTER": "books: mark not read again",
        "NO_SAME_BOOKS": "books: begun again unnoticed",
    }, old=True),
    rollup_table({
        "NO_OWN_RECORDS": "rollup: made items not looked at again",
        "NO_REMOVAL_RECORD": "rollup: removals not looked at again",
        "NO_ABSENT_GUARD": "rollup: created over another item",
        "NO_ATTRIBUTE_GUARD": "rollup: removed without a guard",
        "NO_EXTRA": "rollup: removed with what no rule makes",
    }, waiting=False),
    rollup_table({
        "NO_EVERY_BOOKS": "rollup: a rule that waits has no members",
        "NO_SWEEP": "rollup: books not swept",
    }, waiting=True),
    MIRROR,
    history_table({
        "NO_RECORD_STATE": "a version of the source as it is now",
        "NO_ABSENT_GUARD": "a version put over another",
    }),
    embed_table({"NO_SECOND_LOOK": "no second look at members"}),
    embed_table({
        "NO_HINTED": "hinting member not read",
        "NO_NAMED": "named members not read",
    }, "no second look at members"),
    embed_table({"NO_SECOND_EVALUATION": "refused write of a hint dropped"}, "no second look at members", there=False),
    path_table(("Path=an1", "Path=n1", "Path=n2"), {
        "NO_RING": "path without the cycle rule",
        "PARTS_OF_IDS": "cycle found by a substring",
    }),
    path_table(
        ("Path=an1", "Path=n1 up=an1", "Path=an1|n1|n2 up=n1"),
        {"SWEEP_AS_IS": replacing(reconcile, "read_expected_sources", read_sources)},
        ("fill", "nodes team=x node=n1"),
    ),
    ACCEPTANCE,
    VERSIONS,
    TRANSACT,
    DELETE,
    CLAIM,
)  # fmt: skip
ONE_REQUEST: Final = "a call and its notes are one request in the code, and the replay makes no steps in it"
NOT_PLAYED: Final = {
    ("copy", "NO_PARK"): "full items have other bounds in the code than in the model",
    ("count", "NO_WAITING"): "a backfill orders its steps in its job, which the replay does not run",
    ("rules", "TWO_RULES"): "the compiler refuses two rules for one attribute",
    ("call", "NO_NOTE_BEFORE"): ONE_REQUEST,
    ("call", "NO_NOTE_AFTER"): ONE_REQUEST,
    ("rollup", "NO_FRESH_IMAGE"): "in the code a look has the image of its own record; in the model it may be older",
}


def played() -> str:
    """The table of the page: how many counterexamples of each model are played on the code."""
    lines = ["| model | played | not played |", "|---|---:|---|"]
    for model, entry in models().items():
        names = [one["line"] for one in entry["without"]]
        done = sum(len(table.mutants) for table in TABLES if table.model == model)
        why = "; ".join(f"`{line}`: {NOT_PLAYED[model, line]}" for line in names if (model, line) in NOT_PLAYED)
        lines.append(f"| `{model}` | {done} of {len(names)} | {why} |")
    return "\n".join(lines)
