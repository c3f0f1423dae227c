"""The two protocols of a rule: what decides, what only tools ask; and the page that lists all answers."""

from __future__ import annotations

import ast
import re

import pytest

from sync_rules.rules.description import Description
from sync_rules.rules.families import EffectRule, ListingRule, PartRule, TargetRule
from sync_rules.rules.rule import Rule
from tests.test_house import PACKAGE, ROOT, SOURCES, name_of, room_of

PAGE = (ROOT / "docs/contributing.md").read_text().partition("## What a rule answers")[2].partition("\n## ")[0]
PROTOCOLS = {one.__name__: one for one in (Rule, Description, ListingRule, TargetRule, PartRule, EffectRule)}
DECIDING = {"pipeline", "functions"}  # what runs for each record


def is_final(member: object) -> bool:
    return getattr(getattr(member, "fget", member), "__final__", False)


def answers(protocol: type) -> set[str]:
    """The answers that a protocol asks for first: no helper, no final one, none that a protocol above it has."""
    own = {name for name in (*vars(protocol), *vars(protocol).get("__annotations__", ())) if not name.startswith("_")}
    above = {name for base in protocol.__mro__[1:] for name in (*vars(base), *vars(base).get("__annotations__", ()))}
    return {name for name in own - above if not is_final(vars(protocol).get(name))}


def listed(protocol: str) -> dict[str, str]:
    """The rows of a protocol's table on the page: each answer with its default."""
    part = re.split(r"^`(\w+)`: ", PAGE, flags=re.MULTILINE)
    rows = re.findall(r"^\| (`[^|]*) \| [^|]* \| ([^|]*) \|$", part[part.index(protocol) + 1], re.MULTILINE)
    return {name: default for cell, default in rows for name in re.findall(r"`(\w+)`", cell)}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_description_page_lists_every_answer_of_a_protocol(protocol):
    """The table of a protocol has each of its answers once, and no other."""
    assert listed(protocol).keys() == answers(PROTOCOLS[protocol])


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_description_page_says_which_answers_a_kind_must_give(protocol):
    """Exactly the abstract answers and the fields without a default are marked; `conditions` where there is a listing."""
    of = PROTOCOLS[protocol]
    abstract = {name for name in answers(of) if getattr(vars(of).get(name), "__isabstractmethod__", False)}
    fields = {name for name in answers(of) & vars(of).get("__annotations__", {}).keys() if not hasattr(of, name)}
    marked = {name for name, default in listed(protocol).items() if "**must**" in default}
    assert marked == abstract | fields | ({"conditions"} & answers(of))


@pytest.mark.parametrize(
    "path",
    [
        *(path for path in SOURCES if room_of(name_of(path)) in DECIDING),
        *(PACKAGE / f"rules/{name}.py" for name in ("fingerprints", "selection", "record_filter", "books", "ledger")),
    ],
    ids=name_of,
)
def test_description_is_not_asked_by_what_decides(path):
    """The pipeline, the functions, and the code that makes fingerprints, orders rules or filters records ask what is true,
    and nothing that only tools want to know.
    """
    tools = {name for name in vars(Description) if not name.startswith("_")}
    asked = {node.attr for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)}
    assert not asked & tools
