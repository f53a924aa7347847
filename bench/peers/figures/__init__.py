"""One module for each figure: `FULL` and `QUICK` sizes, and `run`, which measures."""
