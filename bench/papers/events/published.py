"""The numbers that the paper prints.

Hu, Jin, Chen, Zhang, Zhuo: detection of spatial events and its optimisation, Journal of Software
22, supplement 2 (2011), section 4. Its figures 5 and 6 have no numbers, so these are from its text:
percent of the standard version's time and memory, means of ten sizes. The paper names neither the
machine nor the programming language.
"""

from __future__ import annotations

from typing import NamedTuple

SUBSCRIPTIONS = 10_000
EVENTS = 20_000


class Shares(NamedTuple):
    """Time and memory of the optimised version, in percent of the standard version's."""

    time: float
    memory: float


TAXI = Shares(1.02, 9.32)
SHOP = Shares(1.24, 7.61)
