"""Benchmarks: the cost of the pipeline beside that of the loop that people write by hand. `make bench` runs them."""
