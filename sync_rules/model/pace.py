"""What bounds a piece of work: the limits, whether time is up, and whether one target is being written too often."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sync_rules.model.items import ItemKey
from sync_rules.model.limits import Limits


@dataclass(frozen=True)
class Pace:
    """`may_write` is asked before each write, with the target and what is to be written on it."""

    limits: Limits = field(default_factory=Limits)
    out_of_time: Callable[[], bool] = lambda: False
    may_write: Callable[[ItemKey, object], bool] = lambda _key, _what: True
