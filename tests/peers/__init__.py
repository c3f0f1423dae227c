"""Scenarios restated from other projects' tests, run against our pipeline under six ways of delivering its records."""
