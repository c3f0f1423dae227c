"""`sync-rules cost`: what it prints, for people and machines, what it refuses, and the codes it exits with."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from sync_rules.adapters.memory import MemoryStore
from sync_rules.cli import main
from sync_rules.extras.design.commands import cost
from sync_rules.language.load import parse_rules
from tests.support.builders import s

PAGE = (Path(__file__).parents[4] / "docs/design/cost.md").read_text()
(RULES,) = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
PRICES = {
    "date": "2026-01-31",
    "source": "our contract",
    "currency": "EUR",
    "regions": {
        "moon-1": {
            "on_demand": {"write_units_million": 1, "read_units_million": 1},
            "provisioned": {"write_unit_hour": 1, "read_unit_hour": 1},
        }
    },
}


@pytest.fixture
def command(monkeypatch, tmp_path, capsys):
    """Function that runs the command on the rules of the page, or on others, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    store = MemoryStore(parse_rules(RULES, environ={}).tables)
    monkeypatch.setattr(
        cost.aws, "dynamodb", lambda _url, region: SimpleNamespace(meta=SimpleNamespace(region_name=region))
    )
    monkeypatch.setattr(cost, "DynamoStore", lambda *_: store)
    (tmp_path / "prices.json").write_text(json.dumps(PRICES))
    (tmp_path / "broken.json").write_text(json.dumps({**PRICES, "currency": "euro"}))

    def run(*options, text=RULES, region="eu-central-1"):
        (tmp_path / "rules.yaml").write_text(text)
        code = main.main(["cost", "--region", region, *options])
        out, err = capsys.readouterr()
        return code, out, err

    run.store = store
    return run


def test_cost_prints_what_the_page_shows(command):
    """The example of docs/design/cost.md is the output for its rules file, to the last character."""
    code, out, err = command()
    assert (code, err) == (0, "")
    (shown,) = re.findall(r"^\$ sync-rules cost --region eu-central-1\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert [line.rstrip() for line in out.splitlines()] == [line.rstrip() for line in shown.splitlines()]


def test_cost_in_json_has_everything(command):
    """One document: lines, capacity, storage, sources, and what is not stated."""
    code, out, _ = command("--format", "json")
    body = json.loads(out)
    assert code == 0
    assert body["region"] == "eu-central-1"
    assert body["how"]["on_demand"].startswith("AWS Price List for eu-central-1")
    assert body["patterns"]["order"]["rate"] == 240
    assert body["patterns"]["order"]["read_units_second"] == 120
    assert body["not_stated"] == []
    assert body["capacity"]["shop"]["read_units"] > 0


def test_cost_says_what_is_not_stated_and_exits_with_1(command):
    """A file that lacks a number is priced without it: exit code 1, and the cure."""
    code, out, _ = command(text=RULES.replace(", items: 400000", ""))
    assert code == 1
    assert "not stated, and left out:" in out
    assert "the number of order: state `items: 1000000` on the entity, or give --sample" in out
    assert "in all, on demand: at least" in out


def test_cost_measures_a_sample(command):
    """--sample takes sizes and numbers from the tables, in place of what is stated."""
    for number in range(20):
        command.store.put("shop", {"PK": s("USER#1"), "SK": s(f"ORDER#{number}"), "text": s("x" * 3_000)})
    command.store.put("shop", {"PK": s("USER#1"), "SK": s("PROFILE"), "name": s("SECRET")})
    code, out, err = command("--sample", "100", "--format", "json", text=re.sub(r", size: 1KB, items: \d+", "", RULES))
    assert code == 0
    assert "SECRET" not in out + err
    body = json.loads(out)
    assert body["sample"] == 100
    assert body["rules"]["user-name-on-orders"]["write_units_second"] == pytest.approx((2 + 0.05 * 20) * 3)


def test_cost_takes_prices_from_a_file_and_names_what_it_lacks(command):
    """A file with the four prices that `plan` needs: units have a price, and the rest says that it has none."""
    code, out, _ = command("--prices", "prices.json", region="moon-1")
    assert code == 1
    assert "prices of this Region: `storage`, `cloudwatch`, `lambda`, `sqs` in a price file" in out
    assert "prices of moon-1, 2026-01-31: EUR" in out
    assert "storage no price" in out


@pytest.mark.parametrize(
    ("options", "region", "words"),
    [
        ([], "moon-1", ["no price for Region 'moon-1'", "eu-west-1", "--prices FILE"]),
        (["--prices", "prices.json"], "eu-west-1", ["prices.json", "no region 'eu-west-1'", "moon-1"]),
        (["--prices", "broken.json"], "moon-1", ["broken.json", "currency"]),
        (["--prices", "none.json"], "moon-1", ["none.json", "expected a price file"]),
        (["--sample", "x"], "eu-west-1", ["such as 5 or 5:4711"]),
    ],
    ids=["region", "file-without-region", "broken", "missing", "sample"],
)
def test_cost_refuses_what_cannot_be(command, options, region, words):
    """The command reports a mistake with its cure, and exits with 2."""
    code, out, err = command(*options, region=region)
    assert code == 2
    assert out == ""
    assert all(word in err for word in words), err


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("rate: 240/s", f"rate: {'9' * 32}/s", "expected at most 1,000,000,000 calls a second"),
        ("page: 8", f"page: {'9' * 38}", "expected 1 to 1000000000000000"),
        ("items: 400000", f"items: {'9' * 38}", "expected 0 to 1000000000000000"),
        ("items: 40}", f"items: {'9' * 38}}}", "expected 0 to 1000000000000000"),
    ],
)
def test_cost_refuses_numbers_that_no_table_has(command, old, new, words):
    """Such a number is a mistake of the file, named with its place."""
    assert old in RULES
    code, out, err = command(text=RULES.replace(old, new))
    assert (code, out) == (2, "")
    assert words in err
