"""Slow, exact reference implementations that the tests hold the kernels against."""
