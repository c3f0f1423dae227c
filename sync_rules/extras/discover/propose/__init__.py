"""Propose rules from the data in tables: copies, counts, paths and other derivations, with the share that agrees."""
