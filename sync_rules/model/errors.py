"""Errors, by their cause.

UserError: a mistake in what the user wrote or set up (exit code 2, or 1 from `check`). StoreError: a service failed;
the work is reported as failed and delivered again. Bugs are assertions (exit code 3).
"""

from __future__ import annotations

from typing import Final

OUT_OF_TIME: Final = "OutOfTime"  # the reason of work that ran out of time


class SyncRulesError(Exception):
    """Root of every error this package raises on purpose."""

    @property
    def sentence(self) -> str:
        return str(self)


class UserError(SyncRulesError):
    """Something that the user wrote or set up cannot work. `found` says what was expected and found, `cure` what to do.
    The message joins both.
    """

    def __init__(self, found: str, cure: str = "") -> None:
        super().__init__(f"{found.removesuffix('.')}: {cure}" if cure else found)
        self.found, self.cure = found, cure


class StoreError(SyncRulesError):
    """A read, write or message of a service failed. `reason` is the service's error code, such as ThrottlingException.

    Raised after the store's own retries. The caller reports the work as failed, so that it is delivered again.
    """

    def __init__(self, reason: str, message: str = "") -> None:
        super().__init__(f"{reason}: {message}" if message else reason)
        self.reason = reason


class ConditionError(SyncRulesError):
    """A condition that cannot be evaluated for an item, so whether it holds is unknown. `reason` is for a failure
    record: it names the function and the type of its argument, and never a value.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class RecordError(SyncRulesError):
    """A stream record that cannot be read. A retry would not help, so it is parked."""
