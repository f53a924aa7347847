"""`stable_name`: names of parametrised tests that are the same in every process."""

from __future__ import annotations

import re


def stable_name(value: object) -> str:
    """Return a value as the name of a test, without addresses, which differ between processes."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))[:80]
