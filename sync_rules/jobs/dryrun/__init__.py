"""Plan a backfill: run it against a store that writes nothing, and count and price what it would write."""
