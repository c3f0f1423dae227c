"""Reads what the tables hold, says whether it is right, and repairs it through the pipeline."""
