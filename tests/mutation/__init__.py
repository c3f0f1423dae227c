"""Random edits of the core. Some test must notice each edit: `make mutants`."""
