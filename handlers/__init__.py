"""Lambda entry points. Each parses its event, calls the pipeline and answers; the rules are loaded once per cold start."""
