"""One module for each figure or table: `FULL` and `QUICK` sizes, and `run`, which measures."""
