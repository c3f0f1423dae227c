"""Backfill at scale: memory stays flat, and killed processes are resumed."""
