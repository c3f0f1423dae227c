"""Small mistakes of a stranger in a rules file: `check` names each of them, with its place and a cure that works.

Each mistake is one edit of a good file. Where the output offers a text, that text is applied literally, and the file
must then pass.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from sync_rules.cli import main

GOOD = """\
tables:
  shop:     {key: {PK: S, SK: S}, indexes: {by_email: {email: S}}}
  users:    {key: {user_id: S}}
  orders:   {key: {order_id: S}, indexes: {by_user: {user_id: S}}}
  parts:    {key: {part_id: S}, indexes: {by_parent: {parent_id: S}}}
  ledger:   {key: {PK: S, SK: S}}
entities:
  user:     {table: users}
  order:    {table: orders}
  customer: {table: shop, key: {PK: "CUST#{customer_id}", SK: PROFILE}}
  address:  {table: shop, key: {PK: "CUST#{customer_id}", SK: "ADDR#{address_id}"}}
  part:     {table: parts}
rules:
  names:     {copy: user.name, into: order.user_name, on_delete: clear}
  labels:    {derive: order.label, as: "{total:pad(8)}-{status}"}
  orders:    count order into user.orders
  spent:     {sum: order.total, into: user.spent, where: "status == 'PAID'"}
  addresses: {embed: address, into: customer.addresses, by: "{address_id}", fields: [city, zip], limit: {items: 5}}
  cities:    {collect: address, into: customer.cities, as: "{address_id}"}
  way:       {path: part.path, parent: parent_id}
"""


class Mistake(NamedTuple):
    """An edit of the good file: `right` becomes `wrong`. The output has `code` and the text `offer`.

    With `offer` in the place of `instead` the file passes. `cured` is what stands there then, where the offer is a part
    of it. Without `instead` the offer is what the good file has there, or for a person to read.
    """

    right: str
    wrong: str
    code: str
    offer: str = ""
    instead: str = ""
    cured: str = ""


MISTAKES = [
    # a letter too few, too many, or another one
    Mistake("copy: user.name", "copy: usr.name", "SR102", "user"),
    Mistake("copy: user.name", "copi: user.name", "SR112", "copy"),
    Mistake("copy: user.name", "copy: user..name", "SR108", "names joined by dots"),
    Mistake("into: order.user_name", "inot: order.user_name", "SR101", "into"),
    Mistake("on_delete: clear", "on_delete: clean", "SR106", "clear"),
    Mistake("table: users", "table: user", "SR102", "users"),
    Mistake("{key: {user_id: S}}", "{keys: {user_id: S}}", "SR101", "key"),
    Mistake("{key: {user_id: S}}", "{key: {user_id: s}}", "SR106", "S"),
    Mistake("indexes: {by_user: {", "index: {by_user: {", "SR101", "indexes"),
    Mistake("count order into user.orders", "count orders into user.orders", "SR102", "order"),
    Mistake("count order into user.orders", "counts order into user.orders", "SR112", "count"),
    Mistake("count order into user.orders", "count order in user.orders", "SR107", "into"),
    Mistake("pad(8)", "padd(8)", "SR117", "{total:pad(8)}", "{total:padd(8)}"),
    Mistake("pad(8)", "pad", "SR117", "pad(8)"),
    Mistake("{status}", "{status:upper(3)}", "SR117", "{status:upper}", "{status:upper(3)}"),
    Mistake('-{status}"', '-{status}", map: {rank: {OPEN: 1}}', "SR117", "{total:rank}", "{total:pad(8)}"),
    Mistake(
        "{total:pad(8)}-{status}",
        "{{total:pad(8)}}-{status}",
        "SR117",
        "{total:pad(8)}-{status}",
        "{{total:pad(8)}}-{status}",
    ),
    Mistake("{total:pad(8)}-{status}", "ttl(60d, created)", "SR125", "ttl(created, 60d)", "ttl(60d, created)"),
    Mistake("limit: {items: 5}", "limit: {item: 5}", "SR101", "items"),
    Mistake("tables:", "tabels:", "SR101", "tables"),
    # a wrong name, or a name in a wrong place
    Mistake(
        "count order into user.orders",
        "count user into user.orders",
        "SR231",
        "link: {user_id: parent_user_id}",
        "count user into user.orders",
        "{count: user, into: user.orders, link: {user_id: parent_user_id}}",
    ),
    Mistake("into: order.user_name", "into: order", "SR108", "into: order.name", "into: order"),
    Mistake("{total:pad(8)}-{status}", "{total:pad(8)}-{status[0]}", "SR117", "status", "status[0]"),
    Mistake("count order into", "count order.total into", "SR108", "order", "order.total into", "order into"),
    Mistake(
        "into: customer.cities, as", "into: customer.all.cities, as", "SR309", "customer.cities", "customer.all.cities"
    ),
    Mistake("into: order.user_name", "into: order.order_id", "SR302", "part of the key"),
    Mistake("into: order.user_name", "into: order.user_id", "SR303", "part of the link"),
    Mistake("derive: order.label", "derive: order.user_name", "SR301", "written by rule names in line 14"),
    Mistake("count order into user.orders", "count order into user.spent", "SR301", "written by rule orders"),
    Mistake("sum: order.total", "sum: order", "SR108", "one of its attributes"),
    Mistake("  way:", "  names:", "SR002", "the first is in line 14"),
    Mistake("  way:", '  "my way":', "SR105", "expected a letter"),
    # a wrong link, template or index
    Mistake(
        "user_name, on",
        "user_name, link: {user_id: customer_id}, on",
        "SR201",
        "user_id",
        "{user_id: customer_id}",
        "{user_id: user_id}",
    ),
    Mistake(
        "user_name, on", "user_name, link: {id: user_id}, on", "SR202", "user_id", "{id: user_id}", "{user_id: user_id}"
    ),
    Mistake("user_name, on", "user_name, link: user_id, on", "SR104", "link: {field: user_id}"),
    Mistake(
        ", indexes: {by_user: {user_id: S}}",
        "",
        "SR201",
        "by_user_id: {user_id: S}",
        "{key: {order_id: S}}",
        "{key: {order_id: S}, indexes: {by_user_id: {user_id: S}}}",
    ),
    Mistake(
        "{by_user: {user_id: S}}", "{by_user: {userid: S}}", "SR201", "by_user_id: {user_id: S}", "by_user: {userid: S}"
    ),
    Mistake("parent: parent_id", "parent: parent", "SR201", "parent_id"),
    Mistake("parent: parent_id", "parent: part_id", "SR214", "parent: parent_id", "parent: part_id"),
    Mistake('"CUST#{customer_id}", SK: PROFILE', '"CUST#{customer_id", SK: PROFILE', "SR109", "such as USER#{user_id}"),
    Mistake('PK: "CUST#{customer_id}", SK: PROFILE', 'pk: "CUST#{customer_id}", SK: PROFILE', "SR102", "PK"),
    Mistake(
        'PK: "CUST#{customer_id}", SK: PROFILE', 'PK: "CUST#{customer_id}"', "SR306", "'customer' and of 'address'"
    ),
    Mistake("ADDR#{address_id}", "ADDR#{{address_id}}", "SR109", "ADDR#{address_id}", "ADDR#{{address_id}}"),
    Mistake('SK: "ADDR#{address_id}"', "SK: PROFILE", "SR306", "'customer' and of 'address'"),
    Mistake('SK: "ADDR#{address_id}"', 'SK: "ADDR{a}{b}"', "SR109", "{a} and {b}"),
    Mistake('by: "{address_id}"', 'by: "{customer_id}"', "SR208", "by: '{address_id}'", 'by: "{customer_id}"'),
    Mistake(
        'as: "{address_id}"', 'as: "{customer_id}"', "SR207", "as: '{customer_id}-{address_id}'", 'as: "{customer_id}"'
    ),
    Mistake('as: "{address_id}"', "as: address", "SR109", "as: '{address_id}'", "as: address"),
    Mistake(
        ', as: "{address_id}"',
        "",
        "SR103",
        "as: '{address_id}'",
        "customer.cities}",
        "customer.cities, as: '{address_id}'}",
    ),
    Mistake(
        'by: "{address_id}"',
        'by: "{address_id}{city}"',
        "SR109",
        "{address_id}#{city}",
        "{address_id}{city}",
    ),
    Mistake(
        "count order into user.orders",
        "{count: order, into: user.orders, mode: recount, via: by_user}",
        "SR206",
        "mode: ledger",
        "mode: recount, via: by_user",
    ),
    # a condition or a value of another language
    Mistake("status == 'PAID'", "status = 'PAID'", "SR114", "=="),
    Mistake("status == 'PAID'", "status == PAID", "SR311", "'PAID'"),
    Mistake("status == 'PAID'", "status == 'PAID", "SR114", "Unclosed"),
    Mistake("status == 'PAID'", r"status == \"paid\"", "SR410", "'paid'", r"\"paid\""),
    Mistake("\"status == 'PAID'\"", "'status == \"to-do\"'", "SR416", 'not_null("to-do")', '"to-do"'),
    Mistake("\"status == 'PAID'\"", "'to-do == `1`'", "SR114", '"to-do"', "to-do"),
    Mistake("status == 'PAID'", "status <> 'PAID'", "SR114", "!=", "<>"),
    Mistake(
        "\"status == 'PAID'\"", "'status in [1]'", "SR114", 'contains(`["OPEN", "PAID"]`, status)', "status in [1]"
    ),
    Mistake("status == 'PAID'", "", "SR114", "remove the empty condition"),
    Mistake("where: ", "when: ", "SR101", "where"),
    Mistake("{total:pad(8)}", "{label}", "SR305", "order.label"),
    Mistake(
        "{path: part.path, parent: parent_id}",
        "{embed: part, into: part.kids, link: {part_id: parent_id}, limit: {items: 5}}",
        "SR305",
        "fields",
        "part.kids",
        "part.kids, fields: [name]",
    ),
    Mistake("fields: [city, zip]", "fields: city zip", "SR104", "a list of attributes"),
    Mistake("items: 5", 'items: "5"', "SR104", "a whole number"),
    Mistake("items: 5", "items: 0", "SR106", "1 to 10000"),
    # something that is missing
    Mistake(
        "  ledger:   {key: {PK: S, SK: S}}\n",
        "",
        "SR210",
        "ledger: {key: {PK: S, SK: S}}",
        "tables:",
        "tables:\n  ledger: {key: {PK: S, SK: S}}",
    ),
    Mistake("ledger:   {key: {PK: S, SK: S}}", "ledger:   {key: {PK: S}}", "SR211", "{key: {PK: S, SK: S}}"),
    Mistake("user:     {table: users}", "user:     {}", "SR103", "the table that holds the items"),
]


@pytest.fixture
def checked(tmp_path, monkeypatch, capsys):
    """Runs `check` on a text. Gives the exit code and the output."""
    monkeypatch.chdir(tmp_path)

    def check(text: str) -> tuple[int, str]:
        (tmp_path / "rules.yaml").write_text(text)
        code = main.main(["check", "--strict-warnings"])
        return code, "".join(capsys.readouterr())

    return check


def test_mistakes_start_from_a_good_file(checked):
    """The file without a mistake passes, without a warning."""
    code, output = checked(GOOD)
    assert (code, "warning" in output) == (0, False), output


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda one: f"{one.right.strip()} -> {one.wrong.strip()}")
def test_mistake_is_named_with_its_place_and_a_cure_that_works(checked, mistake):
    """`check` refuses the file, names code, line and place, and its offer applied literally makes the file pass."""
    assert mistake.right in GOOD
    before, after = GOOD.split(mistake.right, 1)
    code, output = checked(f"{before}{mistake.wrong}{after}")
    assert code != 0
    assert mistake.code in output
    assert mistake.offer in output
    lines = {
        int(line.split(":")[1]) for line in output.splitlines() if line.startswith("rules.yaml:") and " \u00b7 " in line
    }
    assert lines
    assert lines <= set(range(1, GOOD.count("\n") + 1))
    if mistake.instead:
        cured = mistake.cured or mistake.offer
        assert mistake.offer in cured
        whole = f"{before}{mistake.wrong}{after}"
        assert mistake.instead in whole
        assert checked(whole.replace(mistake.instead, cured, 1)) == (
            0,
            "rules.yaml: 7 rules, 5 entities, 5 tables: OK\n",
        )
