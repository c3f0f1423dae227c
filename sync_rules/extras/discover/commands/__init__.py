"""The verb `propose`, and its displays."""
