"""Words and strings in UTF-8."""
