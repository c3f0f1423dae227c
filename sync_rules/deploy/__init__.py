"""The template that follows from the rules, the bundle of the functions, roles and alarms; used at build time."""
