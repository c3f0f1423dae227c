"""The template that follows from the rules, the bundle of the functions, their roles and alarms."""
