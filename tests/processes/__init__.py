"""Whole processes under faults: `run`, backfill, verify, redrive and writers on an engine, judged by a plain checker."""
