"""The command line: one verb is one file in `commands`, and `show` is all that prints."""
