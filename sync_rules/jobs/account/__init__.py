"""Backfill, verify and redrive in the account: functions that a state machine calls, and who starts and watches it."""
