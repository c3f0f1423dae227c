"""Backfill at scale: memory stays flat, time stays linear, killed processes are resumed.

`python -m tests.scale --items 1000000` in memory, `--engine ministack --items 100000` on an engine. Exit code 1 if a
bound is exceeded.
"""
