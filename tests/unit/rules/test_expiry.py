"""Expiries: the attribute of Time to Live, made from a date."""

from __future__ import annotations

import pytest

from sync_rules.model.errors import UserError
from sync_rules.rules.expiry import Expiry, is_expiry, parse_expiry
from tests.support.builders import n, s


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (s("2026-10-24T04:26:40Z"), "1798000000"),
        (s("2026-10-24T06:26:40.9+02:00"), "1798000000"),
        (s("2026-10-24"), "1797984000"),  # in UTC
        (n("1792816000"), "1798000000"),
        (n("1792816000.75"), "1798000000"),
        (n("-86400"), "5097600"),
        (None, None),
        (s(""), "string"),
        (s("tomorrow"), "string"),
        (s("1792816000"), "string"),
        (n("1792816000000"), "number"),  # milliseconds
        ({"BOOL": True}, "boolean"),
    ],
)
def test_expiry_is_so_long_after_the_date(value, expected):
    """In whole seconds since 1970; what is there and is no date is reported by its type, never by its value."""
    expiry = parse_expiry("ttl(created_at, 60d)")
    made, unread = expiry.text(lambda _: value), expiry.unread(lambda _: value)
    if expected is None or expected.isdigit():
        assert (made, unread) == (expected, None)
    else:
        assert made is None
        assert unread.startswith(f"created_at is a {expected}")
        assert "1792816000" not in unread


def test_expiry_is_read_from_text():
    """Blanks do not matter, a path may be quoted, and equal expiries have equal bodies."""
    assert parse_expiry(' ttl( meta."a,b" , 36h ) ') == Expiry('meta."a,b"', 129_600)
    assert parse_expiry("ttl(at, 1d)").body() == parse_expiry("ttl(at,24h)").body()
    assert not is_expiry("{created_at} ttl(x)")


@pytest.mark.parametrize(
    "text", ["ttl()", "ttl(created_at)", "ttl({created_at}, 60d)", "ttl(a b, 60d)", "ttl(at, 0d)", "ttl(at, 60)",
             "ttl(at, 60w)", "ttl(at, 99999d)", "ttl(at, 1d, 2d)", "ttl(.at, 1d)"]
)  # fmt: skip
def test_expiry_that_is_none_is_refused(text):
    """A formula that begins with `ttl(` is always an expiry, never a text."""
    assert is_expiry(text)
    with pytest.raises(UserError):
        parse_expiry(text)
