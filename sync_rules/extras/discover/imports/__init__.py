"""Rules files made of what people have: models, templates, schemas and live tables, each format in one file."""
