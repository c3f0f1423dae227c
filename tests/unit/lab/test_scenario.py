"""Scenario files: what they are read into, what is wrong with them and where, and what does not hold when they are played."""

from __future__ import annotations

from decimal import Decimal

import pytest

from sync_rules.lab.rehearsal import Rehearsal
from sync_rules.lab.scenario import Expire, Scenario, list_wrong_answers, play
from sync_rules.lab.scenario_file import find_scenarios, load_scenario
from sync_rules.language.load import parse_rules
from sync_rules.model.errors import UserError
from sync_rules.model.writes import Delete, Put, Update
from tests.support.builders import key, m, n, s

RULES = parse_rules(
    """
tables:
  shop: {key: {PK: S, SK: S}}
  scores: {key: {id: N}}
entities:
  user:  {table: shop, key: {PK: "USER#{user_id}", SK: PROFILE}}
  order: {table: shop, key: {PK: "USER#{user_id}", SK: "ORDER#{order_id}"}}
rules:
  names: copy user.name into order.user_name
  orders-of-users: {embed: order, into: user.orders, fields: [total], limit: {items: 1}}
  told: {call: shop.told, on: order, when: [created]}
""",
    environ={},
)
USER = "PK: USER#1, SK: PROFILE"
ORDER = "PK: USER#1, SK: ORDER#1"
SHOP = RULES.tables["shop"]
USER_KEY = key(SHOP, "USER#1", "PROFILE")


@pytest.fixture
def load(tmp_path):
    """Reads a scenario out of texts."""

    def load(scenario: str, data: str | None = None) -> Scenario:
        (tmp_path / "scenario.yaml").write_text(scenario)
        if data is not None:
            (tmp_path / "data.yaml").write_text(data)
        return load_scenario(tmp_path, RULES)

    return load


LOCAL = """
tables: {{shop: {{name: "${{SCENARIO_SHOP_TABLE}}", key: {{PK: S, SK: S}}}}, logs: {{name: "${{SCENARIO_LOG_TABLE}}", key: {{id: S}}}}}}
entities: {{user: {{table: shop, key: {{PK: "USER#{{user_id}}", SK: PROFILE}}}}}}
rules: {{old: {{call: shop.keep, on: user, when: [deleted]}}, {more}}}
"""


@pytest.fixture
def refused(load, tmp_path):
    """Function that loads a wrong scenario and returns the error message, without the folder."""

    def refused(scenario: str, data: str | None = None) -> str:
        with pytest.raises(UserError) as error:
            load(scenario, data)
        return str(error.value).replace(f"{tmp_path}/", "")

    return refused


@pytest.fixture
def wrong(load, tmp_path):
    """Plays a scenario in memory; gives what does not hold."""

    def wrong(scenario: str, data: str | None = None) -> list[str]:
        played = play(load(scenario, data), Rehearsal(RULES))
        return [line.replace(f"{tmp_path}/", "") for _, lines in played for line in lines]

    return wrong


# ---------------------------------------------------------------- read
def test_scenario_values_are_exact(load):
    """Numbers keep every digit, and sets, binaries, nulls, lists and maps are what DynamoDB has."""
    loaded = load(
        "steps: []",
        f"shop: {{{USER}, a: 0.10000000000000000000000000000000000001, b: 1_000, c: !set [x, y], d: !set [1, 2.50],"
        " e: !!binary AAE=, f: null, g: [true, {h: no}], i: 2026-01-01, j: '<absent>', k: !set [!!binary AA==]}",
    )
    (put,) = loaded.steps[0].actions
    assert isinstance(put, Put)
    found = {**put.item, "c": {"SS": sorted(put.item["c"]["SS"])}, "d": {"NS": sorted(put.item["d"]["NS"])}}
    assert found == {
        **USER_KEY.attributes(),
        "a": n("0.10000000000000000000000000000000000001"),
        "b": n("1000"),
        "c": {"SS": ["x", "y"]},
        "d": {"NS": ["1", "2.5"]},
        "e": {"B": b"\x00\x01"},
        "f": {"NULL": True},
        "g": {"L": [{"BOOL": True}, m(h=s("no"))]},
        "i": s("2026-01-01"),
        "j": s("<absent>"),
        "k": {"BS": [b"\x00"]},
    }


def test_scenario_actions_stand_in_their_order(load):
    """A step puts, updates, deletes and expires, each by table, one item or several."""
    loaded = load(
        f"""
steps:
  - say: much
    expire: {{shop: {{{ORDER}}}}}
    delete: {{scores: [{{id: 7}}, {{id: 8}}]}}
    update: {{shop: {{key: {{{USER}}}, set: {{a.b: 1, c: <absent>}}, remove: [d.e]}}}}
    put: {{scores: {{id: 7, x: y}}}}
"""
    )
    put, update, first, second, expire = loaded.steps[1].actions
    assert put == Put(key(RULES.tables["scores"], "7"), {"id": n(7), "x": s("y")}, ())
    assert update == Update(USER_KEY, ((("a", "b"), n(1)),), (("d", "e"), ("c",)), ())
    assert (first, second) == tuple(Delete(key(RULES.tables["scores"], number), ()) for number in "78")
    assert expire == Expire(key(SHOP, "USER#1", "ORDER#1"))


def test_scenario_answers_are_plain_values(load):
    """Answers of read.py are compared as plain Python values."""
    loaded = load("answers: {a: [1.5, x], b: !set [y]}")
    assert list(list_wrong_answers(loaded, {"a": [Decimal("1.5"), "x"], "b": {"y"}})) == []
    missing, more = list_wrong_answers(loaded, {"a": [Decimal("1.5"), "x"], "c": None})
    assert missing.endswith('scenario.yaml:1:27 · b\n  expected !set ["y"]\n  found    <absent>')
    assert more.endswith(" · c\n  expected <absent>\n  found    null")


def test_scenario_says_where_its_rules_are(tmp_path):
    """Rules are beside the file or where it says, seen from it; variables of the environment need no value."""
    folder = tmp_path / "scenarios/one"
    folder.mkdir(parents=True)
    (tmp_path / "mine.yaml").write_text(LOCAL.format(more=""))
    (folder / "scenario.yaml").write_text("rules: ../../mine.yaml\nsteps: []")
    assert set(load_scenario(folder).rules.rules) == {"old"}
    (folder / "rules.yaml").write_text(LOCAL.format(more="older: {derive: user.label, as: '{user_id}'}"))
    (folder / "scenario.yaml").write_text("steps: []")
    assert set(load_scenario(folder / "scenario.yaml").rules.rules) == {"old", "older"}


@pytest.mark.parametrize(
    ("scenario", "said"),
    [
        (
            "steps: []",
            "scenario.yaml:1:1\n  the scenario names no rules file, and its folder has no rules.yaml: add `rules: ",
        ),
        ("steps: []\nrules: not.yaml", "scenario.yaml:2:8 · rules\n  no such file: not.yaml"),
        ("rules: broken.yaml", "broken.yaml:4:60 · rule more"),
    ],
    ids=["none", "missing", "broken"],
)
def test_scenario_without_rules_is_told(tmp_path, scenario, said):
    """Missing or wrong rules are refused with the place in the scenario or in the rules file."""
    (tmp_path / "scenario.yaml").write_text(scenario)
    (tmp_path / "broken.yaml").write_text(LOCAL.format(more="more: {}"))
    with pytest.raises(UserError) as error:
        load_scenario(tmp_path)
    assert said in str(error.value).replace(f"{tmp_path}/", "")


# ---------------------------------------------------------------- which there are
def test_scenarios_are_found_below_folders(tmp_path):
    """A folder stands for all scenario files below it, each once and in order; hidden folders hold none."""
    names = ["b/scenario.yaml", "a/c/scenario.yaml", "a/rename.scenario.yaml", ".venv/scenario.yaml", "a/data.yaml"]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    found = find_scenarios([tmp_path, tmp_path / "b/scenario.yaml", tmp_path / "a/data.yaml"])
    expected = ["a/c/scenario.yaml", "a/rename.scenario.yaml", "b/scenario.yaml", "a/data.yaml"]
    assert [str(file.relative_to(tmp_path)) for file in found] == expected


# ---------------------------------------------------------------- what is wrong with a file
@pytest.mark.parametrize(
    ("scenario", "said"),
    [
        ("steps: [{put: {}}]", "scenario.yaml:1:9 · steps · item 1\n  'say' is missing"),
        ("steps: [{say: x, puts: {}}]", "no key 'puts'. Known: expect, expect_gone, expect_calls, expect_failures, "),
        ("steps: [{say: x, puts: {}}]", "Did you mean 'put'?"),
        ("step: []", "no key 'step'. Known: expect, expect_gone, expect_calls, expect_failures, rules, data, steps, "),
        ("steps: {}", "scenario.yaml:1:8 · steps\n  expected a list, found a map"),
        ("- a", "scenario.yaml:1:1\n  expected a map, found a list"),
        ("steps: [{say: 7}]", "scenario.yaml:1:15 · steps · item 1 · say\n  expected text, found a number"),
        ("expect: {shop: 7}", "scenario.yaml:1:16 · expect · shop\n  expected a map, found a number"),
        ("expect: {shp: {}}", "scenario.yaml:1:10 · expect · shp\n  no table 'shp'. Known: shop, scores. Did you mean 'shop'?"),
        ("expect: {shop: {PK: x}}", "expected the key of table 'shop': PK (text), SK (text); found PK (text)"),
        ("expect: {scores: {id: '7'}}", "expected the key of table 'scores': id (number); found id (text)"),
        ("expect: {shop: {PK: 1, SK: x}}", "found PK (a number), SK (text)"),
        (f"expect: {{shop: {{{USER}, a..b: 1}}}}", "expect · shop · a..b\n  'a..b' is not a path"),
        (f"expect: {{shop: {{{USER}, a: !sot [1]}}}}", "a list that is not of its tag !sot: expected !set"),
        (f"expect: {{shop: {{{USER}, a: !set [1, x]}}}}", "texts, numbers or binaries, all of one kind"),
        (f"expect: {{shop: {{{USER}, a: !set []}}}}", "at least one"),
        (f"expect: {{shop: {{{USER}, a: !set [[1]]}}}}", "all of one kind"),
        (f"expect: {{shop: {{{USER}, a: !set {{x: 1}}}}}}", "does not read YAML tags, found !set"),
        (f"expect: {{shop: {{{USER}, a: .inf}}}}", "'.inf' is not of its tag"),
        (f"expect: {{shop: {{{USER}, a: 1{'0' * 40}1}}}}", "round it to 38 digits"),
        (f"steps: [{{say: x, put: {{shop: {{{USER}, a: <absent>}}}}}}]", "leave the attribute out"),
        (f"steps: [{{say: x, put: {{shop: {{{USER}, a: [<absent>]}}}}}}]", "DynamoDB cannot store a value of type"),
        (f"steps: [{{say: x, delete: {{shop: {{{USER}, name: A}}}}}}]", "alone: PK (text), SK (text); found name too"),
        (f"expect_gone: {{shop: {{{USER}, name: A}}}}", "found name too"),
        ("steps: [{say: x, update: {shop: {key: {}, sets: {}}}}]", "no key 'sets'. Known: key, set, remove."),
        ("steps: [{say: x, update: {shop: {set: {}}}}]", "'key' is missing"),
        ("expect_failures: {name: X}", "no rule 'name'. Known: names, orders-of-users, told. Did you mean 'names'?"),
        ("expect_calls: {names: 1}", "no call rule 'names'. Known: told."),
        ("expect_calls: {told: often}", "expect_calls · told\n  expected a whole number, found text"),
        ("expect_calls: {told: -1}", "expected a whole number of at least 0, found a number"),
        ("data: {shp: {}}", "scenario.yaml:1:8 · data · shp\n  no table 'shp'"),
        ("rules: [a]", "scenario.yaml:1:8 · rules\n  expected text, found a list"),
        ("a: [", "not YAML"),
        ("steps: []\nsteps: []", "scenario.yaml:2:1 · steps\n  'steps' occurs twice"),
    ],
)  # fmt: skip
def test_scenario_mistakes_are_told_with_their_place(refused, scenario, said):
    """Each mistake is refused with file, line, column, path, and the expected and found form."""
    assert said in refused(scenario)


def test_scenario_mistakes_are_told_all_at_once(refused):
    """One mistake does not hide the next, nor data.yaml the scenario."""
    said = refused("expect: {shop: {PK: x}, sh: {}}\nexpect_gone: {scores: {id: x}}", "shops: []")
    assert [line for line in said.splitlines() if not line.startswith(" ")] == [
        "data.yaml:1:1 · shops",
        "scenario.yaml:1:16 · expect · shop",
        "scenario.yaml:1:25 · expect · sh",
        "scenario.yaml:2:23 · expect_gone · scores",
    ]


# ---------------------------------------------------------------- played
DATA = f"shop: [{{{USER}, name: Ada}}, {{{ORDER}, total: 5}}]"


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        (f"expect: {{shop: {{{ORDER}, user_name: Bea}}}}", 'shop[USER#1, ORDER#1] user_name\n  expected "Bea"\n  found    "Ada"'),
        (f"expect: {{shop: {{{ORDER}, user_name: <absent>}}}}", 'user_name\n  expected <absent>\n  found    "Ada"'),
        (f"expect: {{shop: {{{ORDER}, nickname: A}}}}", 'nickname\n  expected "A"\n  found    <absent>'),
        (f"expect: {{shop: {{{USER}, orders: {{1: {{total: 6}}}}}}}}", "orders.1.total\n  expected 6\n  found    5"),
        (f"expect: {{shop: {{{USER}, orders: {{}}}}}}", "orders.1\n  expected <absent>\n  found    {total: 5}"),
        ("expect: {shop: {PK: USER#2, SK: PROFILE}}", "shop[USER#2, PROFILE]\n  expected an item\n  found    no item"),
        (f"expect_gone: {{shop: {{{USER}}}}}", "shop[USER#1, PROFILE]\n  expected no item\n  found    an item"),
        ("expect_failures: {names: X}", "failures of names\n  expected X\n  found    no such failure"),
        ("expect_calls: {told: 7}", "load the data · calls of told\n  expected 7\n  found    1"),
    ],
)  # fmt: skip
def test_scenario_tells_what_does_not_hold(wrong, expected, said):
    """Each failed expectation is shown with its line and the innermost path that differs."""
    (line,) = wrong(expected, DATA)
    assert line.startswith("scenario.yaml:1:")
    assert said in line
