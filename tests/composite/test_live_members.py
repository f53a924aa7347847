"""`LiveMembers`: searches and evictions, against a plain list."""

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
        item = live.add_item(
            np.array(corners_x), np.array(corners_y), number, number, number, (number,)
        )
        query = PartnerQuery(
            rng.choice(pools),
            rng.random() < 0.1,
            reach_of_phase[number // 300],
            rng.choice((10, 200, 10_000)),
            rng.choice((0, 0, number // 2)),
        )
        times = np.array([number])
        _, members = live.find(query, np.array([item]), times, times)
        reach = query.reach
        expected = {
            name
            for name, (pool, other_box, time, _) in kept.items()
            if pool == query.pool
            and number - time <= query.within
            and name >= query.since
            and (
                query.everywhere
                or (
                    other_box[0] <= box[2] + reach
                    and other_box[2] >= box[0] - reach
                    and other_box[1] <= box[3] + reach
                    and other_box[3] >= box[1] - reach
                )
            )
        }
        names = [live.keys[entry] for entry in members.tolist()]
        assert len(names) == len(set(names))
        assert set(names) == expected
        if rng.random() < 0.1:
            live.remove_item(item)
            continue
        pool, expiry = rng.choice(pools), watermark + rng.randrange(150)
        live.add_to_pool(item, pool, expiry)
        kept[number] = pool, box, number, expiry
        before = len(kept)
        kept = {name: entry for name, entry in kept.items() if entry[3] >= watermark}
        assert live.evict(watermark, 10_000) == (before - len(kept), 0)
        assert len(live) == len(kept)
    assert live.arrays.counts[NODES] > 3  # some lie at other levels
    assert len(live.arrays.items) < 900  # dropped items are reused
    expired, excess = live.evict(watermark, 5)
    assert (expired, excess, len(live)) == (0, len(kept) - 5, 5)
