"""Shared by the Lambda functions: rules and clients made once per start, logs, metrics, deadlines."""
