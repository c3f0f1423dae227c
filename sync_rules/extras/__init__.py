"""Beside the core: design, discovery and proof. No file of the core imports one; two tables name them as text."""
