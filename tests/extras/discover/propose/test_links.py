"""Links that are there, and those that only look like it: what is proposed along them, and what a rules file needs."""

from __future__ import annotations

import random

import pytest

from sync_rules.extras.discover.propose import row_staging
from sync_rules.extras.discover.propose.proposal_writer import write_proposal
from sync_rules.extras.discover.propose.search import propose
from sync_rules.language.load import check_rules
from sync_rules.language.problems import list_errors
from tests.support.gathering import PlainTable, gathered


def rules_of(tmp_path, *tables):
    found = propose(gathered(tmp_path / "in", *tables), tmp_path / "work")
    assert not list_errors(check_rules(write_proposal(found), {})[1])
    return found, {
        str(one.rule.get("into", one.rule.get("derive"))): one for one in found.rules if one.held_back is None
    }


def names(rand, count):
    return [f"N{rand.random():.9f}" for _ in range(count)]


def test_links_by_small_numbers_are_shown_by_a_copy(tmp_path):
    """A column with no telling name links by small numbers, as the names of those it points to are copied along it."""
    rand = random.Random(2)
    staff = [{"id": n, "phone": phone} for n, phone in enumerate(names(rand, 40), 1)]
    visits = [{"visit": f"v{n}", "who": (who := rand.choice(staff))["id"], "call": who["phone"]} for n in range(300)]
    _, rules = rules_of(tmp_path, PlainTable("staff", {"id": "N"}, staff), PlainTable("visits", {"visit": "S"}, visits))
    assert rules["visit.call"].rule == {"copy": "staff.phone", "into": "visit.call", "link": {"id": "who"}}


def test_links_among_more_attributes_than_are_looked_at(tmp_path, monkeypatch):
    """An entity of 50 attributes: what is beyond 30 is not looked at, and said."""
    monkeypatch.setattr(row_staging, "COLUMNS_MAX", 30)
    wide = [{"id": f"w{n}", **{f"a{place}": f"{place}-{n}" for place in range(49)}} for n in range(50)]
    found, _ = rules_of(tmp_path, PlainTable("wides", {"id": "S"}, wide))
    assert "1,000 values were not looked at" in write_proposal(found)


def test_links_of_two_fields(tmp_path):
    """Two fields name a tenant's project. An item that lacks one gets no rule, and the reason names that field."""
    rand = random.Random(3)
    projects = [
        {"PK": f"TENANT#t{n % 7}", "SK": f"PROJECT#p{n}", "title": title} for n, title in enumerate(names(rand, 60))
    ]
    tasks, notes = [], []
    for n in range(300):
        one = rand.choice(projects)
        tasks.append({"PK": one["PK"], "SK": f"TASK#{n}", "project": one["SK"][8:], "project_title": one["title"]})
        notes.append({"note_id": f"n{n}", "project": one["SK"][8:], "heading": one["title"]})
    tables = (
        PlainTable("work", {"PK": "S", "SK": "S"}, [*projects, *tasks]),
        PlainTable("notes", {"note_id": "S"}, notes),
    )
    found, rules = rules_of(tmp_path, *tables)
    assert set(rules) == {"task.project_title"}
    (held,) = [one for one in found.rules if one.held_back]
    assert held.rule["into"] == "note.heading"
    assert "tenant_id" in held.held_back


@pytest.mark.parametrize("word", ["usr_", ""])
def test_links_by_ids_with_a_word_before_them(tmp_path, word):
    """An id such as usr_12 is one value, where others name it so."""
    rand = random.Random(4)
    users = [{"id": f"{word}{n:05}", "name": name} for n, name in enumerate(names(rand, 50))]
    posts = [
        {"post_id": f"pst_{n:05}", "user": (one := rand.choice(users))["id"], "user_name": one["name"]}
        for n in range(200)
    ]
    _, rules = rules_of(tmp_path, PlainTable("users", {"id": "S"}, users), PlainTable("posts", {"post_id": "S"}, posts))
    assert rules["post.user_name"].rule == {"copy": "user.name", "into": "post.user_name", "link": {"id": "user"}}


def test_links_and_the_index_that_serves_them(tmp_path):
    """An index with a sort key that each item has is used, with `required`; one that some lack needs another beside it."""
    rand = random.Random(5)
    users = [{"user_id": f"u{n}", "name": name} for n, name in enumerate(names(rand, 50))]

    def orders(whole):
        chosen = [rand.choice(users) for _ in range(200)]
        made = [
            {"order_id": f"o{n}", "user_id": one["user_id"], "user_name": one["name"]} for n, one in enumerate(chosen)
        ]
        return [{**one, **({"at": f"2024-01-{1 + n % 28:02}"} if whole or n % 2 else {})} for n, one in enumerate(made)]

    for whole in (True, False):
        table = PlainTable("orders", {"order_id": "S"}, orders(whole), {"by_user": {"user_id": "S", "at": "S"}})
        _, rules = rules_of(tmp_path / str(whole), PlainTable("users", {"user_id": "S"}, users), table)
        rule = rules["order.user_name"]
        assert (rule.required, rule.index is not None) == ((("at",), False) if whole else ((), True))


def test_links_direction_follows_the_many(tmp_path):
    """Each team names its head, who holds the team's motto as all members do: the team is the source."""
    rand = random.Random(7)
    teams = [{"team_id": f"t{n}", "motto": motto} for n, motto in enumerate(names(rand, 30))]
    people = [
        {"person_id": f"h{n}", "team_id": (one := rand.choice(teams))["team_id"], "motto": one["motto"]}
        for n in range(300)
    ]
    for one in teams:
        one["head"] = next(each["person_id"] for each in people if each["team_id"] == one["team_id"])
    tables = PlainTable("teams", {"team_id": "S"}, teams), PlainTable("people", {"person_id": "S"}, people)
    _, rules = rules_of(tmp_path, *tables)
    assert set(rules) == {"people.motto"}
