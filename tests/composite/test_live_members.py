"""Live members: what is found and what goes, against a plain list."""

from __future__ import annotations

import random

import numpy as np
import pytest

from fencepost.composite.live_members import LiveMembers
from fencepost.kernels.detect.member_grid import NODES, PartnerQuery

SIZES = (0.0, 0.0, 0.0, 0.01, 1.0, 300.0)


@pytest.mark.parametrize("seed", range(4))
def test_members_are_found_as_in_a_list(seed: int) -> None:
    rng = random.Random(seed)
    live = LiveMembers()
    pools = [live.new_pool(0.0), live.new_pool(5.0), live.new_pool(0.0)]
    # By name: pool, box, time, expiry.
    kept: dict[int, tuple[int, tuple[float, float, float, float], int, int]] = {}
    watermark = 0
    reach_of_phase = rng.choice(((0.0, 1.0, 1e4), (2.0, 2.0, 2.0), (1e5, 0.0, 0.0)))
    for number in range(900):
        x, y, size = rng.uniform(-50, 50), rng.uniform(-50, 50), rng.choice(SIZES)
        watermark += rng.random() < 0.3
        box = (x, y, x + size, y + size)
        corners_x, corners_y = ([x], [y]) if size == 0.0 else ([x, x + size], [y, y + size])
        item = live.put(np.array(corners_x), np.array(corners_y), number, number, number, (number,))
        asked = PartnerQuery(
            rng.choice(pools),
            rng.random() < 0.1,
            reach_of_phase[number // 300],
            rng.choice((10, 200, 10_000)),
            rng.choice((0, 0, number // 2)),
        )
        at = np.array([number])
        _, found = live.find(asked, np.array([item]), at, at)
        reach = asked.reach
        wanted = {
            name
            for name, (pool, other, time, _) in kept.items()
            if pool == asked.pool
            and number - time <= asked.within
            and name >= asked.since
            and (
                asked.everywhere
                or (
                    other[0] <= box[2] + reach
                    and other[2] >= box[0] - reach
                    and other[1] <= box[3] + reach
                    and other[3] >= box[1] - reach
                )
            )
        }
        names = [live.keys[one] for one in found.tolist()]
        assert len(names) == len(set(names))
        assert set(names) == wanted
        if rng.random() < 0.1:
            live.drop(item)
            continue
        pool, expiry = rng.choice(pools), watermark + rng.randrange(150)
        live.file(item, pool, expiry)
        kept[number] = pool, box, number, expiry
        before = len(kept)
        kept = {name: one for name, one in kept.items() if one[3] >= watermark}
        assert live.evict(watermark, 10_000) == (before - len(kept), 0)
        assert len(live) == len(kept)
    assert live.arrays.counts[NODES] > 3  # some at other levels
    assert len(live.arrays.items) < 900  # those that went made room
    expired, crowded = live.evict(watermark, 5)
    assert (expired, crowded, len(live)) == (0, len(kept) - 5, 5)
