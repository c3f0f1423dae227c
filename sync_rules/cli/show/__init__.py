"""The displays of the verbs: lines, tables, JSON, an HTML page, and the rules as a graph."""
