"""Ours beside the tools that people use today, each set up as well as we can."""
