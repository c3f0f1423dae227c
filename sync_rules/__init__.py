"""sync-rules keeps copied data in DynamoDB correct. Rules say what a copy must equal; stream records say where to
look.
"""

__version__ = "0.1.0"
RULES_FORMAT = 1  # of rules files; a change that older files do not survive makes it 2
HOME = "https://github.com/sync-rules/sync-rules"
DOCS = f"{HOME}/blob/main/docs"  # messages name a page by its URL: an installed package has no pages
