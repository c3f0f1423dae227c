"""The declaration of a verb, next to its function: how it ends, and options that need or exclude others.

Invariant: an option that selects an action is refused if it would have no effect. Every form of a verb that runs on
tables accepts settings such as --region or --rate, so that a script can always give them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import typer

from sync_rules.cli.exit_codes import ExitCode
from sync_rules.model.errors import UserError

Options = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Verb:
    """A verb, apart from its options, which its function declares. verbs.toml describes it. `stopped` is the code after
    Ctrl-C. `only_reads`: the verb writes nothing, and its message after Ctrl-C says so. `needs` maps an option to
    options that give it an effect. `excludes` maps an option to options that cannot accompany it.
    """

    stopped: ExitCode = ExitCode.INTERRUPTED
    only_reads: bool = False
    needs: Mapping[str, Options] = field(default_factory=dict)
    excludes: Mapping[str, Options] = field(default_factory=dict)

    @property
    def ends(self) -> bool:
        """False for a verb that runs until it is stopped."""
        return self.stopped is ExitCode.INTERRUPTED

    def require_sense(self, context: typer.Context) -> None:
        """Check the options that were given. A value from the environment is not refused, and satisfies a need.

        Raises:
            UserError: for the first option that has no effect, with the cure.
        """
        sources: dict[str, str] = {}
        for parameter in context.command.params:
            source = context.get_parameter_source(parameter.name or "")
            off = parameter.secondary_opts and context.params.get(parameter.name or "") is False
            sources |= dict.fromkeys(parameter.secondary_opts if off else parameter.opts, source.name if source else "")
            both = (*parameter.opts, *parameter.secondary_opts)
            if parameter.secondary_opts and set(both) <= set(context.find_root().obj or ()):
                raise UserError(f"{' and '.join(both)} cannot be given together: leave one of them out")
        typed = {option for option, source in sources.items() if source == "COMMANDLINE"}
        there = typed | {option for option, source in sources.items() if source == "ENVIRONMENT"}
        for option, others in self.excludes.items():
            for other in others:
                if option in typed and other in typed:
                    raise UserError(f"{option} and {other} cannot be given together: leave one of them out")
        for option, needed in self.needs.items():
            if option in typed and there.isdisjoint(needed):
                refused = {other for one in typed for other in self.excludes.get(one, ())}
                cure = f"leave {option} out"
                if possible := [one for one in needed if one not in refused]:
                    cure = f"give {' or '.join(possible)} too, or {cure}"
                raise UserError(f"{option} needs {' or '.join(needed)}, and has no effect without it: {cure}")
