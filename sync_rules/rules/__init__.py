"""The truth as rules: the `Rule` protocol, the kinds of rules, the rule set, compiled rules."""
