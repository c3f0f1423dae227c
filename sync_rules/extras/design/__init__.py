"""Access patterns that are proved, and what they and the rules cost. It keeps no data right: the rules do that."""
