"""Lints between rules: what is refused, and above all what is not."""

import pytest

from sync_rules.rulefile import check_rules

TABLES = """
tables: {things: {key: {kind: S, id: S}}}
entities:
  a: {table: things, key: {kind: a, id: "{id}"}}
  b: {table: things, key: {kind: b, id: "{id}"}}
  c: {table: things, key: {kind: c, id: "{id}"}}
rules:
"""


def problems(*rules, base=TABLES):
    _, found = check_rules(base + "".join(f"  r{index}: {rule}\n" for index, rule in enumerate(rules)), {})
    return [problem for problem in found if problem.code != "SR406"]


def codes(*rules, base=TABLES):
    return [problem.code for problem in problems(*rules, base=base)]


@pytest.mark.parametrize(
    "rules",
    [
        ["copy a.x into b.x", "copy b.x into c.x"],
        ["copy a.x into b.x", "copy b.y into a.y"],
        ["copy a.x, a.y into b", "copy b.x into a.z"],
        ["copy a.x into b.m.x", "copy a.y into b.m.y", "copy b.m into c.m"],
        ["copy a.x into a.y", "copy a.y into a.z"],
        ["copy a.x into b.x", "copy a.x into c.x", "copy b.x into c.y"],
        ["{copy: a.x, into: b.x, where: open}", "copy b.x into c.open"],
    ],
)
def test_rules_that_feed_each_other_without_a_cycle_are_well(rules):
    """Cascades, both directions on other attributes, neighbours in one map, copies within an item."""
    assert codes(*rules) == []


@pytest.mark.parametrize(
    ("rules", "drawn"),
    [
        (["copy a.x into b.x", "copy b.x into a.x"], "b.x -> a.x -> b.x (rules r0, r1)"),
        (["copy a.x into a.x"], "a.x -> a.x (rules r0)"),
        (["copy a.x into a.y", "copy a.y into a.x"], "a.y -> a.x -> a.y (rules r0, r1)"),
        (["copy a.m into b.m", "copy b.m.x into a.m.x"], "b.m -> a.m.x -> b.m (rules r0, r1)"),
        (["{copy: a.x, into: b.x, where: a.open}", "copy b.x into a.open"], "b.x -> a.open -> b.x (rules r0, r1)"),
        (["{copy: a.x, into: b.x, where: open}", "{copy: c.x, into: b.open, where: c.go}", "copy b.x into c.go"],
         "b.x -> c.go -> b.open -> b.x (rules r0, r2, r1)"),
        (["{copy: a.x, into: b.x, link: {id: ref}, via: by_ref}", "copy b.x into c.ref", "copy c.ref into b.ref"],
         "b.x -> c.ref -> b.ref -> b.x (rules r0, r1, r2)"),
    ],
)  # fmt: skip
def test_cycles_are_drawn(rules, drawn):
    """Through copies, through what `where` reads on either side, and through links."""
    base = TABLES.replace("id: S}}}", "id: S}, indexes: {by_ref: {ref: S}}}}")
    messages = [problem.message for problem in problems(*rules, base=base) if problem.code == "SR305"]
    assert len(messages) == 1
    assert rotations(messages[0]) == rotations(drawn)


def rotations(drawn):
    """A cycle may be drawn from any of its attributes on."""
    circle, _, rules = drawn.partition(" (rules ")
    names = circle.split(" -> ")[1:]
    return {tuple(names[turn:] + names[:turn]) for turn in range(len(names))}, set(rules.strip(")").split(", "))


def test_two_cycles_are_both_drawn():
    """One report for each."""
    rules = ["copy a.x into b.x", "copy b.x into a.x", "copy a.y into c.y", "copy c.y into a.y"]
    assert codes(*rules) == ["SR305", "SR305"]


def test_writers_of_neighbours_are_well_and_of_a_map_around_them_are_not():
    """Two paths are one attribute when one leads through the other."""
    assert codes("copy a.x into b.m.x", "copy c.x into b.m.y") == []
    assert codes("copy a.x into b.m.x", "copy c.x into b.m") == ["SR301"]
    assert codes("copy a.x into b.m", "copy c.x into c.m") == []


def test_the_same_rule_twice_is_two_writers():
    """Under another name it would still write what the first one writes."""
    assert codes("copy a.x into b.x", "copy a.x into b.x") == ["SR301"]


def test_a_link_inside_a_key_cannot_be_written_by_accident():
    """A copy into the table's key is refused for that reason alone."""
    assert codes("copy a.x into b.id") == ["SR302"]


def test_warnings_about_an_index_need_a_projection_that_is_said():
    """Where the file does not say what an index shows, nothing is guessed."""
    for projection, expected in (("", []), (", projection: keys", []), (", projection: [x]", ["SR401"]),
                                 (", projection: all", ["SR401"]), (", projection: [y]", [])):  # fmt: skip
        index = f"by_ref: {{partition: {{ref: S}}{projection}}}"
        base = TABLES.replace("id: S}}}", f"id: S}}, indexes: {{{index}}}}}}}")
        assert codes("copy a.x into b.x", base=base) == expected


def test_settle_zero_matters_only_behind_an_index():
    """A base-table listing does not lag."""
    assert codes("{copy: a.x, into: b.x, settle_seconds: 0}") == []
