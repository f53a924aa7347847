"""Clients of a server: `fp.Client`, `fp.AsyncClient`, and the commands that use them.

What is asked, retried and resumed is decided in generators that do no input or output; two thin
shells carry it out, one that blocks and one that awaits.
"""
