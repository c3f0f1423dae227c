"""Access patterns proved: the request that answers each, or why there is none, and the cure."""
