"""Backfill: apply the rules to existing items, by scan, export or key, with checkpoints and a bounded rate."""
