"""The verbs of `design`, and their displays."""
