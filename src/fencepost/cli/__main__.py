"""`python -m fencepost.cli`, and the program that `spark-submit` runs."""

from fencepost.cli.entry_point import main

main()
