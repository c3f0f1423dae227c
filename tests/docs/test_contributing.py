"""docs/contributing.md: the kind of rule that the page adds works as it stands there."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import dedent

from pydantic import Field

from sync_rules.language.compiler import RuleCompiler
from sync_rules.language.kinds import registry
from sync_rules.language.kinds.options import Kind, LinkOption, Model, Via
from sync_rules.language.load import parse_rules
from sync_rules.model.numbers import text_of
from sync_rules.model.values import Item, Path, get
from sync_rules.model.writes import Desired
from sync_rules.rules.kinds.gathered_rule import GatheredRule
from sync_rules.rules.rule import Blocked
from tests.support.builders import n, s
from tests.support.worlds import Scene
from tests.test_house import ROOT

PAGE = (ROOT / "docs/contributing.md").read_text()
TABLES = """
tables:
  shop: {key: {PK: S, SK: S}}
entities:
  user:  {table: shop, key: {PK: "USER#{user_id}", SK: PROFILE}}
  order: {table: shop, key: {PK: "USER#{user_id}", SK: "ORDER#{order_id}"}}
rules:
"""
IMPORTED = {  # what the page leaves to the reader
    "Iterable": Iterable,
    "Mapping": Mapping,
    "Sequence": Sequence,
    "dataclass": dataclass,
    "Field": Field,
    "RuleCompiler": RuleCompiler,
    "Kind": Kind,
    "Model": Model,
    "LinkOption": LinkOption,
    "Via": Via,
    "Item": Item,
    "Path": Path,
    "get": get,
    "text_of": text_of,
    "GatheredRule": GatheredRule,
    "Desired": Desired,
    "Blocked": Blocked,
}
LINES_MAX = 1  # of an existing file that a kind changes, beside the name in an import
ADDED = {1: "sync_rules/rules/kinds/latest.py", 2: "sync_rules/language/kinds/latest.py", 4: "tests/kinds/latest.py",
         5: "docs/rules/latest.md"}  # fmt: skip
CHANGED = {3: "sync_rules/language/kinds/registry.py"}
HEAD = {
    1: """\"\"\"latest: an attribute of the newest of a parent's children.\"\"\"
from __future__ import annotations
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from sync_rules.model.numbers import text_of
from sync_rules.model.values import Item, Path, get
from sync_rules.rules.kinds.gathered_rule import GatheredRule
from sync_rules.rules.rule import Blocked
""",
    2: """\"\"\"Rules of kind `latest`.\"\"\"
from __future__ import annotations
from pydantic import Field
from sync_rules.language.compiler import RuleCompiler
from sync_rules.language.kinds.options import Kind
from sync_rules.language.kinds.options import LinkOption, Model, Via
from sync_rules.rules.kinds.latest import LatestRule
""",
}


def blocks() -> list[str]:
    """The two modules of the page, without their imports."""
    found = [dedent(block) for block in re.findall(r"^ *```python\n(.*?)^ *```", PAGE, re.MULTILINE | re.DOTALL)]
    assert len(found) == 2
    return found


def the_rule() -> str:
    (rule,) = re.findall(r"`(last: \{latest: .*?\})`", PAGE.replace("\n", " "))
    return rule


def test_contributing_followed_in_a_copy_of_the_product(tmp_path):
    """Two files and a line in a copy of the product, and its commands know the kind."""
    copied = tmp_path / "sync_rules"
    shutil.copytree(ROOT / "sync_rules", copied, ignore=shutil.ignore_patterns("__pycache__"))
    for number, block in enumerate(blocks(), 1):
        (tmp_path / ADDED[number]).write_text(HEAD[number] + block)
    registry_file = tmp_path / CHANGED[3]
    text = registry_file.read_text()
    registry_file.write_text(text.replace("history, mirror", "history, latest, mirror").replace(
        "        history.KIND,\n", "        history.KIND,\n        latest.KIND,\n"
    ))  # fmt: skip
    changed = [p for p in copied.rglob("*.py") if not (ROOT / p.relative_to(tmp_path)).exists()
               or p.read_bytes() != (ROOT / p.relative_to(tmp_path)).read_bytes()]  # fmt: skip
    assert sorted(str(p.relative_to(tmp_path)) for p in changed) == sorted([ADDED[1], ADDED[2], CHANGED[3]])
    assert len(registry_file.read_text().splitlines()) == len(text.splitlines()) + LINES_MAX
    (tmp_path / "rules.yaml").write_text(f"{TABLES}  {the_rule()}\n")
    for words in (["check", "rules.yaml"], ["graph", "rules.yaml"], ["schema"]):
        done = subprocess.run(
            [sys.executable, "-m", "sync_rules", *words], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert "latest" in done.stdout or words[0] == "check", words


def order(number: str, day: str, total: int) -> Item:
    return {"PK": s("USER#1"), "SK": s(f"ORDER#{number}"), "created_at": s(day), "total": n(total)}


def test_contributing_adds_a_kind_that_works(monkeypatch):
    """The two blocks of the page, registered by one line, keep the newest order's total on its user, also by a field of
    the order's key.
    """
    imported = IMPORTED | {"__name__": __name__}
    for block in blocks():
        exec(block, imported)
    kind = imported["KIND"]
    monkeypatch.setitem(registry.KINDS, kind.name, kind)
    for by, total in (("created_at", 5), ("order_id", 9)):
        scene = Scene(parse_rules(f"{TABLES}  {the_rule().replace('created_at', by)}\n"))
        user = scene.put("shop", {"PK": s("USER#1"), "SK": s("PROFILE")})
        scene.put("shop", order("1", "2026-01-02", 5), order("2", "2026-01-01", 9))
        scene.rest()
        assert scene.item(user)["last_total"] == n(total)
