"""The reader for applications on the embedded engine: the car CM1 to CM10, and its page."""

from __future__ import annotations

import doctest
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest

from sync_rules.adapters import aws
from sync_rules.deploy.tables import make_table_parameters
from sync_rules.language.load import parse_rules
from sync_rules.read import Graph, Hierarchy
from tests.support import engines
from tests.support.builders import s
from tests.unit.read.test_read import (
    COMPONENTS,
    PARENTS,
    TRAP,
    component,
    membership,
    names,
    node_item,
    tree_on,
)

PAGE = engines.ROOT / "docs/reading.md"


@pytest.fixture
def client(engine):
    return aws.dynamodb(engine)


@pytest.fixture
def place(client):
    """Gives a function that makes a table under a name of its own and fills it."""
    made = []

    def make(table, items, name=None):
        name = name or engines.unique_prefix() + table.name
        client.create_table(**{**make_table_parameters(table, stream=False), "TableName": name})
        made.append(name)
        for item in items:
            client.put_item(TableName=name, Item=item)
        return name

    yield make
    for name in made:
        client.delete_table(TableName=name)


# ---------------------------------------------------------------- the car
@pytest.mark.parametrize("shards", [1, 3])
def test_read_the_car_on_an_engine(client, place, shards):
    """The three access patterns of the car, with ids that begin alike, across shards."""
    ids = ["CM1", *PARENTS, *TRAP]
    name = place(COMPONENTS, [component(ident, PARENTS | TRAP, shards) for ident in ids])
    car = tree_on(client, replace(COMPONENTS, physical_name=name), shards)
    assert names(car.children("CM2")) == ["CM4", "CM5"]
    assert names(car.children("CM4")) == ["CM8", "CM9"]
    two, ten = car.items(["CM2", "CM10"])
    assert names(car.ancestors(ten)) == ["CM1", "CM2", "CM5"]
    assert names(car.descendants(two)) == ["CM4", "CM8", "CM9", "CM5", "CM10"]
    assert sorted(names(car.descendants(car.items(["CM1"])[0]))) == sorted(ids[1:])
    assert [names(level) for level in car.levels("CM2")] == [["CM4", "CM5"], ["CM8", "CM9", "CM10"]]
    first = car.children("CM1").page(2)
    assert names(first.items) == ["CM2", "CM20"]
    assert names(car.children("CM1").page(2, first.cursor).items) == ["CM3"]


# ---------------------------------------------------------------- the page
def test_read_page_shows_what_happens(client, place, tmp_path, monkeypatch):
    """Every snippet of docs/reading.md runs, on the tables of its rules file, and gives what stands there."""
    text = PAGE.read_text()
    rules_file = re.search(r"```yaml\n(.*?)```", text, re.DOTALL)[1]
    (tmp_path / "rules.yaml").write_text(rules_file)
    monkeypatch.chdir(tmp_path)
    tables = parse_rules(rules_file).tables
    sets = {"GOAL-G1": {"SS": [f"GOALMEMBERSHIP-USER-{m}" for m in ("U1-LEAD", "U2-CONTRIBUTOR")]}, "GOAL-G2": {"NULL": True}}  # fmt: skip
    titles = {"GOAL-G1": "Ten press events", "GOAL-G2": "All hands"}
    roles = [("GOAL-G1", "U1", "LEAD"), ("GOAL-G1", "U2", "CONTRIBUTOR"), ("GOAL-G2", "U1", "CONTRIBUTOR"), ("GOAL-G2", "U2", "LEAD")]  # fmt: skip
    nodes = [
        *(node_item(goal, edges=edges, title=s(titles[goal])) for goal, edges in sets.items()),
        *(node_item(f"USER-{user}", name=s(name)) for user, name in {"U1": "Dora", "U2": "Eli"}.items()),
    ]
    ranks = {"LEAD": "500", "CONTRIBUTOR": "400"}
    edges = [membership(goal, f"USER-{user}", role, ranks[role]) for goal, user, role in roles]
    place(tables["records"], [*nodes, *edges], "records")
    place(tables["components"], [component(ident, PARENTS) for ident in ["CM1", *PARENTS]], "components")
    snippets = doctest.DocTestParser().get_doctest("".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL)), {"client": client}, PAGE.name, str(PAGE), 0)  # fmt: skip
    said = []
    results = doctest.DocTestRunner(verbose=False).run(snippets, out=said.append)
    assert results.failed == 0, "".join(said)
    assert results.attempted > 20


def test_read_page_names_what_there_is():
    """Every call in the page's tables is a method of a reader."""
    calls = set(
        re.findall(r"`(\w+)(?:\([^`]*\))?`", "\n".join(re.findall(r"^\| (.*?) \|", PAGE.read_text(), re.MULTILINE)))
    )
    known = SimpleNamespace(**{**vars(Graph), **vars(Hierarchy)})
    assert calls
    assert all(hasattr(known, call) for call in calls), calls
