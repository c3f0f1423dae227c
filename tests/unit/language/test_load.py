"""From YAML to compiled rules: the good forms of the grammar, and what makes two files the same."""

import json
import re

import pytest

from sync_rules.language import yaml_source
from sync_rules.language.load import RulesFileError, check_rules, load_rules, parse_rules
from sync_rules.language.problems import Problems
from sync_rules.language.yaml_source import read_document
from sync_rules.rules import fingerprints

BASE = """
tables:
  shop:    {name: "${SHOP_TABLE:-shop-dev}", key: {PK: S, SK: S}, indexes: {GSI1: {GSI1PK: S, GSI1SK: S}}}
  authors: {key: {author_id: S}}
  books:   {key: {book_id: N}, indexes: {by_author: {partition: {author_id: S}, sort: {year: N}, projection: keys}}}
entities:
  user:   {table: shop, key: {PK: "USER#{user_id}", SK: PROFILE}}
  order:  {table: shop, key: {PK: "USER#{user_id}", SK: "ORDER#{order_id}"}}
  author: {table: authors}
  book:   {table: books, required: [year, age]}
rules:
"""
RULES = ("a: copy user.name into order.user_name", "b: {copy: [author.name, author.bio], into: book.author}")


def parsed(*rules, base=BASE, **environ):
    return parse_rules(base + "".join(f"  {rule}\n" for rule in rules or RULES), environ=environ)


def mapping(form):
    (rule,) = parsed(f"r: {form}").rules.values()
    return {".".join(source): ".".join(target) for source, target in rule.mapping}


@pytest.mark.parametrize(
    ("form", "pairs"),
    [
        ("copy user.name into order.user_name", {"name": "user_name"}),
        ("{copy: user.home, into: order.user.home}", {"home": "user.home"}),
        ("copy user.name, user.email into order.user", {"name": "user.name", "email": "user.email"}),
        ("copy user.name, user.email into order", {"name": "name", "email": "email"}),
        ("{copy: [user.home.city, user.name], into: order}", {"home.city": "city", "name": "name"}),
        ("{copy: {user.name: user_name}, into: order}", {"name": "user_name"}),
        ("{copy: {user.home.city: town.name}, into: order.to}", {"home.city": "to.town.name"}),
    ],
)
def test_copy_says_what_goes_where(form, pairs):
    """One path takes the whole path of its copy; several land in an entity or a map of it, under their last or new name."""
    assert mapping(form) == pairs


def test_yaml_words_stay_words():
    """YAML 1.2: `on`, `yes` and `no` are names like any other."""
    (rule,) = parsed("on: copy user.yes into order.no").rules.values()
    assert (rule.name, rule.mapping) == ("on", ((("yes",), ("no",)),))


def test_a_file_may_hold_any_number_of_values_that_are_written_out(monkeypatch):
    """Only what aliases stand for is limited: the items of a replay's `--data` are many."""
    monkeypatch.setattr(yaml_source, "VALUES_MAX", 100)
    problems = Problems()
    document = read_document("\n".join(f"- {number}" for number in range(102)), problems)
    assert problems.sort_problems() == []
    assert document is not None
    assert len(document.data) == 102


def test_table_name_comes_from_the_environment():
    """The variable, else its default, else the name in the file; an empty variable counts as not set."""
    names = [parsed(SHOP_TABLE=value).tables["shop"].physical_name for value in ("shop-prod", "")]
    assert names == ["shop-prod", "shop-dev"]
    assert parsed().tables["authors"].physical_name == "authors"
    part = BASE.replace("${SHOP_TABLE:-shop-dev}", "${STAGE}-shop")
    assert parsed(base=part, STAGE="prod").tables["shop"].physical_name == "prod-shop"


@pytest.mark.parametrize(("environ", "said"), [({}, "is not set"), ({"SHOP_TABLE": "a\udcffb"}, "is not UTF-8")])
def test_variable_without_a_name_of_a_table_stops_a_run_but_not_a_check(environ, said):
    """A check runs where nothing is deployed; a run with a wrong table would not."""
    text = BASE.replace(":-shop-dev", "") + "  r: copy user.name into order.user_name\n"
    with pytest.raises(RulesFileError, match=rf"SHOP_TABLE {said} +\[SR005\]"):
        parse_rules(text, environ=environ)
    rules, problems = check_rules(text, environ=environ)
    assert rules.tables["shop"].physical_name == "shop"
    assert "SR405" in [problem.code for problem in problems]


def test_file_is_read_with_or_without_a_byte_order_mark(tmp_path):
    """Windows editors add one."""
    file = tmp_path / "rules.yaml"
    file.write_text(BASE + "  r: copy user.name into order.user_name\n", encoding="utf-8-sig")
    assert list(load_rules(file, {}).rules) == ["r"]


# ---------------------------------------------------------------- fingerprint


def test_a_renamed_rule_is_found_by_both_names_and_does_the_same():
    """`renamed_from` leads from a former name to the rule, parts of it too, and what was applied under that name is."""
    base = BASE.replace("tables:", "tables:\n  ledger: {key: {PK: S, SK: S}}", 1)
    for body in ("count: order, into: user.orders", "copy: user.name, into: order.user_name"):
        before = parsed(f"old: {{{body}}}", base=base)
        renamed = parsed(f"new: {{{body}, renamed_from: old}}", base=base)
        assert fingerprints.map_former_titles(renamed) == {
            "new": ("old", fingerprints.compute_rule_fingerprints(before)["old"])
        }
        assert before.find_rule_by_name("new") is None
        for name in before.rules:
            now = name.replace("old", "new")
            assert renamed.find_rule_by_name(name) is renamed.find_rule_by_name(now) is renamed.rules[now]


def test_a_renamed_counter_keeps_its_books_and_every_other_rule_its_fingerprint():
    base = BASE.replace("tables:", "tables:\n  ledger: {key: {PK: S, SK: S}}", 1)
    counts = [parsed(f"{name}: {{count: order, into: user.orders{more}}}", base=base)
              for name, more in (("old", ""), ("new", ", renamed_from: old"))]  # fmt: skip
    books = [{rule.books for rule in rules.rules.values() if rule.books} for rules in counts]
    assert books[0] == books[1] != set()
    copies = [parsed(f"new: {{copy: user.name, into: order.user_name{more}}}") for more in ("", ", renamed_from: old")]
    assert fingerprints.compute_rule_fingerprints(copies[0]) == fingerprints.compute_rule_fingerprints(copies[1])
    assert copies[0].fingerprint == copies[1].fingerprint


def test_load_says_of_a_file_that_nests_too_deeply_that_it_does():
    """The parser's recursion is no syntax error of the user, and quotes cure nothing."""
    with pytest.raises(RulesFileError, match="nests too many levels") as error:
        parse_rules(f"rules: {'[' * 500}")
    assert "quote text" not in str(error.value)


@pytest.mark.parametrize("escape", [True, False], ids=["escaped", "as it is"])
def test_load_reads_json_with_any_character(escape):
    """JSON escapes a character beyond 16 bits as two halves, in names and in texts: they are one character."""
    key = {"PK": "😀#{user_id}", "SK": "P"}
    form = {"tables": {"shop": {"key": {"PK": "S", "SK": "S"}}}, "entities": {"user": {"table": "shop", "key": key}}}
    rules = {"face": {"derive": "user.😀", "as": "😀{a}"}, "other": {"copy": {"user.😀": "🧭"}, "into": "user"}}
    found = parse_rules(json.dumps(form | {"rules": rules}, ensure_ascii=escape))
    assert [rule.copies for rule in found.rules.values()] == [(("😀",),), (("🧭",),)]
    assert found.entities["user"].templates["PK"].literals[0] == "😀#"
    with pytest.raises(RulesFileError, match="half"):
        parse_rules(json.dumps(form | {"rules": {"face": {"derive": "user.a", "as": "\ud83d{a}"}}}))


def test_load_takes_a_design_without_rules():
    """Tables, entities and patterns are a file, with and without an empty section of rules."""
    design = BASE.partition("rules:")[0] + "patterns: {p: {get: user, by: [user_id], one: true}}\n"
    rules = parse_rules(design)
    assert (list(rules.sections), dict(rules.rules)) == (["patterns"], {})
    assert rules.fingerprint == parse_rules(f"{design}rules: {{}}\n").fingerprint
    with pytest.raises(RulesFileError, match="no key 'rule'"):
        parse_rules(f"{design}rule: {{a: copy user.name into order.user_name}}\n")


def test_load_names_some_of_the_keys_of_a_map_without_a_form():
    """The message has the first keys and the number of the others."""
    keys = ", ".join(f"k{number}: 1" for number in range(1_000))
    _, problems = check_rules(f"{BASE.partition('rules:')[0]}patterns: {{p: {{{keys}}}}}\n")
    (message,) = [one.message for one in problems if one.code == "SR104"]
    assert "found a map with k0, k1" in message
    assert len(message) < 1_000


LONG = 1_100  # rules in a row, more than Python nests calls


@pytest.mark.night
@pytest.mark.parametrize("rule", ["copy user.a{0} into user.a{1}", "{{derive: user.a{1}, as: '{{a{0}}}'}}"])
def test_load_bounds_what_it_says_of_many_rules(rule):
    """Rules that feed each other in a long row are fine, and in a ring are one mistake, in a short message."""
    row = [f"r{number}: {rule.format(number, number + 1)}" for number in range(LONG)]
    assert len(parsed(*row).rules) == LONG
    with pytest.raises(RulesFileError) as error:
        parsed(*row, f"r{LONG}: {rule.format(LONG, 0)}")
    (problem,) = error.value.problems
    assert problem.code == "SR305"
    assert f"{LONG - 38:,} more" in problem.message
    with pytest.raises(RulesFileError) as error:
        parsed(*row, "x: {copy: user.a0, into: user.b, renamed_from: r7}", "y: {copy: usr.a0, into: user.c}")
    assert max(len(problem.message) for problem in error.value.problems) < 1_000


@pytest.mark.parametrize(
    ("rule", "option"),
    [
        ('{derive: user.address, join: ["{street}", city]}', "join"),
        ('{path: book."{crumb}", parent: author_id}', None),
        ('{path: "book.{crumb}", parent: author_id}', "path"),
        ('{path: book.crumb, parent: "{author_id}"}', "parent"),
        ('{path: book.crumb, parent: author_id, by: "{name}"}', "by"),
        ('{copy: ["author.{name}"], into: book.author}', "copy"),
        ('{embed: order, into: user.orders, fields: ["{note}"], limit: {items: 9}}', "fields"),
    ],
)
def test_load_refuses_braces_in_a_path(rule, option):
    """A name in braces is a field of a text: as a path it would name an attribute that no item has."""
    _, found = check_rules(f"{BASE}  r: {rule}\n")
    braces = [problem for problem in found if "in braces" in problem.message]
    assert {problem.location.key_path[2] for problem in braces} == ({option} if option else set())
    assert all("{" not in (problem.cure or "{") for problem in braces)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("{write: maybe}", "maybe"),
        ("{write: 1}", "expected true, false or url; found a number"),
        ("{wrote: url}", "no key 'wrote'. Known: write. Did you mean 'write'?"),
        ("true", "expected a map"),
    ],
)
def test_deploy_takes_only_what_there_is(asked, said):
    """A part of the deployment that does not exist is a mistake at its place; what is asked for changes no rule."""
    text = f"{BASE}  {RULES[0]}\ndeploy: "
    with pytest.raises(RulesFileError, match=re.escape(said)):
        parse_rules(text + asked)
    assert parse_rules(f"{text}{{write: url}}").fingerprint == parse_rules(f"{text}{{write: false}}").fingerprint
