"""A kind is known from one line: every part of the language asks the registry."""

import pytest

from sync_rules.language.kinds import registry
from sync_rules.language.load import check_rules, parse_rules
from sync_rules.language.schema import json_schema
from tests.support.toy_kind.stamp import KIND, RULES, StampRule


@pytest.fixture
def stamp(monkeypatch):
    """The toy kind, registered as a kind of the product is."""
    monkeypatch.setitem(registry.KINDS, KIND.name, KIND)


@pytest.mark.usefixtures("stamp")
def test_a_registered_kind_is_compiled():
    """Both the short and the long form become rules that run."""
    rules = parse_rules(RULES).rules
    assert [(type(rule), rule.text) for rule in rules.values()] == [(StampRule, "sync-rules"), (StampRule, "v2")]


@pytest.mark.usefixtures("stamp")
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("{stamp: order}", "cure: name the attribute: into: order.source"),
        ("{stamp: ordr, into: order.source}", "no entity 'ordr'. Known: order. Did you mean 'order'?"),
        ("{stamp: order, into: order.source, texts: a}", "no key 'texts'. Known: stamp, into, text"),
        ("{stamp: order, into: order.source, mode: live}", "no key 'mode' in stamp, but in copy"),
        ("stamp order", "cure: stamp ENTITY into ENTITY.ATTRIBUTE"),
        ("stmp order into order.a", "no kind of rule 'stmp'"),
        ("{stamp: order, into: order.PK}", "order.PK is part of the key of table 'shop'"),
    ],
)
def test_a_registered_kind_is_checked(wrong, said):
    """Mistakes are reported in the words that its file gives, and in those that all kinds share."""
    rules, problems = check_rules(RULES.replace("stamp order into order.source", wrong))
    assert rules is None
    assert said in "\n".join(problem.render("rules.yaml") for problem in problems)


@pytest.mark.usefixtures("stamp")
def test_a_registered_kind_is_in_the_schema():
    """An editor completes its form."""
    schema = json_schema()
    entries = next(iter(schema["properties"]["rules"]["patternProperties"].values()))["oneOf"]
    assert {"$ref": "#/$defs/StampForm"} in entries


def test_a_kind_that_is_not_registered_is_unknown():
    """Without its line, nothing of it is left."""
    rules, problems = check_rules(RULES)
    assert rules is None
    assert {problem.code for problem in problems} == {"SR112"}
    assert "StampForm" not in json_schema()["$defs"]
