"""Backfill: apply the rules to existing items, by scan or key, with checkpoints and a bounded rate."""
