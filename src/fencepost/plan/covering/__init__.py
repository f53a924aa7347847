"""Which terms and which filters imply which: what the simplifier goes by."""
