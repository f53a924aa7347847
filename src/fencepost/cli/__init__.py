"""The command `fencepost`, a module for each group of commands.

- `client_commands`: The commands against a running server (`publish`, `subscribe`, `tail`), and
  those about backups (`export`, `import`)
- `entry_point`: The `fencepost` command: argument parsing only
- `file_commands`: The commands about files: `index`, `match`, `explain`, `stats`
- `server_commands`: The commands `fencepost serve` and `fencepost keys`
- `single_subscription`: One event and one subscription, wherever they are, for `fencepost
  explain`
- `spark_commands`: The command `fencepost spark`: a user's files through the jobs of
  `fencepost.spark`
- `terminal`: What commands share: one subscription as it is named, lines, progress bars,
  complaints
"""
