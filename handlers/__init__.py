"""Lambda entry points: each parses its event, calls the pipeline and answers. Rules are loaded once per cold start."""

import gc

# What is imported stays, and what is read of an event goes when it is done: there is little to collect, and by default
# Python would look for it again and again: 30 % of the reading of 4,000 records. A start makes 80,000 objects: at half
# the threshold, looking through them took 5 % of it.
gc.set_threshold(100_000, 20, 50)
