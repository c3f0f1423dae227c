"""One verb, one file. A command is a plain function that returns an exit code; `cli` parses and calls it."""
