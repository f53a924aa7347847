"""The figures, one module each: `FULL` and `QUICK` sizes, and `run`, which returns a report."""
