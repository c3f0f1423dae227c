"""Retry what failed: failure records, messages, and batches that were given up."""
