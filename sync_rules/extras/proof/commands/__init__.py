"""The verb `selftest`."""
