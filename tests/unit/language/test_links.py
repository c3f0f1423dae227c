"""Links and finding: where a target names its source, and the Query that finds the targets of a source."""

from itertools import chain, product

import pytest

from sync_rules.language.load import check_rules, parse_rules
from sync_rules.model import lookups
from sync_rules.model.entities import Ref
from sync_rules.model.lookups import Pointer
from sync_rules.model.templates import parse_template
from tests.support.builders import entity, key, m, s, table
from tests.support.worlds import Scene


def test_find_fills_keys_of_several_attributes():
    """Up to four attributes in each key: all of the partition's, and of the sort key's as many as are known."""
    rule = parse_rules("""
tables:
  users: {key: {tenant: S, user_id: S}}
  tasks: {key: {task_id: S}, indexes: {by_user: {partition: {tenant: S}, sort: {user_id: S, due: S, rank: N}}}}
entities: {user: {table: users}, task: {table: tasks, key: {due: "DUE#{day}"}, required: [rank]}}
rules: {names: copy user.name into task.user_name}
""").rules["names"]
    asked = rule.conditions(key(rule.source.table, "t", "7"))
    assert asked.equals == (("tenant", s("t")), ("user_id", s("7")))
    assert asked.begins_with == ("due", "DUE#")


def test_find_prefers_a_key_that_depends_on_the_source():
    """A fixed partition lists everybody's targets, so an index that the link fills comes first."""
    rules = parse_rules("""
tables:
  authors: {key: {author_id: S}}
  books: {key: {kind: S, book_id: S}, indexes: {by_author: {author_id: S}}}
entities: {author: {table: authors}, book: {table: books, key: {kind: BOOK}}}
rules: {names: copy author.name into book.author_name}
""").rules
    assert rules["names"].find.index == "by_author"


USERS = "users: {key: {user_id: S}}"
TENANTS = "users: {key: {tenant: S, user_no: N}}"


@pytest.mark.parametrize(
    ("users", "target"),
    [
        (USERS, "{table: tasks}"),
        (TENANTS, "{table: tasks}"),
        (USERS, '{table: tasks, key: {SK: "USER#{user_id}"}}'),
        (USERS, '{table: tasks, key: {SK: "TASK#{no}#USER#{user_id}"}}'),
        (TENANTS, '{table: tasks, key: {SK: "USER#{user_no}"}}'),
    ],
)
def test_missing_index_is_named_as_it_can_be_pasted(users, target):
    """An error about a missing index prints one that can be pasted into the rules file and cures the error."""
    text = (
        f"tables: {{{users}, tasks: {{key: {{PK: S, SK: S}}, indexes: {{HERE}}}}}}\n"
        f"entities: {{user: {{table: users}}, task: {target}}}\n"
        "rules: {r: copy user.name into task.user_name}\n"
    )
    _, problems = check_rules(text.replace("HERE", ""), {})
    (cure,) = (problem.cure for problem in problems if problem.code == "SR201")
    added, *told = cure.split("; ")
    where, index = added.split(": ", 1)
    assert where == "add an index under tables.tasks.indexes"
    text = text.replace("HERE", index)
    for each in told:  # what stands only inside the key gets an attribute of its own, and a rule that writes it
        made, rule = each.split("key: {")[1].split("}, and write it by a rule ")
        text = text.replace("key: {SK:", f"key: {{{made}, SK:").replace("rules: {", f"rules: {{d: {rule}, ")
    rules = parse_rules(text, environ={})
    assert rules.rules["r"].find.index == index.partition(":")[0]
    written = {path[0] for rule in rules.rules.values() for path in rule.copies}
    inside = rules.entities["task"].bound_fields.keys()
    assert {attribute.name for attribute, _ in rules.rules["r"].find.partition}.isdisjoint(inside - written)


@pytest.mark.parametrize("cure", range(3), ids=["key template", "link", "index"])
def test_missing_way_is_cured_by_what_an_index_holds_already(cure):
    """An index by an attribute of the source's key lists the targets if the file describes its content. Each cure makes
    `check` pass, and the copy comes.
    """
    text = """
tables: {users: {key: {user_id: S}}, orders: {key: {order_id: S}, indexes: {by_user: {user_id: S}}}}
entities: {user: {table: users, key: {user_id: "USER#{id}"}}, order: {table: orders}}
rules: {names: {copy: user.name, into: order.user_name}}
"""
    _, (problem,) = check_rules(text, {})
    assert problem.code == "SR201"
    key, link, added = problem.cure.split("; ")
    cures = (
        ("order: {table: orders", f"order: {{table: orders, {key.partition('entities.order.')[2]}"),
        ("order.user_name", f"order.user_name, {link.partition('say ')[2].removesuffix(' in the rule')}"),
        ("indexes: {", f"indexes: {{{added.partition('indexes: ')[2]}, "),
    )
    cured = text.replace(*cures[cure])
    assert check_rules(cured, {})[1] == []
    scene = Scene(parse_rules(cured))
    scene.put("users", {"user_id": {"S": "USER#7"}, "name": {"S": "Ada"}})
    held = ({"user_id": {"S": "USER#7"}}, {"user_id": {"S": "7"}}, {"id": {"S": "7"}})[cure]
    order = scene.put("orders", {"order_id": {"S": "1"}, **held})
    scene.rest()
    assert scene.item(order)["user_name"] == {"S": "Ada"}


@pytest.mark.parametrize(
    ("cart", "link", "hint"),
    [
        ("{table: carts}", "onwer", True),
        ("{table: carts}", "kinds", False),  # the partition of by_kind needs another attribute, too
        ('{table: carts, key: {owner: "USER#{x}"}}', "owner", False),  # the link has this name already
    ],
)
def test_missing_way_hints_at_an_index_that_another_spelling_would_find(cart, link, hint):
    """A name is meant if an index by it alone lists the targets; a name that would change nothing is not."""
    _, problems = check_rules(
        f"""
tables:
  users: {{key: {{user_id: S}}}}
  carts: {{key: {{cart_id: S}}, indexes: {{by_owner: {{owner: S}}, by_kind: {{partition: {{kind: S, shop: S}}}}}}}}
entities: {{user: {{table: users}}, cart: {cart}}}
rules: {{names: {{copy: user.name, into: cart.user_name, link: {{user_id: {link}}}}}}}
""",
        {},
    )
    (problem,) = (one for one in problems if one.severity == "error")
    assert (problem.code, "Did you mean 'owner' (index 'by_owner')?" in problem.message) == ("SR201", hint)
    assert hint or "Did you mean" not in problem.message


# ---------------------------------------------------------------- what is remembered of links
LINKED = (("no", Ref("no", ("owner", "no"))), ("kind", Ref("kind", ("at",), parse_template("K#{kind}"))))
OWNER = entity("owner", table("owners", {"PK": "S", "no": "N"}), PK="OWNER#{kind}#{no}", no="{no}")
NUMBERS = [
    None,
    *({kind: text} for kind in "SN" for text in ("1", "2", "1.0")),
    {"B": b"1"},
    {"NULL": True},
    m(),
    {"L": []},
]
KINDS = [None, *(s(text) for text in ("K#a", "K#b", "K#", "a", "1")), {"N": "1"}]
POINTING = [
    ({} if no is None else {"owner": m(no=no)}) | ({} if kind is None else {"at": kind})
    for no, kind in product(NUMBERS, KINDS)
]


@pytest.mark.parametrize("kept", [3, lookups.LINKS_KEPT_MAX])
def test_pointer_tells_the_same_whatever_it_remembers(kept, monkeypatch):
    """A pointer with a cache gives the same keys as one without, and keeps a bounded number."""
    monkeypatch.setattr(lookups, "LINKS_KEPT_MAX", kept)
    asked = Pointer(LINKED, OWNER)
    for item in chain.from_iterable(product(POINTING, POINTING)):
        fields = {field: value for field, ref in LINKED if (value := ref.read(item)) is not None}
        assert asked(item) == Pointer(LINKED, OWNER)(item) == OWNER.key_of(fields)
        assert len(asked._known) <= kept


COMPANY = "people: {key: {EmployeeID: S}, indexes: {by_manager: {ManagerID: S}}}, ledger: {key: {PK: S, SK: S}}"
PARTS = "people: {key: {EmployeeID: S}}, ledger: {key: {PK: S, SK: S}}"
OFFICES = "people: {key: {city: S, name: S}, indexes: {by_boss: {city: S, boss: S}}}, ledger: {key: {PK: S, SK: S}}"
TASKS = "people: {key: {PK: S, SK: S}, indexes: {gsi: {GPK: S, GSK: S}}}, ledger: {key: {PK: S, SK: S}}"
OF_ONE_ENTITY = (
    "count: person, into: person.n",
    "sum: person.pay, into: person.n",
    "max: person.pay, into: person.n",
    "collect: person.pay, into: person.n",
)


@pytest.mark.parametrize("kind", OF_ONE_ENTITY)
@pytest.mark.parametrize(
    ("tables", "entity", "name"),
    [
        (COMPANY, "table: people", ("EmployeeID", "ManagerID")),
        (PARTS, "table: people", ("EmployeeID", "parent_EmployeeID")),
        (OFFICES, "table: people", ("name", "boss")),
        (TASKS, 'table: people, key: {PK: "T#{id}", SK: T, GPK: "OF#{up}", GSK: "{id}"}', ("id", "up")),
    ],
)
def test_a_link_of_items_to_themselves_is_refused_and_the_cure_works(kind, tables, entity, name):
    """The cure, applied as it is written, leads to another item, by an attribute of an index if there is one."""
    head = f"tables: {{{tables}}}\nentities: {{person: {{{entity}}}}}\nrules:\n"
    _, (problem,) = check_rules(f"{head}  r: {{{kind}}}\n")
    link = f"link: {{{name[0]}: {name[1]}}}"
    assert (problem.code, problem.location.key_path[-1]) == ("SR231", "link")
    assert link in problem.cure
    assert check_rules(f"{head}  r: {{{kind}, {link}}}\n")[0] is not None


@pytest.mark.parametrize("kind", OF_ONE_ENTITY)
def test_a_link_of_items_to_themselves_stays_where_it_is_written_out(kind):
    """Who writes the link out means it; and a copy within one item needs no link."""
    head = f"tables: {{{COMPANY}}}\nentities: {{person: {{table: people}}}}\nrules:\n"
    for rule in (f"{kind}, link: {{EmployeeID: EmployeeID}}", "copy: person.name, into: person.shown"):
        assert check_rules(f"{head}  r: {{{rule}}}\n")[0] is not None


CASED = """
tables: {shop: {key: {pk: S, sk: S}, indexes: {by_user: {user: S}, GSI1: {gsi1pk: S}}}}
entities:
  user:  {table: shop, key: {pk: "user_{userId:lower}", sk: USER}}
  order: {table: shop, key: {pk: "order_{orderId:lower}", sk: ORDER%s}, required: [user]}
rules:
  names: {copy: user.name, into: order.user_name, link: {userId: user}}
  ids:   {copy: user.userId, into: order.user_is, link: {userId: user}}
  made:  {derive: order.gsi1pk, as: "of_{user:lower}"}
"""


def test_a_key_in_one_case_is_listed_by_keys_in_that_case_alone():
    """An index by the attribute as it is lacks those that are spelt otherwise: it is refused. One in the case of the key
    lists all, and rules read the attribute as it was given.
    """
    refused = [one for one in check_rules(CASED % "", environ={})[1] if one.code == "SR201"]
    assert len(refused) == 2
    assert 'as: "{user:lower}"' in (refused[0].cure or "")
    scene = Scene(parse_rules(CASED % ', gsi1pk: "of_{user:lower}"', environ={}))
    user = {"pk": s("user_a7x"), "sk": s("USER"), "userId": s("A7x")}
    orders = [
        {"pk": s(f"order_{one}"), "sk": s("ORDER"), "orderId": s(one), "user": s(user)}
        for one, user in (("1", "A7x"), ("2", "a7X"))
    ]
    scene.put("shop", user | {"name": s("Ada")}, *orders)
    scene.rest()
    scene.put("shop", user | {"name": s("Eva")})
    scene.rest()
    stored = [item for item in scene.memory.items("shop") if item["sk"] == s("ORDER")]
    assert [(one["user_name"], one["user_is"]) for one in stored] == [(s("Eva"), s("A7x"))] * 2
