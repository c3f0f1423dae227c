"""Random edits of the core, each of which some test must notice: `make mutants`."""
