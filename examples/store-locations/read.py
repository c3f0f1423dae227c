"""How the application reads it: one Query of one index, whatever the size of the place that is asked for."""

from __future__ import annotations

from typing import Any

from sync_rules.rules.ruleset import Rules


def read(rules: Rules, client: Any) -> dict[str, list[str]]:
    """The names of stores, by question."""
    table = rules.tables["stores"].physical_name

    def stores(country: str, place: str) -> list[str]:
        answer = client.query(
            TableName=table,
            IndexName="by_place",
            KeyConditionExpression="country = :country AND begins_with(place, :place)",
            ExpressionAttributeValues={":country": {"S": country}, ":place": {"S": place}},
        )
        return [item["name"]["S"] for item in answer["Items"]]

    return {
        "stores in Washington": stores("US", "WA#"),
        "stores in Seattle": stores("US", "WA#SEATTLE#"),
        "stores in ZIP codes of Walla Walla that begin with 99": stores("US", "WA#WALLAWALLA#99"),
    }
