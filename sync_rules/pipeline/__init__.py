"""One event or message in, guarded writes out, as generators of requests to a store."""
