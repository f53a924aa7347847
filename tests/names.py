"""Names of parametrised tests that are the same in every process."""

from __future__ import annotations

import re


def stable_name(value: object) -> str:
    """A value as the name of a test: no addresses, which differ from process to process."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))[:80]
