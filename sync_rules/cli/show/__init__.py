"""The displays of the verbs: lines, tables, JSON, and the rules as a graph."""
