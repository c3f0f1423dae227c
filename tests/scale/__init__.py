"""How backfill does at scale: memory that stays flat, time that stays linear, processes killed and gone on with.

`python -m tests.scale --items 1000000` in memory, `--engine ministack --items 100000` on an engine. Exit code 1 when it
does not hold.
"""
