"""Rules proposed from the data that tables hold: what is a copy, a count or a path of what, and how far it holds."""
