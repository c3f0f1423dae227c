"""Shows a write as the requests that `transact` would make of it, each action with its reasons."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Final

from sync_rules.cli.show.text import Row
from sync_rules.pipeline.failure_records import printable, show_key
from sync_rules.write.document import as_json
from sync_rules.write.explanation import ExplainedAction, Explanation, Reasons

LINE_MAX_CHARACTERS: Final = 100
YOURS: Final = {"put": "your put", "update": "your update", "delete": "your delete", "check": "your check"}


def transaction_rows(found: Explanation, *, imagined: bool) -> Iterator[Row]:
    """The reads, the actions with their reasons, the transaction, what is left; for machines and for people."""
    if imagined:
        note = "no table was read: there is what the file has in items and nothing else, and all books are complete"
        yield {"note": note}, note
    for operation, parameters in found.reads:
        yield _request(operation, parameters)
    for number, step in enumerate(found.steps):
        yield _step_row(number, step)
    yield _request("TransactWriteItems", {"TransactItems": found.actions})
    for left in found.left:
        items = "" if left.items is None else f" · items: {left.items:,}"
        yield {"left": asdict(left)}, f"left to the stream: rule {left.rule} · {left.why}{items} · {left.when}"


def _request(operation: str, parameters: Any) -> Row:
    shown = as_json(parameters)
    return {"request": operation, "parameters": shown}, (operation, *fold_json(shown).splitlines())


def _step_row(number: int, step: ExplainedAction) -> Row:
    row = {
        "action": number,
        "does": step.verb,
        "item": {"table": step.key.table, "key": show_key(step.key)},
        "yours": step.own or None,
        "writes": _for_machines(step.writes),
        "compares": _for_machines(step.compares),
        "stands": step.stands or None,
    }
    parts = [YOURS[step.own]] if step.own else []
    parts += [f"{', '.join(paths)} by {_rules(titles)}" for titles, paths in step.writes.items()]
    for titles, paths in step.compares.items():
        read = f"it is still {step.stands}" if step.stands else f"as read: {', '.join(paths)}"
        parts.append(f"only if {read} · for {_rules(titles)}")
    return row, f"{number} {step.verb} {printable(step.key)}: {'; '.join(parts)}"


def _for_machines(reasons: Reasons) -> list[dict[str, Any]]:
    return [{"rules": [*titles], "paths": paths} for titles, paths in reasons.items()]


def fold_json(value: Any, indent: int = 0, before: int = 0) -> str:
    """JSON with each part on one line that fits into one. `before`: the characters that the line has already."""
    line = json.dumps(value)
    if len(line) <= LINE_MAX_CHARACTERS - indent - before or not isinstance(value, dict | list) or not value:
        return line
    inner = indent + 2
    if isinstance(value, dict):
        names = {name: f"{json.dumps(name)}: " for name in value}
        parts = [names[name] + fold_json(one, inner, len(names[name])) for name, one in value.items()]
    else:
        parts = [fold_json(one, inner) for one in value]
    begin, end = "{}" if isinstance(value, dict) else "[]"
    lines = ",\n".join(f"{' ' * inner}{part}" for part in parts)
    return f"{begin}\n{lines}\n{' ' * indent}{end}"


def _rules(titles: tuple[str, ...]) -> str:
    if not titles:
        return "what rules read of it"
    return f"rule {titles[0]}" if len(titles) == 1 else f"rules {', '.join(titles)}"
