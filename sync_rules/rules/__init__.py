"""The rules room: the `Rule` protocol, one file per kind of rule, the rule set, compiled rules."""
