"""The tables of a rules file on an engine, under names of their own: what an application does to them, and commands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sync_rules.adapters import aws
from sync_rules.cli import main
from sync_rules.language.load import parse_rules
from sync_rules.model.items import Change
from sync_rules.model.values import Item
from tests.support import engines
from tests.support.builders import key


class Site:
    """Made from a function that gives the text of the rules file by the prefix of all names."""

    def __init__(self, endpoint_url: str, folder: Path, text_of: Callable[[str], str]) -> None:
        self.url, self.folder = endpoint_url, folder
        self.prefix = engines.unique_prefix()
        self.file = folder / "rules.yaml"
        self.file.write_text(text_of(self.prefix))
        self.rules = parse_rules(self.file.read_text())
        engines.create(endpoint_url, self.rules.tables)
        self.client = aws.dynamodb(endpoint_url)
        self.seen: dict[str, int] = {}  # how many records of each table were delivered

    def name(self, table: str) -> str:
        return self.rules.tables[table].physical_name

    def put(self, table: str, *items: Item) -> None:
        for item in items:
            self.client.put_item(TableName=self.name(table), Item=item)

    def delete(self, table: str, *values: str) -> None:
        at = key(self.rules.tables[table], *values)
        self.client.delete_item(TableName=self.name(table), Key=at.attributes())

    def item(self, table: str, *values: str) -> Item:
        at = key(self.rules.tables[table], *values)
        answer = self.client.get_item(TableName=self.name(table), Key=at.attributes(), ConsistentRead=True)
        return answer.get("Item", {})

    def items(self, table: str) -> list[Item]:
        return sorted(self.client.scan(TableName=self.name(table), ConsistentRead=True)["Items"], key=str)

    def new_records(self) -> list[Change]:
        """The stream records of all tables that were not delivered yet."""
        found: list[Change] = []
        for name, table in self.rules.tables.items():
            records = engines.stream_records(self.url, table)
            found += records[self.seen.get(name, 0) :]
            self.seen[name] = len(records)
        return found

    def command(self, verb: str, *options: object, file: Path | None = None) -> int:
        """The exit code of a command on the rules file."""
        return main.main([verb, str(file or self.file), *map(str, options), "--endpoint-url", self.url])
