"""Work at scale: memory stays flat, and a large fan-out is the work of many."""
