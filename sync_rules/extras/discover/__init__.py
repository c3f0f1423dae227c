"""Rules files made of what a team has already: models, templates, live tables, and the data in them."""
