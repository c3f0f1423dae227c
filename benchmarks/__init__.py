"""What the pipeline costs beside the loop that people write by hand: `make bench`."""
