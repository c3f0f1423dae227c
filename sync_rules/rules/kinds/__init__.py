"""Rule kinds: one file each, all of the families in `families`.

Law: a kind is pure. It decides which records matter, what is true of a target given its source, and under which guard
that may be written; it reads no store, no clock and keeps nothing.
"""
