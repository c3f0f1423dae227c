"""Options that do nothing alone, and options that exclude each other, for all verbs in two tables.

Invariant: an option that says what is done is refused where it would have no effect. Settings of where and how fast,
such as --region, --failures or --workers, may be given to every form of a verb, so that a script can always give them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import typer

from sync_rules.model.errors import UserError

Options = tuple[str, ...]

# By verb: an option, and the options of which it needs one.
NEEDS: Final[Mapping[str, Mapping[str, Options]]] = {
    "init": {"--samples": ("--from-account",)},
    "propose": {
        "--key": ("--from-export",),
        "--index": ("--from-export",),
        "--show-values": ("--report", "--json", "--format"),
    },
    "plan": {"--seed": ("--sample",)},
    "cost": {"--seed": ("--sample",)},
    "verify": {"--seed": ("--sample",), "--table": ("--key",)},
    "explain": {"--table": ("--key", "--where-used")},
    "emulator": {"--calls-table": ("--rules",)},
    "record": {"--salt": ("--redact",), "--keep-shape": ("--redact",)},
}
REMOTE: Final = ("--stack", "--detach")  # of the verbs that run in the account
NEEDS_REMOTE: Final[Mapping[str, Options]] = {
    "backfill": (*REMOTE, "--stop"),
    "verify": (*REMOTE, "--segments"),
    "redrive": REMOTE,
}

# By verb: an option, and the options that it cannot be given with.
EXCLUDES: Final[Mapping[str, Mapping[str, Options]]] = {
    "check": {"--explain": ("--json", "--format", "--strict-warnings")},
    "test": {"--list-variants": ("--rules", "--jsonl", "--json")},
    "backfill": {
        "--resume": ("--restart",),
        "--changed": ("--rule",),
        "--key": ("--where", "--from-export", "--changed", "--resume", "--restart"),
        "--forget": (
            "--where", "--from-export", "--changed", "--resume", "--restart", "--key", "--rule", "--table",
            "--max-lag", "--function", "--remote", "--jsonl", "--json",
        ),
        "--stop": (
            "--where", "--from-export", "--changed", "--resume", "--restart", "--rule", "--table", "--detach",
            "--segments", "--workers", "--rate", "--jsonl", "--json",
        ),
        "--detach": ("--jsonl", "--json"),
    },
    "verify": {"--key": ("--from", "--sample"), "--from": ("--sample",), "--detach": ("--jsonl", "--json")},
    "tables": {"--dry-run": ("--yes",)},
    "replay": {"--seed": ("--seeds",)},
    "redrive": {
        "--remote": ("--shard", "--from", "--to", "--fanout-queue", "--calls-table"),
        "--detach": ("--jsonl", "--json"),
    },
}  # fmt: skip


def require_sense(context: typer.Context) -> None:
    """Check the options that were given against the tables. What the environment says is no option that was given, but
    it is there for an option that needs it.

    Raises:
        UserError: for the first option that has no effect, with the cure.
    """
    verb = context.info_name or ""
    sources: dict[str, str] = {}
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        sources |= dict.fromkeys(parameter.opts, source.name if source else "")
    typed = {option for option, source in sources.items() if source == "COMMANDLINE"}
    there = typed | {option for option, source in sources.items() if source == "ENVIRONMENT"}
    for option, others in EXCLUDES.get(verb, {}).items():
        for other in others:
            if option in typed and other in typed:
                raise UserError(f"{option} and {other} cannot be given together: leave one of them out")
    needs = {**NEEDS.get(verb, {}), **dict.fromkeys(NEEDS_REMOTE.get(verb, ()), ("--remote",))}
    for option, needed in needs.items():
        if option in typed and there.isdisjoint(needed):
            cure = f"give {' or '.join(needed)} too, or leave {option} out"
            raise UserError(f"{option} needs {' or '.join(needed)}, and has no effect without it: {cure}")
