"""The work of a check grows with the rules and no faster: counted in calls, so that no clock decides."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest

from benchmarks.checking import rules_text
from sync_rules.language.load import check_rules
from tests.support.depth import spread_over_night

OURS = str(Path(sys.modules["sync_rules"].__file__ or "").parent)
TWICE_AT_MOST = 2.2


def calls(work: Callable[[], object]) -> int:
    """The calls of our own functions, generators' steps included."""
    found = 0

    def count(frame: FrameType, event: str, _argument: object) -> None:
        nonlocal found
        found += event == "call" and frame.f_code.co_filename.startswith(OURS)

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return found


def one_table(rules: int) -> str:
    """Entities of one table, with rules of several kinds; every third rule has a condition."""
    lines = ["tables: {shop: {key: {PK: S, SK: S}}, ledger: {key: {PK: S, SK: S}}}", "entities:"]
    for n in range(rules // 2):
        lines += (
            f"  user{n}: {{table: shop, key: {{PK: 'USER{n}#{{id}}', SK: USER}}}}",
            f"  order{n}: {{table: shop, key: {{PK: 'USER{n}#{{id}}', SK: 'ORDER#{{order}}'}}}}",
        )
    lines.append("rules:")
    for n in range(rules):
        one = n // 2
        lines.append(f"  rule{n}: " + FORMS[n % len(FORMS)].format(one=one, n=n))
    return "\n".join(lines) + "\n"


FORMS = (
    "copy user{one}.name into order{one}.name{n}",
    "{{count: order{one}, into: user{one}.n{n}, where: \"state == 'open'\"}}",
    "{{embed: order{one}, into: user{one}.m{n}, limit: {{items: 3}}, where: address.city}}",
    "{{derive: order{one}.d{n}, as: '{{x}}-{{y}}'}}",
)


def same_attribute(rules: int) -> str:
    """Rules that all write one attribute: each is an error, and one is enough for each."""
    head = "tables: {shop: {key: {PK: S}}}\nentities: {user: {table: shop}}\nrules:\n"
    return head + "".join(f"  rule{n}: {{derive: user.a, as: '{{b}}-{n}'}}\n" for n in range(rules))


@pytest.mark.parametrize("text_of", spread_over_night([lambda n: rules_text(n, n // 2), one_table, same_attribute]))
def test_check_of_twice_the_rules_is_twice_the_work(text_of: Callable[[int], str]) -> None:
    """One table per rule, all in one table, all wrong: no list is gone through once for each of its entries."""
    few, many = (text_of(count) for count in (60, 120))
    assert calls(lambda: check_rules(many, {})) < TWICE_AT_MOST * calls(lambda: check_rules(few, {}))
