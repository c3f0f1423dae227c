"""sync-rules keeps copied data in DynamoDB true: rules say what a copy must equal, stream records say where to look."""

__version__ = "0.1.0"
