"""One file for each kind of rule: its form in YAML, its compiler, its short form, and what messages say of it."""
