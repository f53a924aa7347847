"""From installation to the first answer, in fresh environments, beside SedonaDB and DuckDB.

- `run`: installs, measures and draws
"""
