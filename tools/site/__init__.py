"""The documentation site: what MkDocs does not do by itself. `mkdocs.yml` names `hooks`.

- `hooks`: adds generated pages and the repository's other documents to the site, and mends links
- `command_line`: the page with every command and option of `fencepost`
- `http`: the page with every operation, channel and schema of the server
- `notebooks`: runs Jupyter notebooks, and turns them into pages
"""
