"""A kind of rule for tests, as anybody would add one: its rule, its form, and a line in the registry."""
