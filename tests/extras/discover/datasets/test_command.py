"""`sync-rules propose --from-export` on a data set: the road of a user finds what a call in this process finds."""

from __future__ import annotations

import json

import pytest

from sync_rules.cli import main
from sync_rules.extras.discover.propose.proposal import Proposal, Proposed
from tests.extras.discover.datasets.generated import accounts, forum, shop
from tests.extras.discover.datasets.measure import measure
from tests.extras.discover.datasets.scoring import score
from tests.support.depth import deep

FIELDS = ("name", "kind", "rule", "source", "target", "checked", "agree", "differ", "confidence", "held_back")


MADE = [accounts, shop, forum][: deep(3)]  # the others take half a minute each: with DEEP_TESTS=1


@pytest.mark.parametrize("made", MADE)
def test_propose_from_an_export_scores_as_a_call_does(made, tmp_path, monkeypatch, capsys):
    """An export, keys and indexes by hand: the same rules with the same figures, and a file that passes check."""
    monkeypatch.chdir(tmp_path)
    data = made()
    data.plant(0.01)
    keys = [f"--key={name}={','.join(table.key)}" for name, table in data.tables.items()]
    keys += [
        f"--key={name}/{index}={','.join(names)}"
        for name, table in data.tables.items()
        for index, names in table.indexes.items()
    ]
    place = str(data.exported(tmp_path / "exports"))
    code = main.main(["propose", "--from-export", place, *keys, "--out", "rules.yaml", "--format", "json"])
    out, err = capsys.readouterr()
    assert code == 0, err
    said = json.loads(out)
    rules = tuple(Proposed(**{name: rule[name] for name in FIELDS}) for rule in said["rules"])
    text = (tmp_path / "rules.yaml").read_text()
    assert text == said["file"]
    found, called = measure(data, Proposal((), rules), text), score(made, 0.01)
    figures = ("rules", "right", "expected", "found", "counted", "exact")
    assert [getattr(found, one) for one in figures] == [getattr(called, one) for one in figures], str(found)
    assert found.found > 0, str(found)
    assert main.main(["check", "rules.yaml"]) == 0
