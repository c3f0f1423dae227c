"""`sync-rules verify` through the command line on the embedded engine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support import drifts, every_kind
from tests.support.builders import key
from tests.support.sites import Site


class Shop(Site):
    """A shop of every kind on an engine, in which `verify --repair` has made everything right."""

    def __init__(self, engine: str, folder: Path, capsys) -> None:
        super().__init__(engine, folder, lambda prefix: every_kind.text_of(drifts.RULES, prefix))
        self._capsys = capsys
        for table, item in drifts.ITEMS:
            self.put(table, item)

    def inject(self, drifted: drifts.Drifted) -> None:
        for (table, *values), changes in drifted.edits:
            if changes is None:
                self.delete(table, *values)
                continue
            before = self.item(table, *values) or key(self.rules.tables[table], *values).attributes()
            self.put(table, {name: value for name, value in {**before, **changes}.items() if value is not None})

    def verify(self, *options: object) -> tuple[int, str]:
        failures = self.folder / "failures.jsonl"
        self._capsys.readouterr()
        code = self.command("verify", "--grace-seconds", "0", "--failures", failures, "--format", "jsonl", *options)
        return code, self._capsys.readouterr().out


@pytest.mark.parametrize("by_report", [False, True], ids=["sweep", "report"])
def test_verify_engine_finds_and_mends_injected_drift_of_every_kind(engine, tmp_path, capsys, by_report):
    """Verify finds exactly the injected drift of every kind and exits with 1; repair, at once or by report, removes it."""
    shop = Shop(engine, tmp_path, capsys)
    assert shop.verify("--repair")[0] == 0
    assert shop.verify()[0] == 0
    repairable = [one for one in drifts.DRIFTS if one.repairable]
    injected = drifts.apart(
        repairable[::-1] if by_report else repairable
    )  # others first, so that both together have all
    assert {one.told[1].value for one in injected} >= {"extra", "orphan", "missing" if by_report else "wrong"}
    for drifted in injected:
        shop.inject(drifted)
    code, out = shop.verify()
    rows = [json.loads(line) for line in out.splitlines()]
    found = {
        (row["rule"], row["drift"], (row["target"]["table"], *row["target"]["key"].values())) for row in rows[1:-1]
    }
    assert (code, found) == (1, {(rule, drift.value, at) for one in injected for rule, drift, at in one.found})
    (tmp_path / "report.jsonl").write_text(out)
    assert shop.verify("--repair", *(["--from", str(tmp_path / "report.jsonl")] if by_report else []))[0] == 0
    assert shop.verify()[0] == 0
