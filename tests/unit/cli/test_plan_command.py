"""`sync-rules plan`: what it prints, for people and machines, what it refuses, and the codes it exits with."""

from __future__ import annotations

import json
import stat
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from sync_rules.adapters.state import FileState, save_applied_fingerprints
from sync_rules.cli.commands import plan
from sync_rules.jobs.backfill import job
from sync_rules.jobs.backfill.bulk_loads import BulkLoad
from sync_rules.model.errors import StoreError
from sync_rules.pipeline.requests import Scan
from sync_rules.rules import fingerprints
from tests.support.builders import s
from tests.unit.cli.command_line import SECRET, CommandLine

RULES = """
tables:
  authors: {key: {author_id: S}}
  books: {key: {book_id: S}, indexes: {by_author: {author_id: S}}}
  nodes: {key: {node_id: S}, indexes: {by_parent: {parent_id: S}}}
entities: {author: {table: authors}, book: {table: books}, node: {table: nodes}}
rules:
  names: copy author.name into book.author_name
  bios: copy author.bio into book.author_bio
  paths: {path: node.path, parent: parent_id}
  kept: {call: books.keep, on: book, when: [deleted]}
"""
PRICES = {
    "date": "2026-01-31",
    "source": "our contract",
    "currency": "EUR",
    "regions": {
        "eu-west-1": {
            "on_demand": {"write_units_million": 1_000_000, "read_units_million": 0},
            "provisioned": {"write_unit_hour": 2, "read_unit_hour": 0},
        }
    },
}


class Command(CommandLine):
    """The command, which never writes."""

    def __init__(self, monkeypatch, capsys) -> None:
        super().__init__(plan, RULES, monkeypatch, capsys)
        self.scene.there("authors", {"author_id": s("a1"), "name": s(SECRET), "bio": s(SECRET)})
        self.given = (self.file,)
        self.folder = Path()
        self.state = Path(".sync-rules-state.json")
        self.client = SimpleNamespace(meta=SimpleNamespace(region_name="us-east-1"))
        monkeypatch.setattr(plan.aws, "dynamodb", lambda *_: self.client)
        monkeypatch.setattr(job, "require_tables", lambda *_, streams: None)
        monkeypatch.setattr(job, "describe_table", lambda *_: {"TableArn": "arn", "ItemCount": 0})
        monkeypatch.setattr("sync_rules.jobs.backfill.page.WAIT_MAX_SECONDS", 0)

    def books(self, count: int, **values) -> None:
        self.scene.there("books", *({"book_id": s(f"b{i}"), "author_id": s("a1"), **values} for i in range(count)))

    def applied(self, **other: str) -> None:
        """Note a backfill as made, with some other fingerprints."""
        self.state.write_text(json.dumps({"applied": fingerprints.compute_rule_fingerprints(self.scene.rules) | other}))

    def __call__(self, *options: str) -> tuple[int, str, str]:
        answer = super().__call__(*options)
        assert self.scene.tap.writes == []
        return answer

    def body(self, *options: str) -> dict:
        code, out, err = self(*options, "--format", "json")
        assert code == 0, err
        return json.loads(out)


def test_plan_says_what_each_rule_would_do(command):
    """A plan prints the figures of rules and tables, money with its price date, and time, and writes nothing."""
    command.books(3)
    code, out, _ = command()
    assert code == 0
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert "rule is checked to write right kept parked write units" in lines
    assert "names new 3 3 0 0 0 3" in lines  # half of what the items and the index that shows them cost
    assert "on demand: less than 0.01 USD" in lines
    assert any(line.startswith("prices of us-east-1, 2026-") for line in lines)
    assert "time: 1 s at 500 write units a second" in lines
    assert "3 targets of authors[a1] · rule names" in lines
    assert "1 write units on books[b0]" in lines
    assert lines[-1].endswith("6 to write in 3 requests: sets 6")
    assert [path.name for path in command.folder.iterdir()] == ["rules.yaml"]


def test_plan_says_that_old_items_would_expire(command):
    """A backfill of a Time to Live over old items is a deletion of some of them."""
    rule = "\n  expiry: {derive: book.expires_at, as: 'ttl(created_at, 60d)'}\n"
    command.restart(RULES.rstrip() + rule)
    told = "expiry: expires_at is the Time to Live: DynamoDB deletes items whose time is past, old ones too"
    assert told not in command()[1]
    command.books(1, created_at=s("2020-01-01T00:00:00Z"))
    assert told in command()[1]
    assert command.body()["expiring"] == {"expiry": "expires_at"}


ENDING = """
tables: {shop: {key: {PK: S}, indexes: {by_team: {team: S}, by_lead: {lead: S}}}}
entities:
  team: {table: shop, key: {PK: "TEAM#{team}"}}
  user: {table: shop, key: {PK: "USER#{user}"}}
  lead: {table: shop, key: {PK: "LEAD#{lead}"}}
rules:
"""


def test_plan_names_the_removal_of_a_link_as_the_end_of_a_relation(command):
    """Only of an attribute that another rule links by, and only where it goes."""
    leads = "  leads: {copy: [team.lead, team.name], into: user, on_delete: clear}\n"
    command.restart(ENDING + leads + "  rooms: copy lead.room into user.room\n  desks: copy lead.desk into user.desk\n")
    command.scene.there("shop", *({"PK": s(f"LEAD#{one}"), "room": s("1")} for one in "xyz"))
    command.scene.there(
        "shop", {"PK": s("TEAM#a"), "name": s("A")}, {"PK": s("TEAM#b"), "name": s("B"), "lead": s("y")}
    )
    of_user = {"lead": s("x"), "name": s("A"), "room": s("1")}
    command.scene.there(
        "shop", *({"PK": s(f"USER#{i}"), "team": s("b" if i == 2 else "a"), **of_user} for i in range(3))
    )
    lines = command()[1].splitlines()
    ends = {f"user.lead then names no lead (rule {rule})": 2 for rule in ("rooms", "desks")}
    for end in ends:
        assert f"leads ends a relation of 2 items: {end}" in lines
    rules = command.body()["rules"]
    assert (rules["leads"]["ended"], "ended" in rules["rooms"]) == (ends, False)


def test_plan_ends_a_relation_only_where_the_value_of_a_link_goes(command):
    """A copied map holds the link: its value goes with a map that lacks it, and a map that lacked it ends nothing."""
    rooms = "  rooms: {copy: lead.room, into: user.room, link: {lead: home.lead}, mode: snapshot}\n"
    command.restart(ENDING + "  homes: {copy: team.home, into: user.home, on_delete: clear}\n" + rooms)
    command.scene.there(
        "shop", {"PK": s("TEAM#a"), "home": {"M": {"city": s("Rome")}}}, {"PK": s("LEAD#x"), "room": s("1")}
    )
    for number, home in enumerate(({"lead": s("x")}, {"city": s("Oslo")})):
        command.scene.there("shop", {"PK": s(f"USER#{number}"), "team": s("a"), "home": {"M": home}, "room": s("1")})
    ended = command.body()["rules"]["homes"]["ended"]
    assert ended == {"user.home.lead then names no lead (rule rooms)": 1}


def test_plan_for_machines_has_every_figure(command):
    """--format json is one object: rules, tables, money, time, fan-outs and hottest keys."""
    command.books(3, author_name=s(SECRET))
    body = command.body("--rate", "2")
    names, bios = body["rules"]["names"], body["rules"]["bios"]
    assert (names["is"], names["right"], names["to_write"], names["write_units"]) == ("new", 3, 0, 0)
    assert (bios["rule"], bios["right"], bios["to_write"], bios["write_units"]) == ("bios", 0, 3, 6)
    assert body["tables"]["books"]["write_units"] == 6
    assert body["tables"]["books"]["read_units"] > 0
    assert body["time"] == {"rate": 2.0, "seconds": 3, "hottest_key_seconds": 0.001}
    assert body["money"]["region"] == "us-east-1"
    assert body["money"]["provisioned"]["write_units_second"] == 2
    assert body["fan_outs"][0]["source"] == {"table": "authors", "key": {"author_id": "a1"}}
    assert body["hottest"][0] == {"table": "books", "partition": {"book_id": "b0"}, "write_units": 1}
    assert (body["writes"], body["estimate"], body["sample"], body["gone"]) == (3, False, None, [])


def test_plan_tells_new_changed_unchanged_and_gone_rules(command):
    """A plan marks rules as new, changed, unchanged or gone by the fingerprints of the last backfill."""
    command.applied(bios="other", old="x")
    body = command.body()
    assert {name: one["is"] for name, one in body["rules"].items()} == {
        "names": "unchanged",
        "bios": "changed",
        "paths": "unchanged",
    }
    assert body["gone"] == ["old"]
    out = command()[1]
    assert "rule old was deleted" in out
    assert "`sync-rules prune BEFORE RULES --apply` removes its copies, and drops it from the saved state" in out
    before = command.state.read_text()
    assert command.body("--changed")["rules"].keys() == {"bios"}
    assert command.state.read_text() == before


def test_plan_names_bulk_loads_since_the_last_backfill(command):
    """Its time is in the saved state: a load that ended later may have put items that no rule has seen."""
    at, end = datetime(2026, 11, 20, 12, tzinfo=UTC), datetime(2026, 11, 20, 13, tzinfo=UTC)
    load = BulkLoad(command.scene.rules.tables["books"], "COMPLETED", at, end)
    command.patch.setattr(
        plan, "list_bulk_loads", lambda _client, _tables, since: ((load,) if since == at else (), "why")
    )
    assert "bulk load" not in "".join(command()[1:])  # before the first backfill
    save_applied_fingerprints(FileState(command.state), fingerprints.compute_rule_fingerprints(command.scene.rules), at)
    _, out, err = command()
    assert "table books: a bulk load ended at 2026-11-20T13:00:00Z (COMPLETED)" in out
    assert "a backfill without --changed checks its items" in out
    assert "bulk loads since the last backfill are unknown: why" in err
    assert command.body()["bulk_loads"] == [load.describe(at)]


def test_plan_exits_by_what_there_is_to_do_if_asked(command):
    """--detailed-exitcode: 0 when there is nothing to write, 1 when there is, or a rule is gone; without it 0."""
    assert command("--detailed-exitcode")[0] == 0
    assert "nothing to write" in command()[1]
    command.applied(old="x")
    assert command("--detailed-exitcode")[0] == 1
    command.applied()
    command.books(1)
    assert (command("--detailed-exitcode")[0], command()[0]) == (1, 0)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ["--rule", "few"],
            "table ledger is read whole, about 7 items, because entries of few may be of deleted items.",
        ),
        (["--rule", "few", "--table", "books"], None),
        (["--rule", "names"], None),
        ([], None),
    ],
)
def test_plan_says_that_it_reads_the_entries_of_other_rules(command, options, said):
    """A small counter in a shared ledger pays for the entries of all: entries of deleted items have no other place."""
    text = RULES.replace("tables:", "tables:\n  ledger: {key: {PK: S, SK: S}}") + (
        "  few: {count: book, into: author.few, where: 'new == `true`'}\n  all: {count: book, into: author.all}\n"
    )
    command.restart(text)
    command.patch.setattr(job, "describe_table", lambda *_: {"TableArn": "arn", "ItemCount": 7})
    _, _, err = command(*options)
    assert ("is read whole" in err) is (said is not None)
    assert (said or "") in err
    assert not said or "It also holds the entries of all: a rule with a `ledger` of its own reads no others" in err


def test_plan_from_a_sample_marks_its_estimates(command):
    """Each figure of a sample is marked as an estimate, and the seed is printed."""
    command.books(400)
    code, out, _ = command("--sample", "20:7")
    assert code == 0
    row = next(line.split() for line in out.splitlines() if line.startswith("names"))
    assert row[2].startswith("~")
    assert "--sample 20:7" in out
    assert "widest fan-outs in the sample" in out
    body = command.body("--sample", "20:7")
    assert body["estimate"]
    assert (body["sample"]["percent"], body["sample"]["seed"]) == (20, 7)
    assert body["rules"]["names"]["to_write"] == pytest.approx(400, rel=0.5)
    assert body["rules"] == command.body("--sample", "20:7")["rules"]


def test_plan_writes_down_each_write_if_asked(command):
    """--writes: a JSON line for each rule and item, its key and paths, no value; for its owner only, whole or not."""
    command.books(2)
    path = command.folder / "writes.jsonl"
    path.write_text("old")
    command("--writes", str(path))
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert {(row["rule"], row["key"]["book_id"], *row["paths"]) for row in rows} == {
        (rule, book, path) for rule, path in (("names", "author_name"), ("bios", "author_bio")) for book in ("b0", "b1")
    }
    assert rows[0].keys() == {"write", "rule", "does", "table", "key", "paths", "alterations"}
    assert sorted(row["write"] for row in rows) == [0, 0, 1, 1]
    assert SECRET not in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    before = path.read_text()
    command.scene.tap.refuse(Scan, StoreError("AccessDeniedException", "table books"))
    assert command("--writes", str(path))[0] == 2
    assert path.read_text() == before
    assert sorted(one.name for one in command.folder.iterdir()) == ["rules.yaml", "writes.jsonl"]


def test_plan_takes_prices_from_a_file(command):
    """--prices: the user's own, with the Region, currency and date that they have."""
    command.client.meta.region_name = "eu-west-1"
    command.books(2)
    path = command.folder / "prices.json"
    path.write_text(json.dumps(PRICES))
    out = command("--prices", str(path), "--rate", "1")[1]
    assert "on demand: 4.00 EUR" in out
    assert "provisioned: 2.00 EUR for 1 h of 1 write and" in out
    assert "prices of eu-west-1, 2026-01-31: our contract" in out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--prices", "prices.json"], ["prices.json", "no region 'us-east-1'", "eu-west-1"]),
        (["--prices", "none.json"], ["none.json", "expected a price file"]),
        (["--prices", "rules.yaml"], ["rules.yaml", "JSON"]),
        (["--rule", "name"], ["no rule 'name'", "Did you mean 'names'"]),
        (["--rule", "kept"], ["kept"]),
        (["--table", "book"], ["no table 'book'", "Did you mean 'books'"]),
        (["--where", "shelf = 'A'"], ["--where", "equals is =="]),
        (["--sample", "0"], ["0.1"]),
        (["--sample", "5:x"], ["such as 5 or 5:4711"]),
        (["--rate", "-1"], ["--rate"]),
        (["--state", "prices.json/x"], ["prices.json/x"]),
        (["--state", "rules.yaml"], ["rules.yaml", "state file"]),
        (["--writes", "none/x.jsonl"], ["none/x.jsonl"]),
        (["--writes", "rules.yaml"], ["rules.yaml is used here too"]),
        (["--writes", "prices.json", "--prices", "prices.json"], ["prices.json is used here too"]),
        (["--writes", "state", "--state", "state"], ["state is used here too"]),
    ],
    ids=lambda value: "-".join(value) if value[0].startswith("--") else "",
)
def test_plan_refuses_the_users_mistakes(command, options, words):
    """The command exits with 2 before it reads anything. Standard error says what it expected and found."""
    (command.folder / "prices.json").write_text(json.dumps(PRICES))
    code, out, err = command(*options)
    assert (code, out) == (2, "")
    assert all(word in err for word in words), err
    assert command.scene.tap.requests == []


def test_plan_that_is_stopped_exits_with_130(command):
    """Ctrl-C ends a plan with 130, without figures and without a file."""
    command.stop_after(1)
    command.books(2)
    path = command.folder / "writes.jsonl"
    code, out, err = command("--writes", str(path))
    assert (code, out, path.exists()) == (130, "", False)
    assert err.endswith("sync-rules: interrupted: nothing was written\n")


def test_plan_says_first_which_links_hit_nothing(command):
    """A sample's findings come before the figures, and the exit code is 1; --accept leaves the rule out."""
    command.file.write_text(RULES.replace("author.name into", "author.nmae into"))
    command.books(3)
    command.scene.there("authors", {"author_id": s("a2"), "name": s(SECRET)})
    code, out, _ = command()
    text = "2 of 2 sampled author items have no attribute nmae (closest: name)"
    assert code == 1
    assert out.startswith(f"rule names: {text} · write name in place of nmae\n")
    code, out, _ = command("--format", "json")
    assert (code, json.loads(out)["links"]) == (
        1,
        [{"rule": "names", "found": text, "cure": "write name in place of nmae"}],
    )
    code, out, _ = command("--accept", "names")
    assert (code, text in out) == (0, False)
