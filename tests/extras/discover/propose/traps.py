"""Small data sets: in some a wrong rule is tempting, in others the right rule must stay active.

Invariant: a trap says which values its items show to be wrong. A backfill of what is proposed may change no other value.
"""

# fmt: off
from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from sync_rules.model.numbers import compute_mean
from tests.extras.discover.datasets.words import Words
from tests.support.gathering import PlainTable

Record = dict[str, Any]
Number = int | Decimal
CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
START = datetime(2024, 1, 1, tzinfo=UTC)
PARENTS, EACH = 30, 8


@dataclass
class Trap:
    """Tables; the attributes of each item, by identity, that may change; and what must stay a rule: kind and target."""

    tables: list[PlainTable]
    wrong: dict[int, set[str]] = field(default_factory=dict)
    active: set[tuple[str, str]] = field(default_factory=set)

    def spoil(self, record: Record, name: str, value: Any) -> None:
        """Write a value that the data show to be wrong; None removes it."""
        self.wrong.setdefault(id(record), set()).add(name)
        if value is None:
            record.pop(name, None)
        else:
            record[name] = value


# ---------------------------------------------------------------- words
def moment(at: float) -> datetime:
    """A moment of the year, for a number from 0 to 1."""
    return START + timedelta(seconds=at * 300 * 86_400)


def ulid(rand: random.Random, at: float) -> str:
    number = (int(moment(at).timestamp() * 1000) << 80) | rand.getrandbits(80)
    return "".join(CROCKFORD[(number >> 5 * place) & 31] for place in reversed(range(26)))


def uuid7(rand: random.Random, at: float) -> str:
    number = (int(moment(at).timestamp() * 1000) << 80) | (7 << 76) | rand.getrandbits(76)
    return str(UUID(int=number & ~(3 << 62) | (2 << 62)))


def make_ids(style: str, rand: random.Random, times: Sequence[float]) -> list[str]:
    """An id for each time, in a style."""
    match style:
        case "ulid":
            return [ulid(rand, at) for at in times]
        case "uuid7":
            return [uuid7(rand, at) for at in times]
        case "sequence":
            order = sorted(range(len(times)), key=times.__getitem__)
            place = {number: rank for rank, number in enumerate(order, 1)}
            return [f"{place[number]:05}" for number in range(len(times))]
    return [str(UUID(int=rand.getrandbits(128), version=4)) for _ in times]


def make_value(kind: str, words: Words, number: int) -> Any:
    match kind:
        case "price":
            return 500 + words.number(9000)
        case "rate":
            return (99, 199, 299, 399, 499)[words.number(5)]
        case "city":
            return words.place()
        case "tier":
            return words.one(["basic", "silver", "gold", "premium"])
        case "title":
            return f"{words.title()} {number}"
        case "address":
            return {"street": f"{words.place()} Road {words.number(300)}", "city": words.place()}
    return f"{words.person()} {number}"


# ---------------------------------------------------------------- history
@dataclass
class Story:
    """Sources and their targets: each target at a time, with what its source held then."""

    sources: list[Record]
    targets: list[Record]
    times: list[float]
    former: dict[int, Any]  # by target: the value of its time

    def pairs(self) -> list[tuple[Record, Record]]:
        by_id = {one["sid"]: one for one in self.sources}
        return [(by_id[one["sid"]], one) for one in self.targets]


def tell(
    seed: str, value: str, read: str, into: str, *, changed: float = 0.4, style: str = "uuid4", dated: str = "",
    again: bool = False, latest: float = 1.0, each: int = EACH,
) -> Story:  # fmt: skip
    """Sources whose value changed once, or there and back with `again`; targets keep what it was."""
    words, rand = Words(seed), random.Random(seed)
    sources = [{"sid": f"s{number * 7919 % 9973:04}", "note": words.text(3)} for number in range(PARENTS)]
    times = [rand.random() for _ in range(PARENTS * each)]
    ids = make_ids(style, rand, times)
    targets, former = [], {}
    lives = {}
    for number, source in enumerate(sources):
        now = make_value(value, words, number)
        then = make_value(value, words, number + 500)
        first = rand.uniform(0.2, 0.8) * latest
        lives[source["sid"]] = (now, then, first) if rand.random() < changed else (now, now, 0.0)
        source[read] = now
    for own, at in zip(ids, times, strict=True):
        source = rand.choice(sources)
        now, then, since = lives[source["sid"]]
        is_old = since - 0.15 < at < since if again else at < since
        target: Record = {"tid": own, "sid": source["sid"], "amount": words.number(90, 1)}
        target[into] = then if is_old else now
        if dated == "text":
            target["placed_at"] = moment(at).strftime("%Y-%m-%dT%H:%M:%SZ")
        elif dated == "epoch":
            target["placed"] = int(moment(at).timestamp())
        elif dated == "month":
            target["period"] = moment(at).strftime("%Y-%m")
        targets.append(target)
    return Story(sources, targets, times, former)


def tables_of(story: Story, source: str = "goods", target: str = "lines") -> list[PlainTable]:
    by_source = {"by_sid": {"sid": "S"}}
    return [
        PlainTable(source, {"sid": "S"}, story.sources),
        PlainTable(target, {"tid": "S"}, story.targets, by_source),
    ]


def history(value: str, read: str, into: str, **options: Any) -> Callable[[str], Trap]:
    """Targets that hold what their source was: nothing may be overwritten."""
    return lambda seed: Trap(tables_of(tell(seed, value, read, into, **options)))


def frozen_by_status(seed: str) -> Trap:
    """Orders that were sent keep the name of their time, open ones follow."""
    story, rand = tell(seed, "name", "name", "ship_name", changed=0.0), random.Random(seed)
    for target in story.targets:
        target["status"] = rand.choice(["OPEN", "SENT", "SENT"])
    for number, source in enumerate(story.sources[:12]):
        renamed = f"{source['name']} {number}"
        for one in story.targets:
            if one["sid"] == source["sid"] and one["status"] == "OPEN":
                one["ship_name"] = renamed
        source["name"] = renamed
    return Trap(tables_of(story, "users", "orders"))


def gifts(seed: str) -> Trap:
    """Orders that are gifts hold a recipient of their own."""
    story, words = tell(seed, "name", "name", "recipient", changed=0.0), Words(seed)
    for number, target in enumerate(story.targets):
        target["gift"] = words.yes(0.12)
        if target["gift"]:
            target["recipient"] = make_value("name", words, 900 + number)
    return Trap(tables_of(story, "users", "orders"))


def absent_by_purpose(seed: str) -> Trap:
    """Only orders that were paid have the name for the invoice."""
    story, words = tell(seed, "name", "name", "invoice_name", changed=0.0), Words(seed)
    for target in story.targets:
        target["status"] = "PAID" if words.yes(0.82) else "OPEN"
        if target["status"] == "OPEN":
            del target["invoice_name"]
    return Trap(tables_of(story, "users", "orders"))


def versions(seed: str) -> Trap:
    """Versions of documents in one table hold the title of their time; the number of a version is the time."""
    words, items = Words(seed), []
    for number in range(PARENTS):
        title, count = make_value("title", words, number), words.number(8, 3)
        since = words.number(count) if words.yes(0.5) else 0
        items.append({"PK": f"DOC#{number + 100}", "SK": "DOC", "title": title, "owner": words.person()})
        for version in range(1, count + 1):
            held = title if version > since else f"{title} draft"
            items.append({"PK": f"DOC#{number + 100}", "SK": f"VERSION#{version:04}", "title": held, "size": words.number(900)})
    return Trap([PlainTable("docs", {"PK": "S", "SK": "S"}, items)])


def nested(seed: str) -> Trap:
    """The customer of an order as a map, with the name of the time."""
    story = tell(seed, "name", "name", "who", style="ulid")
    for target in story.targets:
        target["customer"] = {"name": target.pop("who"), "channel": "web"}
    return Trap(tables_of(story, "users", "orders"))


def second_hop(seed: str) -> Trap:
    """Lines hold the name that their order holds, and the order has the name of its time."""
    story, words = tell(seed, "name", "name", "buyer", style="ulid", each=4), Words(seed)
    lines = [
        {"lid": str(words.uuid()), "tid": order["tid"], "buyer": order["buyer"], "n": words.number(9)}
        for order in story.targets
        for _ in range(2)
    ]
    return Trap([*tables_of(story, "users", "orders"), PlainTable("parts", {"lid": "S"}, lines, {"by_tid": {"tid": "S"}})])


def published(seed: str) -> Trap:
    """Each page has a second item with what was published; some were edited since."""
    words, items = Words(seed), []
    for number in range(60):
        page = {"title": make_value("title", words, number), "body": words.text(), "owner": words.person()}
        slug = f"p{number * 7919 % 9973}"
        items.append({"PK": f"PUBLISHED#{slug}", "SK": "PAGE", **page})
        if words.yes(0.2):
            page = {**page, "title": f"{words.title()} {number}", "body": words.text()}
        items.append({"PK": f"PAGE#{number + 1000}", "SK": "PAGE", "slug": slug, **page})
    return Trap([PlainTable("site", {"PK": "S", "SK": "S"}, items)])


def embedded_history(seed: str) -> Trap:
    """Orders embed their lines as they were sold; the price of some lines was corrected afterwards."""
    words, orders, lines = Words(seed), [], []
    for number in range(80):
        own = [{"oid": f"o{number:04}", "line": f"{at}", "price": words.number(900, 5), "sku": words.ulid()} for at in range(1, words.number(5, 2))]
        order = {"oid": f"o{number:04}", "lines": {one["line"]: {"price": one["price"], "sku": one["sku"]} for one in own}}
        if words.yes(0.15):
            own[0]["price"] += 7
        orders.append(order)
        lines += own
    return Trap([PlainTable("orders", {"oid": "S"}, orders), PlainTable("lines", {"oid": "S", "line": "S"}, lines)])


def ever_visited(seed: str) -> Trap:
    """Users keep the set of cities that they ever ordered to; some orders were deleted."""
    story = tell(seed, "name", "name", "buyer", changed=0.0)
    words = Words(seed)
    for target in story.targets:
        target["city"] = words.place()
    for source in story.sources:
        cities = {one["city"] for one in story.targets if one["sid"] == source["sid"]}
        source["cities"] = cities | ({words.place()} if words.yes(0.2) else set()) or {"Oslo"}
    return Trap(tables_of(story, "users", "orders"))


def slugs(seed: str) -> Trap:
    """A text made of the title when the item was made; some titles changed since."""
    words = Words(seed)
    posts = [{"post": words.ulid(), "title": make_value("title", words, number), "city": words.place()} for number in range(120)]
    for post in posts:
        post["slug"] = post["title"].lower().replace(" ", "")
        if words.yes(0.1):
            post["title"] = f"{words.title()} {words.number(90)}"
    return Trap([PlainTable("posts", {"post": "S"}, posts)])


def desks(seed: str) -> Trap:
    """People change desks among each other; bookings hold the desk of their time, and nothing dates them."""
    story, words = tell(seed, "name", "desk", "desk", changed=0.0), Words(seed)
    names = [source["desk"] for source in story.sources]
    shifted = [*names[10:], *names[:10]]
    now = {source["sid"]: desk for source, desk in zip(story.sources, shifted, strict=True)}
    for source, booking in story.pairs():
        booking["desk"] = source["desk"] if words.yes(0.2) else now[source["sid"]]
    for source in story.sources:
        source["desk"] = now[source["sid"]]
    return Trap(tables_of(story, "people", "bookings"))


def by_hand(name: str, share: float, usual: Callable[[datetime], Any], other: Callable[[datetime], Any]) -> Callable[[str], Trap]:
    """An attribute that a date makes, and that somebody set by hand on some items."""

    def build(seed: str) -> Trap:
        words = Words(seed)
        items = []
        for _ in range(160):
            at = moment(words.rng.random())
            items.append({"doc": words.ulid(), "created_at": at.strftime("%Y-%m-%dT%H:%M:%SZ"), name: (other if words.yes(share) else usual)(at)})
        return Trap([PlainTable("docs", {"doc": "S"}, items)])

    return build


def later(days: int) -> Callable[[datetime], Any]:
    return lambda at: int(at.timestamp()) + days * 86_400


# ---------------------------------------------------------------- a parent's own value
def owned(
    into: str, amount: str, make: Callable[[Words, list[int]], Number], *, each: tuple[int, int] = (2, 9), idle: float = 0.0,
    own: Callable[[Words], int] = lambda words: words.number(90, 1), low: int = 5, high: int = 900,
) -> Callable[[str], Trap]:  # fmt: skip
    """Parents with a value of their own, which their children seem to make. `idle`: the share without children."""

    def build(seed: str) -> Trap:
        words, parents, children = Words(seed), [], []
        for number in range(2 * PARENTS):
            parent: Record = {"pid": f"p{number * 7919 % 9973:04}", "label": words.text(2)}
            count = 0 if words.yes(idle) else words.number(each[1], each[0])
            amounts = [words.number(high, low) for _ in range(count)]
            parent[into] = make(words, amounts) if amounts else own(words)
            children += [{"cid": words.uuid(), "pid": parent["pid"], amount: one, "day": words.day()} for one in amounts]
            parents.append(parent)
        return Trap([
            PlainTable("parents", {"pid": "S"}, parents),
            PlainTable("children", {"cid": "S"}, children, {"by_pid": {"pid": "S"}}),
        ])  # fmt: skip

    return build


def sometimes(chance: float, usual: Callable[[list[int]], Number], other: Callable[[Words, list[int]], Number]) -> Callable[[Words, list[int]], Number]:
    """The usual number, but for some parents another one."""
    return lambda words, amounts: other(words, amounts) if words.yes(chance) else usual(amounts)


def mean(amounts: list[int], places: int = 2) -> Decimal:
    return compute_mean(Decimal(sum(amounts)), Decimal(len(amounts)), places)


def rising(function: Callable[[list[int]], int], *, falling: bool = False) -> Callable[[str], Trap]:
    """Prices that only rise or only fall: the present one is the most or the least of what lines hold."""

    def build(seed: str) -> Trap:
        story, words = tell(seed, "price", "price", "unit_price", changed=0.0, style="ulid"), Words(seed)
        for source in story.sources:
            own = [one for one in story.targets if one["sid"] == source["sid"]]
            old = own[: len(own) // 2] if words.yes(0.6) else []
            for one in old:
                one["unit_price"] += 50 if falling else -50
        for number in range(4):  # the application set a new price that nothing was sold at yet
            story.sources[number]["price"] += -70 if falling else 70
        return Trap(tables_of(story, "products", "lines"))

    return build


def list_price(seed: str) -> Trap:
    """Products with one former price each, and a few with two: the sum of some of them is the present price."""
    words, products, prices = Words(seed), [], []
    days = ["2024-05-30", "2023-05-30"]
    for number in range(2 * PARENTS):
        product = {"pid": f"p{number * 7919 % 9973:04}", "ListPrice": words.number(900, 90)}
        prices.append({"pid": product["pid"], "at": "2024-01-01", "ListPrice": product["ListPrice"], "ModifiedDate": days[0]})
        if words.yes(0.25):
            prices.append({"pid": product["pid"], "at": "2023-01-01", "ListPrice": product["ListPrice"] - 9, "ModifiedDate": days[1]})
        if words.yes(0.1):
            product["ListPrice"] += 11
        products.append(product)
    return Trap([PlainTable("products", {"pid": "S"}, products), PlainTable("prices", {"pid": "S", "at": "S"}, prices)])


def chance_condition(into: str, decider: str, values: Sequence[Any], kind: str = "count") -> Callable[[str], Trap]:
    """A number of the parent that a condition on some date or id makes of its children, for most of them."""

    def build(seed: str) -> Trap:
        words, parents, children = Words(seed), [], []
        for number in range(2 * PARENTS):
            parent: Record = {"pid": f"p{number * 7919 % 9973:04}"}
            own = [{"cid": words.uuid(), "pid": parent["pid"], "points": words.number(50, 1), decider: values[0]} for _ in range(words.number(7, 2))]
            if words.yes(0.25):
                own.append({"cid": words.uuid(), "pid": parent["pid"], "points": words.number(50, 1), decider: words.one(values[1:])})
            counted = [one for one in own if one[decider] == values[0]]
            parent[into] = len(counted) if kind == "count" else sum(one["points"] for one in counted)
            if words.yes(0.12):
                parent[into] += words.number(4, 1)
            parents.append(parent)
            children += own
        return Trap([PlainTable("parents", {"pid": "S"}, parents), PlainTable("children", {"cid": "S"}, children, {"by_pid": {"pid": "S"}})])

    return build


# ---------------------------------------------------------------- keys
def keyed(template: str, name: str, value: Callable[[Words, int], Any], *, more: str = "") -> Callable[[str], Trap]:
    """An index key made of an attribute. Some keys are of a former value; the attributes are right. `more`: an attribute
    that tenants hold and items copy.
    """

    def build(seed: str) -> Trap:
        words, items, tenants = Words(seed), [], []
        trap = Trap([], active={("copy", f"app.{more}")} if more else {("derive", "app.GSI1PK")})
        values = [value(words, number) for number in range(24)]
        for number, one in enumerate(dict.fromkeys(values)):
            tenants.append({"PK": f"TENANT#{one}", "SK": "TENANT", "plan": make_value("title", words, number)})
        plans = {one["PK"][7:]: one["plan"] for one in tenants}
        for number in range(240):
            own = words.one(values)
            item: Record = {"PK": f"ITEM#{number * 7919 % 9973:04}", "SK": "ITEM", name: own, "GSI1PK": template.format(own), "GSI1SK": words.time(), "color": words.one(["red", "blue"])}
            if more:
                item[more] = plans[str(own)]
            if words.yes(0.09):
                trap.spoil(item, "GSI1PK", template.format(words.one(values)))
            items.append(item)
        indexes = {"GSI1": {"GSI1PK": "S", "GSI1SK": "S"}}
        trap.tables.append(PlainTable("app", {"PK": "S", "SK": "S"}, [*items, *(tenants if more else [])], indexes))
        return trap

    return build


def moved(seed: str) -> Trap:
    """Orders that moved to another user keep their key; the attribute and the name are of the new user."""
    words, orders = Words(seed), list[Record]()
    users = [{"PK": f"USER#{number + 100}", "SK": "USER", "name": make_value("name", words, number)} for number in range(PARENTS)]
    for number in range(PARENTS * EACH):
        user = words.one(users)
        owner = words.one(users) if words.yes(0.1) else user
        orders.append({"PK": user["PK"], "SK": f"ORDER#{number:05}", "user_id": owner["PK"][5:], "user_name": owner["name"]})
    return Trap([PlainTable("shop", {"PK": "S", "SK": "S"}, [*users, *orders])])


# ---------------------------------------------------------------- the newest child, groups of a period
def firsts(
    into: str, *, fields: Sequence[str] = (), chance: float = 0.0, idle: float = 0.0, active: bool = False
) -> Callable[[str], Trap]:
    """Users who hold something of their newest order: one attribute, or a map of `fields`; by `chance` something else.
    `idle`: the share of users without orders, who hold it all the same.
    """

    def build(seed: str) -> Trap:
        words, users, orders = Words(seed), [], []
        trap = Trap([], active={("collect", f"user.{into}")} if active else set())
        for number in range(3 * PARENTS):
            user: Record = {"uid": f"u{number * 7919 % 9973:04}", "bio": words.text(3)}
            own = [
                {"oid": words.ulid(), "uid": user["uid"], "placed_at": words.time(), "city": words.place(), "status": words.one(["OPEN", "SENT", "VOID"])}
                for _ in range(0 if words.yes(idle) else words.number(7, 1))
            ]
            newest = max(own, key=lambda one: one["placed_at"]) if own else {"city": words.place(), "status": "OPEN", "placed_at": words.time(), "oid": words.ulid()}
            if own or idle:
                user[into] = {name: newest[name] for name in fields} if fields else newest["city"]
                if words.yes(chance):
                    user[into] = {**user[into], fields[-1]: words.time()} if fields else words.place()
            users.append(user)
            orders += own
        if active:
            (old, new), *_ = [
                (user, one) for user in users for one in orders
                if one["uid"] == user["uid"] and {name: one[name] for name in fields} != user[into] and (fields or one["city"] != user[into])
            ]  # fmt: skip
            trap.spoil(old, into, {name: new[name] for name in fields} if fields else new["city"])
        trap.tables += [PlainTable("users", {"uid": "S"}, users), PlainTable("orders", {"oid": "S"}, orders, {"by_uid": {"uid": "S"}})]
        return trap

    return build


def periods(into: str, *, chance: float = 0.0, active: bool = False) -> Callable[[str], Trap]:
    """Numbers of bookings by day, on items of their own; by `chance` higher, as of what is not booked."""

    def build(seed: str) -> Trap:
        words = Words(seed)
        bookings = [{"bid": words.ulid(), "at": words.time(90), "seats": words.number(5, 1)} for _ in range(900)]
        names = sorted({one["at"][:10] for one in bookings})
        by_name = {name: [one["seats"] for one in bookings if one["at"].startswith(name)] for name in names}
        days: list[Record] = [{"day": name, into: len(own), "seats_total": sum(own), "weather": words.one(["sun", "rain"])} for name, own in by_name.items()]
        trap = Trap([], active={("count", f"day.{into}"), ("sum", "day.seats_total")} if active else {("sum", "day.seats_total")})
        for day in days:
            day[into] += words.number(4, 1) if words.yes(chance) else 0
        trap.spoil(days[1], "seats_total", days[1]["seats_total"] + 4)
        trap.spoil(days[2], "seats_total", days[2]["seats_total"] - 2)
        trap.tables += [PlainTable("days", {"day": "S"}, days), PlainTable("bookings", {"bid": "S"}, bookings)]
        return trap

    return build


def elements(*, sold: bool) -> Callable[[str], Trap]:
    """Orders with a set of texts of their lines. `sold`: with the price of then, and some prices were corrected."""

    def build(seed: str) -> Trap:
        words, orders, lines = Words(seed), [], []
        trap = Trap([], active=set() if sold else {("collect", "order.items")})
        for number in range(90):
            own = [{"oid": f"o{number:04}", "line": f"{at}", "price": words.number(900, 5), "sku": f"K{words.number(10**5):05}"} for at in range(1, words.number(6, 2))]
            orders.append({"oid": f"o{number:04}", "items": {f"{one['line']}#{one['price' if sold else 'sku']}" for one in own}})
            if sold and words.yes(0.15):
                own[0]["price"] += 7
            elif number == 4:
                trap.spoil(orders[-1], "items", set(sorted(orders[-1]["items"])[1:]) or None)
            lines += own
        trap.tables += [PlainTable("orders", {"oid": "S"}, orders), PlainTable("lines", {"oid": "S", "line": "S"}, lines)]
        return trap

    return build


def binary(*, related: bool) -> Callable[[str], Trap]:
    """Lines that name goods by binary keys; or by bytes of few values, which mean something else."""

    def build(seed: str) -> Trap:
        words = Words(seed)
        goods = [{"gid": bytes([number] if not related else [words.number(256) for _ in range(6)]), "title": make_value("title", words, number), "size": words.one(["S", "M", "L"])} for number in range(40)]
        lines: list[Record] = []
        for _ in range(240):
            one = words.one(goods)
            lines.append({"lid": words.ulid(), "tag" if not related else "gid": one["gid"], "amount": words.number(90, 1), "size": words.one(["S", "M", "L"])})
            if related:
                lines[-1]["title"] = one["title"]
        trap = Trap([PlainTable("goods", {"gid": "B"}, goods), PlainTable("lines", {"lid": "S"}, lines, {"by_gid": {"gid": "B"}})], active={("copy", "line.title")} if related else set())
        if related:
            trap.spoil(lines[3], "title", goods[0]["title"] if lines[3]["title"] != goods[0]["title"] else goods[1]["title"])
        return trap

    return build


def numbered_paths(seed: str) -> Trap:
    """Categories with paths of their ids, and a number that repeats the digits of the id."""
    words, items = Words(seed), list[Record]()
    for number in range(1, 91):
        parent = words.one(items) if number > 5 else None
        own = f"C{number:03}"
        items.append({"cid": own, "number": number, "path": f"{parent['path']}/{own}" if parent else own, **({"parent_id": parent["cid"]} if parent else {})})
    trap = Trap([PlainTable("categories", {"cid": "S"}, items)], active={("path", "category.path")})
    trap.spoil(items[-1], "path", "C001/C002")
    return trap


def owners(*, frozen: bool) -> Callable[[str], Trap]:
    """Look-up items that name their account by another name. `frozen`: they hold the name of their time."""

    def build(seed: str) -> Trap:
        words, logins = Words(seed), list[Record]()
        accounts = [{"id": words.uuid(), "full_name": make_value("name", words, number), "since": words.time()} for number in range(90)]
        for number, account in enumerate(accounts):
            logins.append({"login": f"l{number * 7919 % 9973:04}", "owner": account["id"], "full_name": account["full_name"]})
            if frozen and words.yes(0.2):
                account["full_name"] = make_value("name", words, 500 + number)
        trap = Trap([PlainTable("accounts", {"id": "S"}, accounts), PlainTable("logins", {"login": "S"}, logins, {"by_owner": {"owner": "S"}})], active=set() if frozen else {("copy", "login.full_name")})
        if not frozen:
            trap.spoil(logins[7], "full_name", accounts[30]["full_name"])
        return trap

    return build


def id_lists(*, kept: bool) -> Callable[[str], Trap]:
    """Playlists with a list of the ids of their tracks, in order; or with those that were ever in it."""

    def build(seed: str) -> Trap:
        words, playlists, tracks = Words(seed), list[Record](), []
        for number in range(2 * PARENTS):
            own = [{"track": words.ulid(), "list_id": f"p{number:03}", "place": at, "title": words.title()} for at in range(1, words.number(7, 2))]
            ids = [one["track"] for one in own]
            playlists.append({"list_id": f"p{number:03}", "track_ids": ids if kept or words.yes(0.8) else [words.ulid(), *ids]})
            tracks += own
        trap = Trap([PlainTable("playlists", {"list_id": "S"}, playlists), PlainTable("tracks", {"track": "S"}, tracks, {"by_list": {"list_id": "S"}})], active={("collect", "playlist.track_ids")} if kept else set())
        if kept:
            trap.spoil(playlists[3], "track_ids", playlists[3]["track_ids"][1:])
        return trap

    return build


def relinked(seed: str) -> Trap:
    """Rentals that name a film, also by their copy of it: where the two differ, nothing shows which is right."""
    words = Words(seed)
    films = [{"film": number, "title": make_value("title", words, number)} for number in range(500, 540)]
    discs = [{"disc": words.ulid(), "film": words.one(films)["film"]} for _ in range(90)]
    rentals: list[Record] = []
    for _ in range(400):
        disc = words.one(discs)
        title = next(one["title"] for one in films if one["film"] == disc["film"])
        rentals.append({"rental": words.ulid(), "disc": disc["disc"], "film": words.one(films)["film"] if words.yes(0.05) else disc["film"], "title": title})
    tables = [PlainTable("films", {"film": "N"}, films), PlainTable("discs", {"disc": "S"}, discs, {"by_film": {"film": "N"}})]
    return Trap([*tables, PlainTable("rentals", {"rental": "S"}, rentals, {"by_film": {"film": "N"}, "by_disc": {"disc": "S"}})])


TRAPS: Mapping[str, Callable[[str], Trap]] = {
    # a parent's own value
    "the price is the most of line prices": rising(max),
    "the price is the least of line prices": rising(min, falling=True),
    "the list price is the sum of one price": list_price,
    "a capacity that most fill": owned("capacity", "seat", sometimes(0.2, len, lambda w, a: len(a) + w.number(5, 1))),
    "a budget that most plan to the end": owned("budget", "estimate", sometimes(0.2, sum, lambda w, a: sum(a) + w.number(90, 9))),
    "a total after a discount": owned("total", "price", sometimes(0.15, sum, lambda w, a: sum(a) - w.number(4, 1))),
    "a size of those without children": owned("size", "age", lambda w, a: len(a), idle=0.3),
    "a published version": owned("published", "version", sometimes(0.15, max, lambda w, a: max(a) - 1), low=1, high=40),
    "a member since before the first order": owned("since", "ordered", sometimes(0.15, min, lambda w, a: min(a) - w.number(90, 9)), low=1_700_000_000, high=1_710_000_000),
    "an average that editors set": owned("average_price", "price", sometimes(0.15, mean, lambda w, a: mean(a) + w.number(4, 1))),
    "an average of those without children": owned("average_price", "price", lambda w, a: mean(a), idle=0.3),
    "an average in more digits than a rule keeps": owned("average_price", "price", lambda w, a: mean(a, 16)),
    "an average without a name": owned("price", "price", lambda w, a: mean(a)),
    "a balance with an opening": owned("balance", "amount", sometimes(0.15, sum, lambda w, a: sum(a) + 100)),
    # history
    "line prices with dates": history("price", "price", "unit_price", dated="text"),
    "line prices with seconds": history("price", "price", "unit_price", dated="epoch"),
    "line prices by month": history("price", "price", "unit_price", dated="month"),
    "line prices by ULID": history("price", "price", "unit_price", style="ulid"),
    "line prices by UUID v7": history("price", "price", "unit_price", style="uuid7"),
    "line prices by number": history("price", "price", "unit_price", style="sequence"),
    "line prices that nothing dates": history("price", "price", "unit_price"),
    "line prices of few rates": history("rate", "rate", "rate", style="ulid"),
    "line prices with offers between": history("price", "price", "unit_price", dated="text", again=True),
    "a price of every line changed": history("price", "price", "unit_price", style="ulid", changed=0.15, latest=1.6),
    "order names that nothing dates": history("name", "name", "buyer_name"),
    "order cities that nothing dates": history("city", "city", "ship_city"),
    "order addresses as maps": history("address", "address", "ship_to", dated="text"),
    "order tiers by ULID": history("tier", "tier", "tier", style="ulid", changed=0.3),
    "titles of versions": versions,
    "names in maps": nested,
    "names at the second hop": second_hop,
    "names that are frozen by a status": frozen_by_status,
    "names of gifts": gifts,
    "names of paid orders alone": absent_by_purpose,
    "published pages": published,
    "lines as they were sold": embedded_history,
    "cities ever visited": ever_visited,
    "a slug of the first title": slugs,
    "desks that people changed": desks,
    "a month of booking": by_hand("month", 0.1, lambda at: f"{at:%Y-%m}", lambda at: f"{at + timedelta(days=31):%Y-%m}"),
    "an expiry that was put off": by_hand("expires", 0.1, later(30), later(90)),
    # the newest child, groups, links
    "a city that is mostly of the newest order": firsts("city", chance=0.05),
    "a home that is of the newest order": firsts("home", fields=("city", "status")),
    "a last order of those without orders": firsts("last_order", fields=("city", "placed_at"), idle=0.3),
    "a last visit that is newer than orders": firsts("last_visit", fields=("city", "placed_at"), chance=0.12),
    "visitors of a day, some without a booking": periods("visitors", chance=0.3),
    "a planned number of a day": periods("planned"),
    "elements as they were sold": elements(sold=True),
    "bytes that mean something else": binary(related=False),
    "names of owners as they were": owners(frozen=True),
    "ids of all that was ever in a list": id_lists(kept=False),
    "titles of rentals whose film may be wrong": relinked,
    # keys
    "index keys of former tenants": keyed("TENANT#{}", "tenant_id", lambda w, n: f"t{n:03}", more="tenant_plan"),
    "index keys of former states": keyed("STATE#{}", "state", lambda w, n: ["open", "sent", "done", "void"][n % 4]),
    "orders that moved to another user": moved,
    # conditions
    "a count on one day": chance_condition("visits", "day", ["2024-03-01", "2024-03-02", "2024-04-09"]),
    "a sum on one day": chance_condition("score", "ModifiedDate", ["2024-03-01", "2024-03-02", "2024-04-09"], "sum"),
}  # fmt: skip


# ---------------------------------------------------------------- right rules
def copied(spoil: Callable[[Words, Record, Record, Story, Trap], None], *, share: float = 0.05, style: str = "uuid4") -> Callable[[str], Trap]:
    """A live copy, and what is wrong with a share of the targets."""

    def build(seed: str) -> Trap:
        story, words = tell(seed, "name", "name", "user_name", changed=0.0, style=style), Words(seed)
        trap = Trap(tables_of(story, "users", "orders"), active={("copy", "order.user_name")})
        for source, target in story.pairs():
            if words.yes(share):
                spoil(words, source, target, story, trap)
        return trap

    return build


def typed(words: Words, source: Record, target: Record, story: Story, trap: Trap) -> None:
    name = source["name"]
    trap.spoil(target, "user_name", words.one([name.upper(), f" {name}", name.replace(" ", "  "), name[:3] + name[4:]]))


def out_of_order(words: Words, source: Record, target: Record, story: Story, trap: Trap) -> None:
    """A wrong text on one target, though older ones have the right text."""
    own = [(at, one) for at, one in zip(story.times, story.targets, strict=True) if one["sid"] == source["sid"]]
    if target is max(own, key=lambda one: one[0])[1]:
        trap.spoil(target, "user_name", f"import {words.number(10**6)}")


def placeholder(words: Words, source: Record, target: Record, story: Story, trap: Trap) -> None:
    trap.spoil(target, "user_name", "UNKNOWN")


def counters(seed: str) -> Trap:
    """Users with numbers of their orders, some of them wrong by a little."""
    words, users, orders = Words(seed), [], []
    for number in range(2 * PARENTS):
        users.append({"PK": f"USER#{number + 100}", "SK": "USER", "bio": words.text(3)})
        orders += [
            {"PK": users[-1]["PK"], "SK": f"ORDER#{words.ulid()}", "total": words.number(900, 5), "status": words.one(["OPEN", "SENT", "CANCELLED"]), "placed_at": words.time()}
            for _ in range(words.number(9))
        ]
    wanted = {("count", "user.by_status"), ("count", "user.order_count"), ("sum", "user.spent"), ("max", "user.largest_total"), ("mean", "user.average_total")}
    trap = Trap([PlainTable("shop", {"PK": "S", "SK": "S"}, [*users, *orders])], active=wanted)
    for user in users:
        own = [one for one in orders if one["PK"] == user["PK"]]
        user["order_count"] = len(own)
        user["by_status"] = {status: sum(one["status"] == status for one in own) for status in {one["status"] for one in own}}
        user["spent"] = sum(one["total"] for one in own if one["status"] != "CANCELLED")
        if own:
            user["largest_total"] = max(one["total"] for one in own)
            user["average_total"] = mean([one["total"] for one in own], 1)
    for number, off in ((3, -1), (17, 2), (40, 1)):
        trap.spoil(users[number], "order_count", users[number]["order_count"] + off)
    trap.spoil(users[2], "by_status", {**users[2]["by_status"], "OPEN": 70})
    trap.spoil(users[5], "average_total", Decimal("1.5"))
    trap.spoil(users[9], "spent", users[9]["spent"] + 30)
    return trap


RIGHT: Mapping[str, Callable[[str], Trap]] = {
    "a copy with slips of the pen": copied(typed),
    "a copy whose newest are wrong": copied(out_of_order, share=0.6, style="ulid"),
    "a copy with placeholders": copied(placeholder),
    "counters, sums, means and mosts": counters,
    "the newest child as a map": firsts("last_order", fields=("oid", "placed_at", "status"), active=True),
    "an attribute of the newest child": firsts("last_city", active=True),
    "numbers of a day": periods("bookings", active=True),
    "elements of several attributes": elements(sold=False),
    "links by binary keys": binary(related=True),
    "paths beside numbers of the same digits": numbered_paths,
    "copies by an owner of another name": owners(frozen=False),
    "lists of ids": id_lists(kept=True),
}
