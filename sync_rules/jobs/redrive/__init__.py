"""What failed, wherever it was kept, and putting it through again."""
