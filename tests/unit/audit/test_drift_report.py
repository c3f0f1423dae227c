"""The report of a verify: what a row says is enough to look there again, and what is no such report is refused."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sync_rules.audit.compare import Difference, Drift
from sync_rules.audit.drift_report import DriftReport, make_footer, make_header, make_row, open_report, report
from sync_rules.audit.verify_tally import DriftFinding, Tally
from sync_rules.language.load import parse_rules
from sync_rules.model.errors import UserError
from sync_rules.model.items import ItemKey
from sync_rules.rules.families import Part
from sync_rules.rules.selection import Share
from tests.support import drifts
from tests.support.every_kind import text_of

TEXT = text_of(drifts.RULES)
RULES = parse_rules(TEXT)
AT = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
HEAD = make_header(RULES, RULES.rules, AT, Share())
END = make_footer(Tally(), ["names"], AT)
ORDER = ItemKey("shop", (("PK", "S", "USER#1"), ("SK", "S", "ORDER#a")))
USER = ItemKey("shop", (("PK", "S", "USER#1"), ("SK", "S", "PROFILE")))
WRONG = Difference("names", Drift.WRONG, ORDER, USER, (("user_name",),), "h", "t")
ROW = make_row(DriftFinding(WRONG))


@pytest.fixture
def file(tmp_path):
    """Makes a report of lines: bodies, or raw text."""

    def write(*lines, end: str = "\n"):
        path = tmp_path / "report.jsonl"
        text = (line if isinstance(line, str) else json.dumps(line) for line in lines)
        path.write_text("\n".join(text) + end)
        return path

    return write


def everything(found: DriftReport) -> list[Difference]:
    return list(found.read_differences(found.names))


def test_drift_report_begins_with_what_it_is_of():
    """The first line names the rules with their fingerprints and the tables by their names in DynamoDB: those that
    were looked at, and no others; and what share of the tables was.
    """
    head = make_header(RULES, ["names", "mails"], AT, Share(1000, tuple(range(50))))
    assert head["rules"].keys() == {"names", "mails"}
    assert (head["report"], head["version"], head["tables"]) == ("sync-rules verify", 1, {"shop": "shop"})
    assert (head["at"], head["sampled"]) == ("2026-11-21T12:00:00.000+00:00", 5.0)
    assert HEAD["sampled"] is None
    assert {"counted", "least"} <= HEAD["rules"].keys()
    assert HEAD["tables"].keys() == {"shop", "posts", "parts", "ledger"}


def test_drift_report_has_no_first_line_before_the_first_finding():
    """A mistake that is found only when something is looked at leaves no line at all."""

    def mistaken():
        raise UserError("no such item")
        yield

    lines = report(mistaken(), Tally(), HEAD, list, lambda: AT)
    with pytest.raises(UserError):
        next(lines)
    assert list(report(iter([]), Tally(), HEAD, list, lambda: AT)) == [HEAD, {"items": 0, "rules": {}, "at": END["at"]}]


KEYS = st.text(min_size=1, max_size=20)


@given(KEYS, KEYS)
def test_drift_report_lists_what_was_written(user, name):
    """Any key, element and path written to a report is read back unchanged."""
    at = ItemKey("shop", (("PK", "S", f"USER#{user}"), ("SK", "S", "PROFILE")))
    edge = ItemKey("shop", (("PK", "S", f"USER#{user}"), ("SK", "S", f"ORDER#{name}")))
    entry = ItemKey("ledger", (("PK", "S", "spent/T/" + f"USER#{user}"), ("SK", "S", "PROFILE")))
    found = [
        Difference("posts", Drift.WRONG, at, None, (("posts", name),), "h", "t"),
        Difference("tags", Drift.MISSING, at, edge, (), "h", "t", part=Part(RULES.rules["tags"], at, edge, name)),
        Difference("tags", Drift.EXTRA, at, None, (), "h", "t", part=Part(RULES.rules["tags"], at, None, "")),
        Difference(
            "spent.ledger", Drift.WRONG, entry, None, (("n",),), "", "",
            part=Part(RULES.rules["spent.ledger"], entry, None, "n"),
        ),
    ]  # fmt: skip
    with_file = [json.dumps(one) for one in (HEAD, *(make_row(DriftFinding(one)) for one in found), END)]

    class Lines:
        def open(self, _mode):
            return self

        def __enter__(self):
            return (line.encode() for line in with_file)

        def __exit__(self, *_):
            return None

    again = everything(open_report(Lines(), RULES))
    assert [one.subject for one in again] == [one.subject for one in found]
    assert [one.drift for one in again] == [one.drift for one in found]


def test_drift_report_lists_only_what_is_left(file):
    """A report lists only open differences of the rules asked for, without those that were repaired or came right."""
    done = [make_row(DriftFinding(WRONG, repaired=True)), make_row(DriftFinding(WRONG, came_right=True))]
    heads = make_row(DriftFinding(Difference("heads", Drift.WRONG, USER, None, (("head",),), "h", "t")))
    found = open_report(file(HEAD, *done, ROW, heads, END), RULES)
    assert [one.rule for one in everything(found)] == ["names", "heads"]
    assert [one.rule for one in found.read_differences(frozenset({"heads"}))] == ["heads"]


def test_drift_report_knows_its_age(file):
    """A report is as old as its end; one from a clock that is ahead is new."""
    found = open_report(file(HEAD, END), RULES)
    assert found.compute_age_seconds(AT + timedelta(seconds=90)) == 90
    assert found.compute_age_seconds(AT - timedelta(seconds=90)) == 0
    naive = open_report(file(HEAD, {**END, "at": "2026-11-21T12:00:00"}), RULES)
    assert naive.compute_age_seconds(AT) == 0


OTHER = HEAD["rules"] | {"names": "0" * 64}
REFUSED = {
    "nothing": ([""], ":1: expected a report of sync-rules verify --format jsonl, found something else"),
    "text": (["rule names: wrong"], ":1: expected a report of"),
    "a list": ([[1]], ":1: expected a report of"),
    "other JSON": ([{"rule": "names"}], ":1: expected a report of"),
    "rules without fingerprints": ([HEAD | {"rules": ["names"]}, END], ":1: expected a report of"),
    "another version": ([HEAD | {"version": 2}, END], ":1: expected a report of version 1"),
    "another rule": ([HEAD | {"rules": OTHER}, END], ":1: the report is of a rule 'names', and the rules file has another"),
    "a rule that is gone": ([HEAD | {"rules": {"nmaes": "0"}}, END], "'nmaes', and the rules file has no rule of that name"),
    "another table": ([HEAD | {"tables": {"shop": "prod-shop"}}, END], ":1: the report is of shop = 'prod-shop', the rules file has 'shop'"),
    "a table that is gone": ([HEAD | {"tables": {"shed": "shed"}}, END], "shed = 'shed', the rules file has no such table"),
    "cut off after its first line": ([HEAD], ": expected a report that ends with its totals, found the file ends at line 1"),
    "cut off after a row": ([HEAD, ROW], "the file ends at line 2"),
    "cut off within a row": ([HEAD, json.dumps(ROW)[:40]], ":2: expected a line of a report, found something else"),
    "two reports": ([HEAD, END, HEAD, END], ":3: expected nothing after the totals"),
    "no time": ([HEAD, END | {"at": "yesterday"}], ":2: expected a time in 'at'"),
    "a rule it is not of": ([HEAD | {"rules": {"mails": HEAD["rules"]["mails"]}}, ROW, END], ":2: rule names is not among the rules"),
    "no rule": ([HEAD, ROW | {"rule": "nobody"}, END], ":2: expected a drift of one of the rules"),
    "no drift": ([HEAD, ROW | {"drift": "ugly"}, END], ":2: expected a drift"),
    "no key": ([HEAD, ROW | {"target": None}, END], ":2: expected a drift"),
    "a key of another table": ([HEAD, ROW | {"target": {"table": "posts", "key": {"PK": "a"}}}, END], ":2: expected a drift"),
    "another entity": ([HEAD, ROW | {"target": ROW["source"]}, END], ":2: expected a drift"),
    "a part where none is": ([HEAD, ROW | {"element": "a"}, END], ":2: expected a drift"),
    "no part where one is": ([HEAD, ROW | {"rule": "tags"}, END], ":2: expected a drift"),
    "a part of another kind": ([HEAD, ROW | {"rule": "spent.ledger", "element": ""}, END], ":2: expected a drift"),
    "paths that are none": ([HEAD, ROW | {"paths": None}, END], ":2: expected a drift"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_drift_report_refuses_what_is_none_of_these_rules(file, name):
    """A file that is no complete report of these rules and tables is refused with its name and line."""
    lines, message = REFUSED[name]
    path = file(*lines)
    with pytest.raises(UserError) as refused:
        open_report(path, RULES)
    assert str(refused.value).startswith(str(path))
    assert message in str(refused.value)


def test_drift_report_refuses_an_empty_file_and_a_directory(file, tmp_path):
    """A file without a line and a path that is no file are named."""
    with pytest.raises(UserError, match="found an empty file"):
        open_report(file(end=""), RULES)
    with pytest.raises(UserError, match="expected a report to read, found Is a directory"):
        open_report(tmp_path, RULES)


def test_drift_report_is_of_the_same_rules_whatever_else_changes(file):
    """A rule that came, went or changed beside those of the report does not matter, nor the order of the file."""
    head = make_header(RULES, ["names"], AT, Share())
    now = parse_rules(text_of({"mails": "{mirror: user, into: by_email}", "names": drifts.RULES["names"]}))
    found = open_report(file(head, ROW, END), now)
    assert (found.names, [one.rule for one in everything(found)]) == (frozenset({"names"}), ["names"])
