"""Scenarios that restate the tests of other projects, in the form that `sync-rules test` plays."""
