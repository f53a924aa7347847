"""Published systems, each in a room of its own: built as printed, corrected where print is wrong.

A room may import the plan, the language, the model and the kernels, never another room. The
modules say where they differ from their paper, and the tests hold a counterexample to each
printed mistake.
"""
