"""The figures, one module each: `run` measures a figure and returns its `Report`."""
