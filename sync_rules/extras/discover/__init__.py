"""Rules files made from what a team already has: models, templates, live tables, and the data in them."""
