"""Rules of every kind, from YAML to what runs: which rules one entry becomes, with which links, listings and defaults."""

import json

import pytest

from sync_rules.language.load import parse_rules
from sync_rules.rules.kinds.counted_rule import Weights
from sync_rules.rules.kinds.derive import DeriveRule

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


# ---------------------------------------------------------------- embed and collect


def test_embed_may_name_entries_by_an_attribute():
    """Through an index an entry then shows whose it is; from the base table it need not."""
    (rule,) = compiled("{embed: order, into: user.orders, by: '{label}', limit: {items: 20}}").values()
    assert (rule.claimed, rule.ids, rule.by.text) == (True, (), "{label}")
    form = "{embed: post, into: user.posts, by: 'at {label}', fields: FIELDS, limit: {items: 20}, via: by_user}"
    (rule,) = compiled(form.replace("FIELDS", "{post_id: id, title: title}")).values()
    assert (rule.claimed, rule.ids) == (True, (("post_id", "id"),))
    (rule,) = compiled("{embed: post, into: user.posts, by: '{post_id} {label}', limit: {items: 20}}").values()
    assert (rule.claimed, rule.ids) == (False, ())


# ---------------------------------------------------------------- derive and path
def test_derive_takes_a_formula_with_tables_or_fields_to_join():
    """Cells of tables are text, whatever YAML reads them as; a blank joins fields if the rule has no `separator`."""
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


# ---------------------------------------------------------------- mirror


@pytest.mark.parametrize(
    ("given", "pairs"),
    [("all", None), ("[name, home.city]", ((("name",), ("name",)), (("home", "city"), ("city",)))), ("{a: b.c}", ((("a",), ("b", "c")),))],
)  # fmt: skip
def test_mirror_says_what_is_mirrored(given, pairs):
    """All, a list under the last names, or new names."""
    (rule,) = compiled(f"{{mirror: user, into: by_email, attributes: {given}}}").values()
    assert rule.attributes == pairs


# ---------------------------------------------------------------- count, sum, min, max


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
    "mean": {"mean": "order.a", "into": "user.o", "where": "a", "places": "1", "shards": "2", "on_delete": "keep"},
    "max": {"max": "order.a", "into": "user.o", "where": "a", "ledger": "ledger", "on_delete": "keep"},
    "call": {"call": "a.b", "on": "order", "when": "[changed]", "watch": "[a]", "where": "a"},
}  # fmt: skip
OTHER = {
    "embed": "post", "collect": "post", "derive": "order.x", "path": "part.x", "mirror": "post", "count": "post",
    "mean": "order.x", "places": "3", "max": "order.x", "call": "a.c", "limit": "{items: 3}", "by": "'{order_id}-x'", "fields": "[b]",
    "order": "-a", "on_overflow": "omit", "where": "x", "on_delete": "delete", "settle_seconds": "7", "omit": "x",
    "strict": "false", "numbers": "false", "separator": "/", "graph": "x", "shards": "3", "depth": "x", "carry": "[b]",
    "link": "{owner: x}", "attributes": "[b]", "per": "x", "weights": "{a: {b: 2}}",
    "mode": "recount", "ledger": "counts", "on": "user", "watch": "[b]", "parent": "OwnerId",
}  # fmt: skip
AS = {"embed": "list", "collect": "'{SK}'", "derive": "'{b}'"}
EACH = {"mirror": "{email: others}"}
INTO = {"mirror": "part"}
WHEN = {"call": "[changed, created]"}


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
def test_a_where_reads_the_one_item_by_bare_names(kind):
    """In rules over one item, bare names in `where` are the item's attributes."""
    wheres = [rule.where for rule in compiled(written(FULL[kind])).values() if getattr(rule, "where", None)]
    assert all(not where.source_paths and where.target_paths for where in wheres)
    assert bool(wheres) == ("where" in FULL[kind])
