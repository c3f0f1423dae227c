"""The rules of a file: which table a stream is of."""

from __future__ import annotations

import pytest

from sync_rules.language.load import parse_rules
from sync_rules.model.errors import RecordError

NAMED = "arn:aws:dynamodb:{}:111122223333:table/main"


def of_stream(region: str, *names: str) -> str | None:
    """The name of the table in the rules file that a stream of a Region is of."""
    tables = "".join(f"  t{number}: {{name: '{name}', key: {{id: S}}}}\n" for number, name in enumerate(names))
    found = parse_rules(f"tables:\n{tables}entities: {{}}\nrules: {{}}\n").of_stream(f"{NAMED.format(region)}/stream/x")
    return found and found.name


def test_ruleset_tells_tables_of_one_name_apart_by_their_regions():
    """Tables of one name are told apart by what a stream's ARN says; one that cannot be told is refused."""
    both = NAMED.format("eu-west-1"), NAMED.format("us-east-1")
    assert [of_stream(region, *both) for region in ("eu-west-1", "us-east-1")] == ["t0", "t1"]
    with pytest.raises(RecordError, match="t0 and t1"):
        of_stream("eu-central-1", *both)


def test_ruleset_takes_the_only_table_of_a_name():
    """A single table of its name needs no Region: an emulator has one of its own."""
    assert of_stream("us-east-1", NAMED.format("eu-west-1")) == "t0"
    assert of_stream("us-east-1", "other") is None
