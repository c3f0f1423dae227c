"""The scope of a backfill: --resume continues the same work, and names each difference to other work."""

from __future__ import annotations

import pytest

from sync_rules.jobs.backfill.scope import Scope, require_same
from sync_rules.model.errors import UserError

ONE = {"rules": {"a": "1", "b": "2"}, "tables": {"shop": "arn id"}, "segments": 4}
DIFFERENCES = [
    ({"rules": {"a": "1"}}, "rules: it has a, b, this one a"),
    ({"rules": {}}, "rules: it has a, b, this one none"),
    ({"rules": {"a": "1", "b": "3"}}, "rules: b says something else now"),
    ({"rules": {"a": "0", "b": "3"}}, "rules: a says something else now\n  rules: b says something else now"),
    ({"tables": {"shop": "arn id-2"}}, "tables: shop: it has arn id, this one arn id-2"),
    ({"tables": {"shop": "arn id", "x": "y"}}, "tables: it has shop, this one shop, x"),
    ({"table": "shop"}, "--table: it has none, this one shop"),
    ({"where": "a == `1`"}, "--where: it has none, this one a == `1`"),
    ({"segments": 8}, "--segments: it has 4, this one 8"),
    ({"segments": None, "export": ("s3://b", "arn")}, "--segments: it has 4, this one none\n  --from-export: it has none, this one s3://b arn"),
]  # fmt: skip


@pytest.mark.parametrize(("other", "lines"), DIFFERENCES)
def test_scope_names_each_difference_and_no_other(other, lines):
    """The options and rules that differ, each in one line with both values; the same scope is accepted."""
    found, asked = Scope(**ONE).body(), Scope(**{**ONE, **other}).body()
    require_same(asked, asked)
    with pytest.raises(UserError) as error:
        require_same(found, asked)
    said = str(error.value).splitlines()
    assert "\n".join(said[1:-1]).strip() == lines
