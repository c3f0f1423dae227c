"""From a scenario of a peer to a scenario of ours: the files that `sync-rules test` plays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from sync_rules.model.values import AttributeValue, show_path
from sync_rules.rules.ruleset import Rules
from tests.peers.scenarios import ABSENT, NO_ITEM, Expectation, Scenario, Step, item_of, key_of
from tests.peers.translate import translate
from tests.support.builders import attribute_value
from tests.support.compiled import rules_of


def write_files(scenario: Scenario, folder: Path) -> Path:
    """Write the rules and the scenario into a folder; return the file of the scenario."""
    text = translate(scenario).replace("${PEER_PREFIX}", "")
    (folder / "rules.yaml").write_text(text)
    file = folder / "peer.scenario.yaml"
    with file.open("w") as stream:
        YAML().dump(make_scenario(scenario, rules_of(text, {})), stream)
    return file


def make_scenario(scenario: Scenario, rules: Rules) -> dict[str, Any]:
    """Return the scenario as ours. A repair changes nothing after a change that rules have brought in line: its
    expectations belong to the step before.
    """
    data = {
        table: [_make_item(rules, table, one) for one in items] for table, items in scenario.initial.items() if items
    }
    steps: list[dict[str, Any]] = []
    for step in scenario.steps:
        if step.repair is None or step.writes:
            steps.append({"say": f"step {len(steps) + 1}", **_make_writes(rules, step), **_expect(rules, step.expect)})
        elif step.expect and steps:
            steps[-1] |= _expect(rules, step.expect)
    begin = {"rules": "rules.yaml", "data": data, **_expect(rules, scenario.expect_initial)}
    return {**begin, **({"steps": steps} if steps else {})}


def _make_writes(rules: Rules, step: Step) -> dict[str, Any]:
    made: dict[str, dict[str, list[Any]]] = {}
    for verb, write in step.writes:
        table = write["table"]
        if "item" in write:
            made.setdefault("put", {}).setdefault(table, []).append(_make_item(rules, table, write["item"]))
            continue
        key = _make_key(rules, table, write["key"])
        if verb == "delete" or write.get("delete"):
            made.setdefault("delete", {}).setdefault(table, []).append(key)
            continue
        update: dict[str, Any] = {"key": key}
        if write.get("set"):
            update["set"] = {_show(name): _make_plain(attribute_value(one)) for name, one in write["set"].items()}
        if write.get("remove"):
            update["remove"] = [_show(name) for name in write["remove"]]
        made.setdefault("update", {}).setdefault(table, []).append(update)
    return made


def _expect(rules: Rules, expectations: Iterable[Expectation]) -> dict[str, Any]:
    there: dict[str, dict[str, dict[str, Any]]] = {}
    gone: dict[str, list[Any]] = {}
    for one in expectations:
        key = _make_key(rules, one.table, one.key)
        if not one.path and one.value == NO_ITEM:
            gone.setdefault(one.table, []).append(key)
            continue
        row = there.setdefault(one.table, {}).setdefault(str(key), dict(key))
        if one.path:
            absent = isinstance(one.value, str) and one.value == ABSENT
            row[show_path(one.path)] = ABSENT if absent else _make_plain(attribute_value(one.value))
    found: dict[str, Any] = {"expect": {table: list(rows.values()) for table, rows in there.items()}} if there else {}
    return found | ({"expect_gone": gone} if gone else {})


def _make_key(rules: Rules, table: str, key: Any) -> dict[str, Any]:
    return {name: _make_plain(value) for name, value in key_of(rules.tables[table], key).attributes().items()}


def _make_item(rules: Rules, table: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return an item with the types of its keys: a peer's ids may be numbers where ours are texts."""
    item = item_of(values)
    texts = {one.name for one in rules.tables[table].key_attributes if one.type == "S"}
    return {
        name: str(value["N"]) if name in texts and "N" in value else _make_plain(value) for name, value in item.items()
    }


def _make_plain(value: AttributeValue) -> Any:
    match value:
        case {"N": str() as text}:
            return int(text) if text.lstrip("-").isdigit() else float(text)
        case {"M": inner}:
            return {name: _make_plain(one) for name, one in inner.items()}
        case {"L": inner}:
            return [_make_plain(one) for one in inner]
        case {"NULL": _}:
            return None
    ((_, plain),) = value.items()
    return plain


def _show(name: Any) -> str:
    return show_path(tuple(str(name).split(".")))
