"""Backfill, verify and redrive in the account: the functions of a state machine, and the client that starts it."""
