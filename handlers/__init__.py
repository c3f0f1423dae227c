"""Lambda entry points: each parses its event, calls the pipeline and answers. Rules are loaded once per cold start."""

import gc

# What is imported stays, and what is read of an event goes when it is done: there is little to collect, and by default
# Python would look for it again and again: 4 % of a start, and 30 % of the reading of 4,000 records.
gc.set_threshold(50_000, 20, 50)
