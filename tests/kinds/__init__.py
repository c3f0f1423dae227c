"""Kinds on trial: what the simulator must know of a kind, in one module for each kind.

A module here has a `TRIAL` of its kind. The worlds, mutants, grammar and oracle of the simulator take in what they find,
so that a new kind touches none of them. The kinds that are older than this folder are written into those tables by hand.
docs/contributing.md says what a trial has; rollup.py is an example.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from tests.simulation.breaking import Mutation


@dataclass(frozen=True)
class Trial:
    """The trial of a kind. `worlds` are small rules files by name, and `mutants` one broken invariant each, with the
    worlds that must notice. `write` is a rule at random in a file that is being written, `check` the truth about a rule,
    from the documentation alone.
    """

    kind: str
    worlds: Mapping[str, str] = field(default_factory=dict)
    mutants: Mapping[str, Mutation] = field(default_factory=dict)
    write: Callable[[Any], dict[str, Any] | None] | None = None
    check: Callable[[Any, Mapping[str, Any]], None] | None = None


TRIALS: tuple[Trial, ...] = tuple(
    import_module(f"{__name__}.{module.name}").TRIAL
    for module in iter_modules(__path__)
    if not module.name.startswith(("__", "test_"))
)
