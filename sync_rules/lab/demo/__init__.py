"""The demo: rules, sample data and a story, told on the embedded engine."""
