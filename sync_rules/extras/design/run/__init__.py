"""Runs proved access patterns, for applications (`sync_rules.read`) and for `patterns --run`."""
