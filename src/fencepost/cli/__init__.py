"""The command `fencepost`, a module for each group of commands."""
