"""The demo on the embedded engine: a story with its rules and data, and the examples."""
