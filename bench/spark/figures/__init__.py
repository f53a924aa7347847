"""A module for each figure: `run` measures it and gives a `Report`."""
