"""Proves in an account what the code relies on from AWS: a stack of its own, a probe for each fact, a report."""
