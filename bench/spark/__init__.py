"""Fencepost on Spark, beside the embedded engine and a broadcast STRtree."""
