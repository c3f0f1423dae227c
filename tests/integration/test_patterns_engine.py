"""`sync-rules patterns --run` on an engine: measured as the service tells it."""

from __future__ import annotations

import json

import pytest

from sync_rules.cli import main
from tests.support.builders import n, order_item, s, user_item
from tests.support.sites import Site

RULES = """
tables:
  shop:
    name: {prefix}shop
    key: {{PK: S, SK: S}}
    indexes: {{by_status: {{partition: {{status: S}}, sort: {{made: S}}, projection: [total]}}}}
entities:
  user: {{table: shop, key: {{PK: "USER#{{user_id}}", SK: PROFILE}}, size: 1KB}}
  order: {{table: shop, key: {{PK: "USER#{{user_id}}", SK: "ORDER#{{order_id}}"}}, size: 1KB}}
  user_by_email: {{table: shop, key: {{PK: "EMAIL#{{email}}", SK: USER}}, size: 1KB}}
rules:
  names: copy user.name into order.user_name
  mails: {{mirror: user, into: user_by_email, attributes: [name]}}
patterns:
  orders: {{get: order, by: [user_id], attributes: [total, user.name], items: 2, page: 2}}
  by-status: {{get: order, by: [status], between: made, items: 2}}
  mail: {{get: user, by: [email], one: true, attributes: [name]}}
  page: {{get: [user, order], by: [user_id], items: 3}}
  part: {{get: [user, order], by: [user_id], at_least: SK, items: 3}}
  place: {{put: order}}
"""


class Shop(Site):
    def __init__(self, engine, folder, capsys):
        super().__init__(engine, folder, lambda prefix: RULES.format(prefix=prefix))
        self.capsys = capsys
        for user, name in (("1", "secret-a"), ("2", "secret-b")):
            self.put("shop", user_item(user, name=s(name), email=s(f"{user}@x")))
            self.put("shop", {"PK": s(f"EMAIL#{user}@x"), "SK": s("USER"), "user_id": s(user), "name": s(name)})
            for number in "12":
                values = {"user_name": s(name), "total": n(9), "status": s("OPEN"), "made": s(f"2026-0{number}")}
                self.put("shop", order_item(user, number, **values))

    def __call__(self, *options):
        code = main.main(["patterns", str(self.file), *options])
        said = self.capsys.readouterr()
        assert "secret" not in said.out + said.err
        return code, said


@pytest.fixture
def shop(engine, tmp_path, capsys):
    return Shop(engine, tmp_path, capsys)


def test_patterns_run_measures(shop):
    """Rows, requests and units of each pattern, as the service says them, beside the estimates."""
    code, said = shop("--run", "--endpoint-url", shop.url, "--format", "json")
    found = {one["pattern"]: one for one in json.loads(said.out)["patterns"]}
    assert code == 0, said
    assert [found[name]["rows"] for name in ("orders", "by-status", "mail", "page", "part")] == [2, 4, 1, 3, 3]
    assert [found[name]["requests"] for name in ("orders", "by-status", "mail", "page")] == [1, 2, 1, 1]
    assert found["orders"]["estimated_read_units"] == 0.5
    assert found["orders"]["read_units"] in (0.5, None)
    assert found["place"]["left"] == "a write"
    code, said = shop("--run", "--pattern", "orders", "--endpoint-url", shop.url)
    assert "orders: 2 calls, 2 rows, 1 request (proved: 1)" in said.out
    code, said = shop("--run", "--key", "user_id=2", "--pattern", "orders", "--endpoint-url", shop.url)
    assert code == 0
    assert "orders: 1 call, 2 rows" in said.out
    keys = ("--key", "user_id=2", "--key", "SK=ORDER#2")
    code, said = shop("--run", *keys, "--pattern", "part", "--endpoint-url", shop.url)
    assert "part: 1 call, 2 rows" in said.out  # PROFILE comes after ORDER#2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--calls", "3"], "--calls needs --run"),
        (["--run", "--format", "markdown"], "--format markdown does not go with --run"),
        (["--run", "--key", "secret"], "--key: expected NAME=VALUE"),
        (["--run", "--pattern", "order", "--region", "eu-central-1"], "no pattern 'order'. Known: orders"),
    ],
)
def test_patterns_run_refuses_options_that_would_do_nothing(shop, options, message):
    """Exit 2, with the cure."""
    code, said = shop(*options)
    assert code == 2
    assert message in said.err
