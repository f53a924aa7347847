"""One module for each figure."""
