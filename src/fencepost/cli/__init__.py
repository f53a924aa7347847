"""The command `fencepost`, with a module for each group of commands.

- `client_commands`: the clients of a server, `publish`, `subscribe` and `tail`; backups of its
  data, `export` and `import`
- `entry_point`: the application, its exit codes, and the commands `demo` and `bench`
- `file_commands`: the commands on files, `index`, `match`, `explain` and `stats`
- `saved_index`: what `fencepost index` does with an index that exists: `--verify`, `--dump`
- `server_commands`: the commands `serve` and `keys`
- `single_subscription`: the event and the subscription of `fencepost explain`
- `spark_commands`: the commands `spark match` and `spark submit`
- `terminal`: output that the commands share: lines, JSON, warnings and progress bars
- `warmup_command`: the command `warmup`, which compiles all kernels in several processes
"""
