"""Fencepost on Spark, beside the embedded engine and beside what one would write by hand."""
