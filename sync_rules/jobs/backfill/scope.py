"""What a backfill is about, as JSON, and in what two of them differ: a checkpoint is gone on with only by its own.

Law: whatever decides what a cursor means is in it: which rules, as they are now; which tables, by identity and not by
name alone; which of their items; in how many segments.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sync_rules.adapters.state import Body, State
from sync_rules.jobs.backfill.head import abandon, unfinished
from sync_rules.model.errors import UserError

OF: Final = {
    "rules": "rules",
    "tables": "tables",
    "table": "--table",
    "where": "--where",
    "segments": "--segments",
    "export": "--from-export",
}


@dataclass(frozen=True)
class Scope:
    """`rules` are the fingerprints of the rules by name, `tables` the ARN and the id of each table. `export` is the
    place of an export and its ARN.
    """

    rules: Mapping[str, str]
    tables: Mapping[str, str]
    table: str | None = None
    where: str | None = None
    segments: int | None = None
    export: Sequence[str | None] | None = None

    def body(self) -> Body:
        """As JSON."""
        export = None if self.export is None else list(self.export)
        return {**vars(self), "rules": dict(self.rules), "tables": dict(self.tables), "export": export}


def about(body: Body) -> str:
    """What a backfill is about, in words."""
    said = [f"of {_listed(body['rules'])}"]
    said += [f"{OF[name]} {_shown(body[name])}" for name in ("table", "where", "export") if body[name] is not None]
    return ", ".join(said)


def require_beginning(state: State, scope: Body, where: str, *, resume: bool, restart: bool) -> None:
    """See to it that what is unfinished in a state is gone on with only when that is asked for, and only by itself.
    `where` is the state, for people.

    Raises:
        UserError: when it is not, or there is nothing to go on with.
        StoreError: when the state does not answer.
    """
    if restart:
        abandon(state)
    found = unfinished(state)
    if found is None and resume:
        raise UserError(f"{where} has no backfill to go on with: leave out --resume")
    if found is not None and resume:
        require_same(found["scope"], scope)
    elif found is not None:
        raise UserError(
            f"{where} has a backfill that is unfinished, {about(found['scope'])}. "
            "Go on with it with --resume, or begin anew with --restart, which forgets how far it is."
        )


def require_same(found: Body, asked: Body) -> None:
    """Raises UserError with everything in which what is asked for differs from what was found unfinished."""
    lines = "".join(f"\n  {line}" for line in _differences(found, asked))
    if lines:
        raise UserError(
            f"the backfill that is unfinished is another one:{lines}\n"
            "Give the same options and rules to go on with it, or --restart to forget it."
        )


def _differences(found: Body, asked: Body) -> Iterator[str]:
    for name, words in OF.items():
        before, now = found.get(name), asked[name]
        if before == now:
            continue
        if not isinstance(before, Mapping) or not isinstance(now, Mapping):
            yield f"{words}: it has {_shown(before)}, this one {_shown(now)}"
        elif before.keys() != now.keys():
            yield f"{words}: it has {_listed(before)}, this one {_listed(now)}"
        else:
            for key in (key for key in before if before[key] != now[key]):
                changed = (
                    f"it has {before[key]}, this one {now[key]}" if name == "tables" else "says something else now"
                )
                yield f"{words}: {key} {changed}" if name == "rules" else f"{words}: {key}: {changed}"


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(str(each) for each in value if each is not None)
    return "none" if value is None else str(value)


def _listed(names: Mapping[str, Any]) -> str:
    return ", ".join(sorted(names)) or "none"
