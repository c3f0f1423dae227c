"""The command line: one verb is one file in `commands`, here or in an extra; `show` formats the output."""
