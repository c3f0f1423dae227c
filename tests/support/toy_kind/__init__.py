"""Kinds of rules that only tests know: `latest` in two files, as the product has them; `stamp`, which says least, in one."""
