"""Access patterns proved: the request that answers each pattern, or why no request does, and the cure."""
