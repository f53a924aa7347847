"""Compilation, and arrays as compiled code takes them."""
