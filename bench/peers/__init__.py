"""Compares Fencepost with widely used tools, each set up as well as we can."""
