"""`sync-rules plan` through the command line on an engine: what it says is what the backfill then does."""

from __future__ import annotations

import json

import pytest

from sync_rules.rules.ledger import without_amount
from tests.support import every_kind
from tests.support.builders import s
from tests.support.sites import Site


class Shop(Site):
    """A shop with a rule of every kind on an engine, whose copies are not made yet."""

    def __init__(self, engine: str, folder, capsys) -> None:
        super().__init__(engine, folder, lambda prefix: every_kind.text_of(every_kind.RULES, prefix))
        self.capsys = capsys
        for user in "12":
            self.put("shop", every_kind.user(user, name=s(f"U{user}"), email=s(f"{user}@x"), rank=s("1")))
            for number in range(4):
                self.put("shop", every_kind.order(user, str(number), number + 1, status=s("OPEN")))
        self.put("posts", every_kind.post("p", "1", "T"))
        for part, parent in (("a", None), ("b", "a"), ("c", "b"), ("loop", "loop")):
            self.put("parts", every_kind.part(part, parent))

    def by_key(self) -> dict[str, dict]:
        """Every item by its key as it is shown, without the amounts that keys of the ledger have in them."""
        return {
            str(without_amount(table.key_of(item))): item
            for name, table in self.rules.tables.items()
            for item in self.items(name)
        }

    def __call__(self, verb: str, *options: str) -> tuple[int, list[dict]]:
        form = "--format", "json" if verb == "plan" else "jsonl"
        code = self.command(verb, *form, *options)
        out, err = self.capsys.readouterr()
        assert out, err
        return code, [json.loads(line) for line in out.splitlines()]


@pytest.fixture
def shop(engine, tmp_path, capsys, monkeypatch) -> Shop:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SYNC_RULES_STATE_TABLE", raising=False)
    return Shop(engine, tmp_path, capsys)


def test_plan_engine_tells_what_the_backfill_then_writes(shop, tmp_path):
    """The plan touches nothing; the items it says would be written are those that the backfill changes; afterwards
    there is nothing to write and no rule is new.
    """
    before = shop.by_key()
    path = tmp_path / "writes.jsonl"
    code, (plan,) = shop("plan", "--writes", str(path), "--detailed-exitcode")
    assert code == 1
    assert shop.by_key() == before
    assert {one["is"] for one in plan["rules"].values()} == {"new"}
    assert plan["rules"]["paths"]["reasons"] == {"Cycle": 1}
    told = [json.loads(line) for line in path.read_text().splitlines()]
    shop("backfill")
    after = shop.by_key()
    written = {f"{row['table']}[{', '.join(row['key'].values())}]" for row in told}
    assert written == {key for key in {**before, **after} if before.get(key) != after.get(key)}
    paths = {(*row["key"].values(), path) for row in told for path in row["paths"]}
    for user in "12":
        numbers = {"counted", "spent", "least", "most", "totals"}
        assert numbers <= after[f"shop[USER#{user}, PROFILE]"].keys()
        assert {(f"USER#{user}", "PROFILE", name) for name in numbers} <= paths
    assert len({row["write"] for row in told}) == plan["writes"]
    code, (again,) = shop("plan", "--detailed-exitcode")
    assert (code, again["writes"]) == (0, 0)
    assert {one["is"] for one in again["rules"].values() if not one["parked"]} == {"unchanged"}
