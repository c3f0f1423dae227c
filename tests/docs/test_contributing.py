"""docs/contributing.md: the kind of rule that the page adds works as it stands there."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from textwrap import dedent

import pytest

from tests.test_house import ROOT

PAGE = (ROOT / "docs/contributing.md").read_text()
RULES = """
tables:
  shop: {key: {PK: S, SK: S}}
entities:
  user:  {table: shop, key: {PK: "USER#{user_id}", SK: PROFILE}}
  order: {table: shop, key: {PK: "USER#{user_id}", SK: "ORDER#{order_id}"}}
rules:
  RULE
  by-key: {latest: order.total, into: user.latest_by_key, by: order_id}
"""
SCENARIO = """
data:
  shop:
    - {PK: USER#1, SK: PROFILE}
    - {PK: USER#1, SK: ORDER#1, created_at: "2026-01-02", total: 5}
    - {PK: USER#1, SK: ORDER#2, created_at: "2026-01-01", total: 9}
steps:
  - say: nothing happens
    expect: {shop: {PK: USER#1, SK: PROFILE, last_total: 5, latest_by_key: 9}}
"""
LINES_MAX = 1  # of an existing file that a kind changes, beside the name in an import
RULE_FILE, FORM_FILE = "sync_rules/rules/kinds/latest.py", "sync_rules/language/kinds/latest.py"
REGISTRY = "sync_rules/language/kinds/registry.py"
IMPORTS = {  # which the page leaves to the reader
    RULE_FILE: '''"""latest: an attribute of the newest of a parent's children."""
from __future__ import annotations
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from sync_rules.model.numbers import read_text
from sync_rules.model.values import Item, Path, get
from sync_rules.rules.kinds.gathered_rule import GatheredRule
from sync_rules.rules.rule import Blocked
''',
    FORM_FILE: '''"""Rules of kind `latest`."""
from __future__ import annotations
from pydantic import Field
from sync_rules.language.compiler import RuleCompiler
from sync_rules.language.kinds.options import Kind
from sync_rules.language.kinds.options import LinkOption, Model, Via
from sync_rules.rules.kinds.latest import LatestRule
''',
}


@pytest.mark.night
def test_contributing_adds_a_kind_that_works(tmp_path):
    """Two files and a line in a copy of the product: its commands know the kind, and it keeps the newest order's total on
    its user, also by a field of the order's key.
    """
    copied = tmp_path / "sync_rules"
    shutil.copytree(ROOT / "sync_rules", copied, ignore=shutil.ignore_patterns("__pycache__"))
    blocks = re.findall(r"^ *```python\n(.*?)^ *```", PAGE, re.MULTILINE | re.DOTALL)
    for (name, imports), block in zip(IMPORTS.items(), blocks, strict=True):
        (tmp_path / name).write_text(imports + dedent(block))
    text = (tmp_path / REGISTRY).read_text()
    added = text.replace("history, mirror", "history, latest, mirror")
    added = added.replace("        history.KIND,\n", "        history.KIND,\n        latest.KIND,\n")
    (tmp_path / REGISTRY).write_text(added)
    assert len(added.splitlines()) == len(text.splitlines()) + LINES_MAX
    (rule,) = re.findall(r"`(last: \{latest: .*?\})`", PAGE.replace("\n", " "))
    (tmp_path / "rules.yaml").write_text(RULES.replace("RULE", rule))
    (tmp_path / "scenario.yaml").write_text(SCENARIO)
    for words in (["check", "rules.yaml"], ["graph", "rules.yaml"], ["schema"], ["test", "scenario.yaml"]):
        command = [sys.executable, "-m", "sync_rules", *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "latest" in done.stdout or words[0] in {"check", "test"}, words
