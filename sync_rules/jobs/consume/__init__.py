"""The event source mapping's part, in a process of one's own: shards, batches, retries, a queue, checkpoints."""
