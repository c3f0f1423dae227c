"""docs/contributing.md: the kind of rule that the page adds works as it stands there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import dedent

from pydantic import Field

from sync_rules.language.compiler import RuleCompiler
from sync_rules.language.kinds import registry
from sync_rules.language.kinds.kind import Kind
from sync_rules.language.kinds.options import LinkOption, Model, Via
from sync_rules.language.load import parse_rules
from sync_rules.model.values import Item, Path, get
from sync_rules.rules.families import Desired
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
    "GatheredRule": GatheredRule,
    "Desired": Desired,
    "Blocked": Blocked,
}


def order(number: str, day: str, total: int) -> Item:
    return {"PK": s("USER#1"), "SK": s(f"ORDER#{number}"), "created_at": s(day), "total": n(total)}


def test_contributing_adds_a_kind_that_works(monkeypatch):
    """The two blocks of the page, registered by one line, keep the newest order's total on its user."""
    imported = IMPORTED | {"__name__": __name__}
    blocks = [dedent(block) for block in re.findall(r"^ *```python\n(.*?)^ *```", PAGE, re.MULTILINE | re.DOTALL)]
    assert len(blocks) == 2
    for block in blocks:
        exec(block, imported)
    kind = imported["KIND"]
    monkeypatch.setitem(registry.KINDS, kind.name, kind)
    (rule,) = re.findall(r"`(last: \{latest: .*?\})`", PAGE.replace("\n", " "))
    scene = Scene(parse_rules(f"{TABLES}  {rule}\n"))
    user = scene.put("shop", {"PK": s("USER#1"), "SK": s("PROFILE")})
    scene.put("shop", order("1", "2026-01-02", 5), order("2", "2026-01-01", 9))
    scene.rest()
    assert scene.item(user)["last_total"] == n(5)
