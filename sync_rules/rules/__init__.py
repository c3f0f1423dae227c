"""What must be true: the `Rule` protocol, the kinds of rules, the rule set, compiled rules."""
