"""Lambda entry points: each parses its event, calls the pipeline and answers. Rules are loaded once per cold start."""
