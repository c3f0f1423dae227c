"""Access patterns that are proved, and the costs of patterns and rules. It repairs no data: the rules do that."""
