"""Consume streams in a process of one's own, as an event source mapping does: shards, batches, retries, checkpoints."""
