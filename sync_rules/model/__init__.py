"""Frozen values of DynamoDB and of the pipeline: items, keys, templates, writes, limits, errors."""
