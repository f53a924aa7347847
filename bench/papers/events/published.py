"""The numbers that the paper prints.

Hu, Jin, Chen, Zhang, Zhuo: detection of spatial events and its optimisation, Journal of Software
22, supplement 2 (2011), section 4. Its figures 5 and 6 have no numbers, so what its text says of
them is here: percent of the standard version's time and memory, means of ten sizes. Neither the
machine nor the language is named.
"""

from __future__ import annotations

from typing import NamedTuple

SUBSCRIPTIONS = 10_000
EVENTS = 20_000


class Shares(NamedTuple):
    """The optimised version's, in percent of the standard one's."""

    time: float
    memory: float


TAXI = Shares(1.02, 9.32)
SHOP = Shares(1.24, 7.61)
