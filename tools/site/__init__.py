"""The documentation site: what MkDocs does not do by itself. `mkdocs.yml` names `hooks`.

- `hooks`: adds generated pages and the repository's other documents to the site, and mends links
- `command_line`: every command and option of `fencepost`, as Markdown
- `http`: every operation, channel and schema of the server, as Markdown
- `notebooks`: runs Jupyter notebooks, and turns them into pages
"""
