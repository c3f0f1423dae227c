"""Small worlds of mirror: an item for an item, under another key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from sync_rules.model.values import Item, same
from tests.simulation.facts import Configuration, Kind, Place, keys, text
from tests.simulation.truths import Items, Truth, Value, put
from tests.simulation.worlds_collected import on


@dataclass(frozen=True)
class Mirrored(Truth):
    """The mirrors in `table`.

    `asked` gives the mirrors that an item asks for, `holder` the source of a mirror, or None. `written` are the
    attributes that the rule writes; empty means all.
    """

    asked: Callable[[Place, Item], Mapping[Place, Item]] = lambda _place, _item: {}
    holder: Callable[[Place, Item], Place | None] = lambda _place, _item: None
    written: tuple[str, ...] = ()

    def owns(self, place: Place) -> bool:
        return place[0] == self.table

    def _claims(self, items: Items) -> dict[Place, dict[Place, Item]]:
        claims: dict[Place, dict[Place, Item]] = {}
        for source, item in items.items():
            for place, mirror in self.asked(source, item).items():
                claims.setdefault(place, {})[source] = mirror
        return claims

    def owned(self, items: Items) -> Mapping[Place, Item]:
        """The right mirrors: a source keeps its key as long as it asks for it, and foreign items stay."""
        claims = self._claims(items)
        right = {place: next(iter(some.values())) for place, some in claims.items()}
        for place, item in items.items():
            if not self.owns(place):
                continue
            holder = self.holder(place, item)
            if holder is None:
                right[place] = item
            elif holder in claims.get(place, {}):
                right[place] = {**self._others(item), **claims[place][holder]}
        return right

    def _others(self, item: Item) -> Item:
        """Attributes of a mirror that the rule does not write."""
        return {name: value for name, value in item.items() if self.written and name not in self.written}

    def unfit(self, items: Items) -> Iterable[Place]:
        """Keys that several sources ask for, or that a foreign item has."""
        taken = {place for place, item in items.items() if self.owns(place) and self.holder(place, item) is None}
        return [place for place, some in self._claims(items).items() if len(some) > 1 or place in taken]

    def mended(self, items: Items, place: Place) -> tuple[Place, Item | None]:
        """Delete a mirror without a source; of several sources with the same key, the last one drops its address."""
        if place in items and self.holder(place, items[place]) is None:
            return place, None
        source = list(self._claims(items)[place])[-1]
        return source, put(items[source], ("email",), None)

    def came_or_went(self, place: Place, old: Item | None, new: Item | None, items: Items) -> str:
        """Put and deleted only while its source says so."""
        if not self.owns(place):
            return ""
        item = new or old or {}
        holder = self.holder(place, item)
        if holder is None:
            return "an item that is nobody's mirror was created or deleted"
        asked = self.asked(holder, items[holder]).get(place) if holder in items else None
        if new is None:
            return "" if asked is None else f"deleted, but {holder} asks for it"
        return "" if self._rightly({}, new, asked) else f"put as {new}, but {holder} asks for {asked}"

    def _rightly(self, old: Item, new: Item, asked: Item | None) -> bool:
        """True if the write of a mirror is right at this moment.

        If all attributes are mirrored, one that the source got since it was read may be missing for now, because no
        check can name it.
        """
        written = [name for name in {**old, **new, **(asked or {})} if not (old and old.get(name) == new.get(name))]
        lately = () if self.written else [name for name in written if name not in new]
        return asked is not None and all(same(new.get(name), asked.get(name)) for name in written if name not in lately)

    def judge(self, place: Place, old: Item, new: Item, items: Items) -> str:
        """Changed only by its source, to what that says at this moment."""
        if not self.owns(place):
            return ""
        holder = self.holder(place, old)
        if holder is None or holder != self.holder(place, new):
            return "somebody else's item was taken"
        asked = self.asked(holder, items[holder]).get(place) if holder in items else None
        return "" if self._rightly(old, new, asked) else f"became {new}, but {holder} asks for {asked}"


def some(**values: Value) -> Item:
    """An item of those values that there are."""
    return {name: value for name, value in values.items() if value is not None}


def mirror() -> Configuration:
    """Orders by department: whose a mirror is says its key, so two never want the same one."""
    rules = """
tables:
  orders: {key: {order: S}}
  by_dept: {key: {dept: S, order: S}}
entities:
  order: {table: orders}
  dept_order: {table: by_dept}
rules:
  by_dept: {mirror: order, into: dept_order, attributes: [name], where: "noise == 'on'"}
"""

    def asked(place: Place, item: Item) -> Mapping[Place, Item]:
        dept = text(item, "dept")
        if place[0] != "orders" or not dept or not on(item):
            return {}
        return {("by_dept", (dept, *place[1])): some(dept=item["dept"], order=item["order"], name=item.get("name"))}

    depts, slots = ("d0", "d1"), ("o0", "o1", "o2")
    mirrors = tuple({"dept": {"S": dept}, "order": {"S": slot}} for dept in depts for slot in slots[:2])
    return Configuration(
        "mirror",
        rules,
        (
            Kind("orders", keys(slots, "order"), ("name",), ("dept",), (*depts, ""), flag="noise"),
            Kind("by_dept", mirrors, copies=(("name",),), made=True),
        ),
        truths=(
            Mirrored(
                "by_dept",
                asked=asked,
                holder=lambda place, _item: ("orders", place[1][1:]),
                written=("dept", "order", "name"),
            ),
        ),
        exact_cost=False,
    )


def mirror_each() -> Configuration:
    """A mirror for each tag of a post, with all that the post has."""
    rules = """
tables:
  posts: {key: {post: S}}
  by_tag: {key: {tag: S, post: S}}
entities:
  post: {table: posts}
  tag_post: {table: by_tag}
rules:
  by_tag: {mirror: post, into: tag_post, each: {tag: tags}, attributes: all}
"""

    def asked(place: Place, item: Item) -> Mapping[Place, Item]:
        tags = item.get("tags", {}).get("SS", ()) if place[0] == "posts" else ()
        return {("by_tag", (tag, *place[1])): {**item, "tag": {"S": tag}} for tag in tags}

    mirrors = tuple({"tag": {"S": tag}, "post": {"S": post}} for tag in "ac" for post in ("p0", "p2"))
    return Configuration(
        "mirror-each",
        rules,
        (
            Kind("posts", keys(("p0", "p1", "p2"), "post"), ("name", "tags"), flag="noise", sets=("tags",)),
            Kind("by_tag", mirrors, copies=(("name",),), made=True),
        ),
        truths=(Mirrored("by_tag", asked=asked, holder=lambda place, _item: ("posts", place[1][1:])),),
        exact_cost=False,
    )


def mirror_taken() -> Configuration:
    """Users by email: two may ask for the same key, and a foreign item may have it already."""
    rules = """
tables:
  users: {key: {user: S}}
  emails: {key: {email: S}}
entities:
  user: {table: users}
  user_by_email: {table: emails}
rules:
  by_email: {mirror: user, into: user_by_email, attributes: {name: user_name}}
"""

    def asked(place: Place, item: Item) -> Mapping[Place, Item]:
        email = text(item, "email")
        if place[0] != "users" or not email:
            return {}
        return {("emails", (email,)): some(email=item["email"], user=item["user"], user_name=item.get("name"))}

    def holder(_place: Place, item: Item) -> Place | None:
        return ("users", (user,)) if (user := text(item, "user")) else None

    emails, users = ("e0", "e1", "e2"), ("u0", "u1", "u2")
    return Configuration(
        "mirror-taken",
        rules,
        (
            Kind("users", keys(users, "user"), ("name",), ("email",), (*emails, ""), first_links=("e0", "e1", None)),
            Kind("emails", keys(emails, "email"), (), ("user",), users, (("user_name",),), made=True),
        ),
        truths=(Mirrored("emails", asked=asked, holder=holder, written=("email", "user", "user_name")),),
        exact_cost=False,
        cost_each=2,  # the one lets go, then the other takes it
    )


WORLDS: tuple[Configuration, ...] = (mirror(), mirror_each(), mirror_taken())
