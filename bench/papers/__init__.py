"""The experiments of published papers, repeated beside our own engine."""
