"""What verify says and shows: JSON lines, tables, an HTML page, the rules as a picture."""
