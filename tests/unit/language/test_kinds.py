"""A kind is known from one line: every part of the language asks the registry."""

import pytest

from sync_rules.language.kinds import registry
from sync_rules.language.load import check_rules
from tests.support.toy_kind import KIND, RULES


@pytest.fixture
def stamp(monkeypatch):
    """The toy kind, registered as a kind of the product is."""
    monkeypatch.setitem(registry.KINDS, KIND.name, KIND)


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
