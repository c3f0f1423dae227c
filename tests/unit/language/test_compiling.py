"""Rules of every kind, from YAML to what runs: which rules one entry becomes, with which links, listings and defaults."""

import json

import pytest

from sync_rules.language.load import check_rules, parse_rules
from sync_rules.rules.kinds.archive import ArchiveRule
from sync_rules.rules.kinds.call import CallRule
from sync_rules.rules.kinds.collect import CollectRule
from sync_rules.rules.kinds.copy import CopyRule
from sync_rules.rules.kinds.counted_rule import Weights
from sync_rules.rules.kinds.derive import DeriveRule
from sync_rules.rules.kinds.embed import EmbedRule
from sync_rules.rules.kinds.mirror import MirrorRule
from sync_rules.rules.kinds.path import TreeRule
from sync_rules.rules.kinds.rank import RankRule
from sync_rules.rules.kinds.recount import RecountRule
from sync_rules.rules.kinds.tally import TallyRule, TotalRule

BASE = """
tables:
  shop:   {key: {PK: S, SK: S}, indexes: {GSI1: {GSI1PK: S, GSI1SK: S}, GSI2: {ParentId: S}, GSI3: {OwnerId: S}}}
  ledger: {key: {PK: S, SK: S}}
  counts: {key: {PK: S, SK: S}}
  posts:  {key: {post_id: S}, indexes: {by_user: {user_id: S}}}
entities:
  user:  {table: shop, key: {PK: "USER#{user_id}", SK: PROFILE}}
  order: {table: shop, key: {PK: "USER#{user_id}", SK: "ORDER#{order_id}"}}
  part:  {table: shop, key: {PK: "PART#{part_id}", SK: PART}}
  by_email: {table: shop, key: {PK: "EMAIL#{email}", SK: EMAIL, GSI1PK: "OWNER#{owner}", GSI1SK: "{since}"}}
  post:  {table: posts}
rules:
"""


def loaded(form, **environ):
    return parse_rules(f"{BASE}  r: {form}\n", environ=environ)


def compiled(form, **environ):
    """The rules that one entry becomes, by what follows its name."""
    return {name.removeprefix("r").lstrip("."): rule for name, rule in loaded(form, **environ).rules.items()}


def ends(link):
    return [(field, ".".join(ref.path)) for field, ref in link]


# ---------------------------------------------------------------- embed and collect
def test_embed_defaults_are_a_map_by_the_childs_own_key():
    """Embed defaults: a map by the child's own key, all attributes but the key, nothing done to orphans."""
    (rule,) = compiled("{embed: order, into: user.orders, limit: {items: 20}}").values()
    assert isinstance(rule, EmbedRule)
    assert (rule.source.name, rule.target.name, rule.into) == ("order", "user", ("orders",))
    assert (rule.by.text, rule.fields, rule.shape, rule.order, rule.on_overflow) == (
        "{order_id}", None, "map", None, "fail",
    )  # fmt: skip
    assert (rule.max_items, rule.max_bytes, ends(rule.link)) == (20, None, [("user_id", "PK")])
    assert (rule.find.index, rule.settle_seconds) == (None, 60)


def test_embed_options_reach_the_pipeline():
    """The long form says all of them; sizes are in units of 1024."""
    rules = compiled(
        "{embed: post, into: user.feed.posts, by: '{post_id}', fields: {title: t, meta.lang: lang},"
        " order: -created_at, limit: {items: 5, bytes: 2 KB}, on_overflow: oldest, where: public, via: by_user,"
        " link: {user_id: user_id}, on_delete: delete, settle_seconds: 5}"
    )
    rule, parent = rules[""], rules["parent"]
    assert rule.into == ("feed", "posts")
    assert rule.fields == ((("title",), "t"), (("meta", "lang"), "lang"))
    assert (rule.shape, rule.order, rule.max_items, rule.max_bytes) == ("map", (("created_at",), True), 5, 2048)
    assert (rule.on_overflow, rule.where.target_paths, rule.find.index) == ("oldest", (("public",),), "by_user")
    assert isinstance(parent, CopyRule)
    assert (parent.source, parent.target, parent.mapping, parent.on_delete) == (rule.target, rule.source, (), "delete")
    assert (parent.find, parent.where, parent.settle_seconds, parent.title) == (rule.find, rule.where, 5, "r")


def test_embed_may_name_entries_by_an_attribute():
    """Through an index an entry then shows whose it is; from the base table it need not."""
    (rule,) = compiled("{embed: order, into: user.orders, by: '{label}', limit: {items: 20}}").values()
    assert (rule.claimed, rule.ids, rule.by.text) == (True, (), "{label}")
    form = "{embed: post, into: user.posts, by: 'at {label}', fields: FIELDS, limit: {items: 20}, via: by_user}"
    (rule,) = compiled(form.replace("FIELDS", "{post_id: id, title: title}")).values()
    assert (rule.claimed, rule.ids) == (True, (("post_id", "id"),))
    (rule,) = compiled("{embed: post, into: user.posts, by: '{post_id} {label}', limit: {items: 20}}").values()
    assert (rule.claimed, rule.ids) == (False, ())


def test_embed_as_a_list_is_listed_by_the_base_table():
    """Even where an index would be closer: through an index a list cannot be kept."""
    tables = (
        "tables: {users: {key: {tenant: S, user_id: S}}, posts: {key: {tenant: S, post_id: S},"
        " indexes: {by_both: {partition: {tenant: S, user_id: S}}}}}\n"
        "entities: {user: {table: users}, post: {table: posts}}\n"
    )
    form = "{embed: post, into: user.posts, as: list, order: post_id, limit: {items: 9}}"
    rule = parse_rules(f"{tables}rules: {{r: {form}}}").rules["r"]
    assert (rule.shape, rule.find.index) == ("list", None)


def test_embed_of_one_child_per_parent_is_called_by_its_entity():
    """A child whose key is its parent's has nothing of its own to be called by."""
    (rule,) = parse_rules(
        BASE.replace('PK: "PART#{part_id}", SK: PART', 'PK: "USER#{user_id}", SK: CART')
        + "  r: {embed: part, into: user.cart, limit: {items: 1}}\n"
    ).rules.values()
    assert rule.by.text == "part"


def test_collect_reaches_the_pipeline():
    """The link is that of the node on its edges; the set is a top-level attribute."""
    rules = compiled(
        "{collect: post, into: user.posts, as: '{post_id}-{kind}', omit: kind == 'NOTE', where: public, strict: true,"
        " on_delete: restrict}"
    )
    rule, parent = rules[""], rules["parent"]
    assert isinstance(rule, CollectRule)
    assert (rule.source.name, rule.target.name, rule.into, rule.numbers) == ("post", "user", "posts", False)
    assert (ends(rule.link), rule.find.index, rule.strict) == ([("user_id", "user_id")], "by_user", True)
    assert (rule.element.fields, rule.omit.target_paths) == (("post_id", "kind"), (("kind",),))
    assert (parent.on_delete, parent.find) == ("restrict", rule.find)
    seen = [parent.where.holds({}, {"kind": {"S": kind}, "public": {"BOOL": True}}) for kind in ("NOTE", "TEXT")]
    assert seen == [False, True]


def test_collect_of_numbers_is_one_whole_field():
    """A set of numbers."""
    (rule,) = compiled("{collect: post, into: user.posts, as: '{post_id}', numbers: true}").values()
    assert rule.numbers


# ---------------------------------------------------------------- derive and path
def test_derive_takes_a_formula_with_tables_or_fields_to_join():
    """Cells of tables are text, whatever YAML reads them as; joined fields stand a blank apart unless it is said."""
    (rule,) = compiled(
        "{derive: order.label, as: '{role:rank}-{role}', map: {rank: {LEAD: 500, HALF: 0.10, X: y}}}"
    ).values()
    assert isinstance(rule, DeriveRule)
    assert (rule.source, rule.path, rule.formula.fields) == (rule.target, ("label",), ("role",))
    assert rule.formula.tables == {"rank": {"LEAD": "500", "HALF": "0.1", "X": "y"}}
    joined = [compiled(f"{{derive: user.full, join: [a, b.c]{more}}}")[""] for more in ("", ", separator: '; '")]
    assert [(rule.formula.fields, rule.formula.separator) for rule in joined] == [
        (("a", "b.c"), " "),
        (("a", "b.c"), "; "),
    ]


def test_derive_may_fill_the_key_whose_template_names_its_field():
    """A field bound only by the derived key is read as an attribute; any other rule reads the field from that key."""
    base = BASE.replace('{PK: "PART#{part_id}", SK: PART}', '{PK: "PART#{part_id}", SK: PART, GSI1PK: "ROLE#{role}"}')
    rule = parse_rules(f"{base}  r: {{derive: part.GSI1PK, as: 'ROLE#{{role}}'}}\n").rules["r"]
    item = {"PK": {"S": "PART#1"}, "SK": {"S": "PART"}, "role": {"S": "LEAD"}, "GSI1PK": {"S": "ROLE#OLD"}}
    assert rule.desired((), item) == {("GSI1PK",): {"S": "ROLE#LEAD"}}
    other = parse_rules(f"{base}  r: {{derive: part.label, as: '{{role}}'}}\n").rules["r"]
    assert other.desired((), item) == {("label",): {"S": "OLD"}}


def test_path_defaults_and_options():
    """The parent is named by the last field of the key, in the attribute that is given."""
    (rule,) = compiled("{path: part.Path, parent: ParentId}").values()
    assert isinstance(rule, TreeRule)
    assert (rule.path, rule.separator, rule.own.field, ends(rule.link)) == (
        ("Path",), "|", "part_id", [("part_id", "ParentId")],
    )  # fmt: skip
    assert (rule.graph, rule.depth, rule.carry, rule.shards, rule.on_delete) == (None, None, (), 1, "keep")
    assert rule.find.index == "GSI2"
    (rule,) = compiled(
        "{path: part.Path, parent: ParentId, separator: /, graph: GraphId, shards: 4, depth: Depth, carry: [tenant],"
        " via: GSI2, on_delete: clear, settle_seconds: 9}"
    ).values()
    assert (rule.separator, rule.graph, rule.depth, rule.carry) == ("/", ("GraphId",), ("Depth",), (("tenant",),))
    assert (rule.shards, rule.on_delete, rule.settle_seconds) == (4, "clear", 9)


def test_path_shares_the_other_fields_of_the_key():
    """Within a tenant: the parent is of the same one, and its link comes first."""
    rules = parse_rules(
        "tables: {nodes: {key: {tenant: S, id: S}, indexes: {kids: {partition: {tenant: S, up: S}}}}}\n"
        "entities: {node: {table: nodes}}\n"
        "rules: {r: {path: node.way, parent: up}}\n"
    )
    rule = rules.rules["r"]
    assert ends(rule.link) == [("id", "up"), ("tenant", "tenant")]
    assert (rule.own.field, rule.find.index) == ("id", "kids")


def test_children_are_listed_by_the_key_that_holds_most_of_their_parent():
    """The table lists a whole tenant; the index lists what belongs to one parent. `via` says otherwise."""
    tables = (
        "tables: {users: {key: {tenant: S, user_id: S}}, posts: {key: {tenant: S, post_id: S},"
        " indexes: {by_user: {user_id: S}, by_both: {partition: {tenant: S, user_id: S}}}}}\n"
        "entities: {user: {table: users}, post: {table: posts}}\n"
    )
    for via, index in (("", "by_both"), (", via: by_user", "by_user")):
        form = f"{{embed: post, into: user.posts, limit: {{items: 9}}{via}}}"
        assert parse_rules(f"{tables}rules: {{r: {form}}}").rules["r"].find.index == index


# ---------------------------------------------------------------- mirror
def test_mirror_fills_the_keys_of_its_entity_from_the_source():
    """Mirror fills the keys of its entity and its indexes from fields of the same name, or as `link` says."""
    (rule,) = compiled("mirror user into by_email").values()
    assert isinstance(rule, MirrorRule)
    assert ends(rule.fields) == [("email", "email"), ("owner", "owner"), ("since", "since")]
    assert (rule.attributes, rule.each, rule.where) == ((), None, None)
    (rule,) = compiled(
        "{mirror: user, into: by_email, link: {owner: user_id, team: user_id}, attributes: {name: user_name},"
        " each: {email: emails}, where: active}"
    ).values()
    assert ends(rule.fields) == [("owner", "PK"), ("since", "since"), ("team", "PK")]
    assert (rule.attributes, rule.each) == (((("name",), ("user_name",)),), ("email", ("emails",)))


@pytest.mark.parametrize(
    ("given", "pairs"),
    [("all", None), ("[name, home.city]", ((("name",), ("name",)), (("home", "city"), ("city",)))), ("{a: b.c}", ((("a",), ("b", "c")),))],
)  # fmt: skip
def test_mirror_says_what_is_mirrored(given, pairs):
    """All, a list under the last names, or new names."""
    (rule,) = compiled(f"{{mirror: user, into: by_email, attributes: {given}}}").values()
    assert rule.attributes == pairs


def test_mirror_may_name_what_it_holds_anyway():
    """The identity of the source under its own name, or an attribute that an index holds as it is."""
    (rule,) = compiled("{mirror: user, into: by_email, attributes: [user_id, ParentId]}").values()
    assert rule.attributes == ((("user_id",), ("user_id",)), (("ParentId",), ("ParentId",)))


# ---------------------------------------------------------------- count, sum, min, max
@pytest.mark.parametrize(
    ("form", "function", "of"),
    [
        ("count order into user.orders", "count", None),
        ("sum order.total into user.spent", "sum", ("total",)),
        ("{count: order, into: user.orders}", "count", None),
        ("{sum: order.total, into: user.spent}", "sum", ("total",)),
    ],
)
def test_count_with_a_ledger_is_books_and_a_total(form, function, of):
    """Two rules, between which the totals stand; no listing is needed, and the ledger is of no entity of the file."""
    rules = loaded(form)
    total, tally = rules.rules["r"], rules.rules["r.ledger"]
    assert isinstance(total, TotalRule)
    assert isinstance(tally, TallyRule)
    assert (tally.function, tally.of, tally.shards, tally.find) == (function, of, 1, None)
    assert (tally.source.name, tally.parent, total.target.name) == ("order", total.target, "user")
    assert (tally.totals, total.function, total.per) == (total.source, function, False)
    assert {tally.target.table.name, total.source.table.name} == {"ledger"}
    assert {tally.target.name, total.source.name} <= rules.entities.keys()
    assert {table.name for table in rules.streamed_tables} == {"shop", "ledger"}


def test_count_options_reach_both_rules():
    """Weights are exact text."""
    rules = compiled(
        "{count: order, into: user.n, where: open, per: status, weights: {role: {LEAD: 3, HALF: 0.1, NONE: -2}},"
        " ledger: counts, shards: 4, on_delete: delete}"
    )
    total, tally, parent = rules[""], rules["ledger"], rules["parent"]
    assert tally.weights == Weights(("role",), {"LEAD": "3", "HALF": "0.1", "NONE": "-2"})
    assert (tally.per, tally.where.target_paths, tally.shards) == (("status",), (("open",),), 4)
    assert (total.per, total.shards, total.source.table.name) == (True, 4, "counts")
    assert (parent.source, parent.target, parent.where) == (total.target, tally.source, tally.where)


def test_weights_have_all_digits_of_the_file():
    """A weight, and a value of a derive's table, is what the file says; one that a float holds is spelt as before."""
    long = "1.00000000000000000000001"
    weights = f"{{values: {{role: {{LEAD: {long}, HALF: 1.0}}}}, default: 0.1}}"
    tally = compiled(f"{{count: order, into: user.n, weights: {weights}}}")["ledger"]
    assert tally.weights == Weights(("role",), {"LEAD": long, "HALF": "1.0"}, default="0.1")
    rule = compiled(f"{{derive: user.n, as: '{{name:t}}', map: {{t: {{a: {long}, b: 1.0}}}}}}")[""]
    assert rule.formula.tables["t"] == {"a": long, "b": "1.0"}


@pytest.mark.parametrize("mode", ["ledger", "recount"])
def test_weights_have_a_form_with_a_default(mode):
    """true, false and null are values there. What the short form says as well has the short form's fingerprint, and an
    attribute may be called `values` or `default`.
    """

    def weighed(weights):
        rules = compiled(f"{{count: order, into: user.n, weights: {weights}, mode: {mode}}}")
        return rules["ledger" if mode == "ledger" else ""]

    full = weighed("{values: {featured: {true: 3, null: 0, some: 2}}, default: 0.5}").weights
    assert full == Weights(
        ("featured",), {"true": "3", "null": "0", "some": "2"}, {"true": "3", "null": "0"}, default="0.5"
    )
    short = weighed("{role: {LEAD: 3}}")
    for same in ("{values: {role: {LEAD: 3}}}", "{values: {role: {LEAD: 3}}, default: 0}"):
        assert weighed(same).body() == short.body()
        assert weighed(same).weights == short.weights
    others = ("{role: {true: 3}}", "{values: {role: {true: 3}}}", "{values: {role: {true: 3}}, default: 1}")
    assert len({json.dumps(weighed(one).body()) for one in others}) == len(others)
    for name in ("values", "default"):
        assert weighed(f"{{{name}: {{LEAD: 3}}}}").weights == Weights((name,), {"LEAD": "3"})
    assert weighed("{values: {values: {LEAD: 3}}, default: 1}").weights == Weights(("values",), {"LEAD": "3"}, {}, "1")


@pytest.mark.parametrize("function", ["min", "max"])
def test_least_and_greatest_with_a_ledger_are_ranks_and_their_end(function):
    """One rule keeps the items in order, the other reads the first or the last."""
    rules = compiled(f"{{{function}: order.total, into: user.best, where: open}}")
    ranks, end = rules["ledger"], rules[""]
    assert isinstance(ranks, RankRule)
    assert isinstance(end, RecountRule)
    assert (ranks.function, ranks.of, ranks.where.text, ranks.parent) == (function, ("total",), "open", end.target)
    assert (end.source, end.ends, end.function, end.where) == (ranks.target, True, function, None)
    assert end.find.index is None
    assert (compiled(f"{function} order.total into user.best").keys(), len(rules)) == (rules.keys(), 2)


@pytest.mark.parametrize("function", ["count", "sum", "min", "max"])
def test_recount_is_one_rule_that_lists_the_base_table(function):
    """No ledger is needed."""
    what = "order" if function == "count" else "order.total"
    (rule,) = compiled(f"{{{function}: {what}, into: user.n, mode: recount, per: status}}").values()
    assert isinstance(rule, RecountRule)
    assert (rule.function, rule.per, rule.ends, rule.find.index) == (function, ("status",), False, None)
    assert rule.of == (None if function == "count" else ("total",))


# ---------------------------------------------------------------- archive and call
def test_archive_takes_its_bucket_from_the_environment():
    """Like a table's name: the variable, or its default."""
    form = "{archive: order, into: 's3://${BUCKET:-kept}/orders', when: deleted, where: paid}"
    for environ, bucket in (({}, "kept"), ({"BUCKET": "shop-kept"}, "shop-kept")):
        (rule,) = compiled(form, **environ).values()
        assert isinstance(rule, ArchiveRule)
        assert (rule.bucket, rule.prefix, rule.when, rule.where.text) == (bucket, "orders/", "deleted", "paid")
    assert compiled("{archive: order, into: 's3://kept'}")[""].when == "expired"


def test_call_watches_all_changes_unless_told():
    """Which, and of what."""
    (rule,) = compiled("{call: shop.hooks.notify, on: order}").values()
    assert isinstance(rule, CallRule)
    assert (rule.function, rule.when, rule.watch, rule.where) == (
        "shop.hooks.notify", {"created", "changed", "deleted"}, (), None,
    )  # fmt: skip
    (rule,) = compiled("{call: a.b, on: order, when: [changed], watch: [status, user_id], where: open}").values()
    assert (rule.when, rule.watch) == ({"changed"}, (("status",), ("user_id",)))


# ---------------------------------------------------------------- what all have in common
FULL = {
    "embed": {"embed": "order", "into": "user.o", "limit": "{items: 2}", "by": "'{order_id}'", "fields": "[a]",
              "as": "map", "order": "a", "on_overflow": "fail", "where": "a", "on_delete": "keep", "settle_seconds": "6"},
    "collect": {"collect": "order", "into": "user.o", "as": "'{order_id}'", "where": "a", "omit": "b",
                "strict": "true", "numbers": "true", "on_delete": "keep", "settle_seconds": "6"},
    "derive": {"derive": "order.o", "as": "'{a}'"},
    "path": {"path": "part.o", "parent": "ParentId", "separator": "'|'", "graph": "g", "shards": "2", "depth": "d",
             "carry": "[a]", "on_delete": "keep", "settle_seconds": "6"},
    "mirror": {"mirror": "user", "into": "by_email", "link": "{owner: user_id}", "attributes": "[a]",
               "each": "{email: emails}", "where": "a"},
    "count": {"count": "order", "into": "user.o", "where": "a", "per": "b", "weights": "{a: {b: 1}}", "mode": "ledger",
              "ledger": "ledger", "shards": "2", "on_delete": "keep"},
    "max": {"max": "order.a", "into": "user.o", "where": "a", "ledger": "ledger", "on_delete": "keep"},
    "archive": {"archive": "order", "when": "expired", "into": "s3://kept/a/", "where": "a"},
    "call": {"call": "a.b", "on": "order", "when": "[changed]", "watch": "[a]", "where": "a"},
}  # fmt: skip
OTHER = {
    "embed": "post", "collect": "post", "derive": "order.x", "path": "part.x", "mirror": "post", "count": "post",
    "max": "order.x", "archive": "user", "call": "a.c", "limit": "{items: 3}", "by": "'{order_id}-x'", "fields": "[b]",
    "order": "-a", "on_overflow": "omit", "where": "x", "on_delete": "delete", "settle_seconds": "7", "omit": "x",
    "strict": "false", "numbers": "false", "separator": "/", "graph": "x", "shards": "3", "depth": "x", "carry": "[b]",
    "link": "{owner: x}", "attributes": "[b]", "per": "x", "weights": "{a: {b: 2}}",
    "mode": "recount", "ledger": "counts", "on": "user", "watch": "[b]", "parent": "OwnerId",
}  # fmt: skip
AS = {"embed": "list", "collect": "'{SK}'", "derive": "'{b}'"}
EACH = {"mirror": "{email: others}"}
INTO = {"mirror": "part", "archive": "s3://kept/b/"}
WHEN = {"archive": "deleted", "call": "[changed, created]"}


def changed(kind, option):
    """The options of a rule, with one of them changed and what does not go with that taken out."""
    special = {"as": AS.get(kind), "into": INTO.get(kind, "user.x"), "when": WHEN.get(kind), "each": EACH.get(kind)}
    options = {**FULL[kind], option: special.get(option) or OTHER[option]}
    without = {"mode": ("ledger", "shards"), "mirror": (), "into": ("each", "link") if kind == "mirror" else ()}
    if kind == "collect" and option in ("as", "collect"):
        options |= {"numbers": "false", "as": options["as"] if option == "as" else "'{post_id}'"}
    if kind == "embed" and option == "embed":
        options["by"] = "'{post_id}'"
    return {name: value for name, value in options.items() if name not in without.get(option, ())}


def written(options):
    return "{" + ", ".join(f"{name}: {value}" for name, value in options.items()) + "}"


@pytest.mark.parametrize(("kind", "option"), [(kind, option) for kind in FULL for option in FULL[kind]])
def test_fingerprint_changes_with_every_option(kind, option):
    """Each option of each kind changes the rule's fingerprint."""
    one, other = (loaded(written(options)).fingerprint for options in (FULL[kind], changed(kind, option)))
    assert one != other


@pytest.mark.parametrize("kind", FULL)
def test_every_rule_is_named_in_the_file(kind):
    """Every rule made from an entry has the entry's name, alone or with a part."""
    rules = compiled(written({**FULL[kind], **({"on_delete": "delete"} if "on_delete" in FULL[kind] else {})}))
    assert "" in rules
    assert {rule.title for rule in rules.values()} == {"r"}
    assert {rule.kind for name, rule in rules.items() if name != "parent"} == {kind}


@pytest.mark.parametrize("kind", FULL)
def test_a_where_reads_the_one_item_by_bare_names(kind):
    """In rules over one item, bare names in `where` are the item's attributes."""
    wheres = [rule.where for rule in compiled(written(FULL[kind])).values() if getattr(rule, "where", None)]
    assert all(not where.source_paths and where.target_paths for where in wheres)
    assert bool(wheres) == ("where" in FULL[kind])


def test_tables_of_a_ledger_and_its_entities_are_not_unused():
    """No warning about them, and they are not counted as entities of the file."""
    rules, problems = check_rules(f"{BASE}  r: count order into user.orders\n", {})
    assert [problem.message for problem in problems if "ledger" in problem.message] == []
    assert rules is not None
