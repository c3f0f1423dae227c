"""What a backfill is made of beside its core: runs and their checkpoints, rate, cost, exports."""
