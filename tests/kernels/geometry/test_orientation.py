"""The three stages of `orient`, each against rational arithmetic."""

from __future__ import annotations

import math
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import permutations, product
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fencepost.kernels.geometry.orientation import orient, orient_accumulated, orient_integer
from tests.geometry_families import LARGEST, MAGNITUDES

ROOT = Path(__file__).resolve().parents[3]
Six = tuple[float, float, float, float, float, float]
Stage = Callable[[float, float, float, float, float, float], int]

STAGES = [orient, orient_integer, orient_accumulated]
TINY = 5e-324


def exact(ax: float, ay: float, bx: float, by: float, cx: float, cy: float) -> int:
    a, b, c, d, e, f = map(Fraction, (ax, ay, bx, by, cx, cy))
    turn = (c - a) * (f - b) - (d - b) * (e - a)
    return (turn > 0) - (turn < 0)


def nudged(rng: random.Random, value: float) -> float:
    for _ in range(rng.randrange(3)):
        value = math.nextafter(value, rng.choice((-math.inf, math.inf)))
    return value


# --------------------------------------------------------------------------------------- the inputs


def uniform(rng: random.Random) -> Six:
    a, b, c, d, e, f = (rng.uniform(-1, 1) for _ in range(6))
    return a, b, c, d, e, f


def on_a_line(rng: random.Random) -> Six:
    """c computed on the line through a and b, rounded and nudged."""
    scale = rng.choice((1.0, 1e-5, 1e12))
    ax, ay, bx, by = (rng.uniform(-scale, scale) for _ in range(4))
    share = rng.choice((0.5, 2.0, -1.0, rng.uniform(-2, 3)))
    return ax, ay, bx, by, nudged(rng, ax + share * (bx - ax)), nudged(rng, ay + share * (by - ay))


def decimals(rng: random.Random) -> Six:
    """Tenths, at most one of them off by a last bit or two: mostly on a line, or nearly."""
    numbers = [rng.randrange(-3, 4) * 0.1 for _ in range(6)]
    changed = rng.randrange(6)
    numbers[changed] = nudged(rng, numbers[changed])
    a, b, c, d, e, f = numbers
    return a, b, c, d, e, f


def exactly_on_a_line(rng: random.Random) -> Six:
    """Whole numbers of up to 25 bits times a power of two: all 0, whatever stage decides."""
    ax, ay, ux, uy = (rng.randrange(-(2**25), 2**25) for _ in range(4))
    m, n = rng.randrange(-(2**20), 2**20), rng.randrange(-(2**20), 2**20)
    unit = 2.0 ** rng.randint(-1074, 970)
    numbers = (ax, ay, ax + m * ux, ay + m * uy, ax + n * ux, ay + n * uy)
    a, b, c, d, e, f = (number * unit for number in numbers)
    return a, b, c, d, e, f


def about_the_window(rng: random.Random) -> Six:
    """Full mantissas whose exponents lie as far apart as 64-bit integers can take, or farther."""
    spread = rng.choice((7, 8, 9, 10, 11))
    low = rng.choice((-1074 + 53, -400, 0, 900))
    values = [
        rng.choice((-1, 1)) * rng.choice((1 - 2**-53, rng.uniform(0.5, 1), 0.5)) * 2.0 ** (low + e)
        for e in (0, spread, rng.randint(0, spread), rng.randint(0, spread), spread, 0)
    ]
    rng.shuffle(values)
    if rng.random() < 0.3:
        values[rng.randrange(6)] = 0.0
    if rng.random() < 0.5:
        values[4:] = nudged(rng, values[0]), nudged(rng, values[1])
    a, b, c, d, e, f = values
    return a, b, c, d, e, f


def of_all_sizes(rng: random.Random) -> Six:
    values = [0.0, -0.0, *MAGNITUDES, *(-value for value in MAGNITUDES)]
    some = rng.sample(values, 3)
    a, b, c, d, e, f = (nudged(rng, rng.choice(some)) for _ in range(6))
    return tuple(min(max(value, -LARGEST), LARGEST) for value in (a, b, c, d, e, f))  # type: ignore[return-value]


def on_the_brink_of_underflow(rng: random.Random) -> Six:
    """Products half way between two of the least doubles, of differences that are rounded.

    Without the absolute term of its bound, the first stage would be wrong about some of these.
    """
    x_unit, y_unit = 2.0**-537, 2.0**-538
    m, n = rng.choice((1.0, 3.0, 5.0)), rng.choice((1.0, 1.0, 3.0))
    ax = rng.randrange(-8, 9) * x_unit * 2.0 ** -rng.randint(53, 56)
    ay = rng.randrange(-8, 9) * y_unit * 2.0 ** -rng.randint(53, 56)
    bx, by, cx, cy = (nudged(rng, v) for v in (m * x_unit, m * y_unit, n * x_unit, n * y_unit))
    return ax, ay, bx, by, cx, cy


def any_bits(rng: random.Random) -> Six:
    def number() -> float:
        return math.ldexp(rng.uniform(-1, 1), rng.randint(-1080, 1024))

    return number(), number(), number(), number(), number(), number()


INPUTS = [
    *(uniform, on_a_line, decimals, exactly_on_a_line, about_the_window, of_all_sizes, any_bits),
    on_the_brink_of_underflow,
]


def inputs(make: Callable[[random.Random], Six], count: int) -> Iterator[Six]:
    rng = random.Random(make.__name__)
    return (make(rng) for _ in range(count))


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("make", INPUTS)
def test_agree_with_fractions(make: Callable[[random.Random], Six], stage: Stage) -> None:
    signs = {-1: 0, 0: 0, 1: 0}
    for six in inputs(make, 8000):
        assert stage(*six) == exact(*six), [number.hex() for number in six]
        signs[exact(*six)] += 1
    if make is exactly_on_a_line:
        assert signs[0] == 8000
    else:
        assert min(signs[1], signs[-1]) > 500
    if make in (decimals, of_all_sizes):
        assert signs[0] > 100


@pytest.mark.parametrize("stage", STAGES)
def test_all_turns_of_a_small_lattice(stage: Stage) -> None:
    for ax, ay, bx, by, cx, cy in product((-1.0, 0.0, 2.0), repeat=6):
        assert stage(ax, ay, bx, by, cx, cy) == exact(ax, ay, bx, by, cx, cy)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize(
    ("six", "expected"),
    [
        ((0.0, 0.0, TINY, 0.0, 0.0, TINY), 1),
        ((0.0, 0.0, TINY, TINY, 2 * TINY, 2 * TINY), 0),
        ((0.0, 0.0, TINY, TINY, 2 * TINY, 3 * TINY), 1),
        ((-LARGEST, -LARGEST, LARGEST, LARGEST, 0.0, 0.0), 0),
        ((-LARGEST, -LARGEST, LARGEST, LARGEST, 0.0, TINY), 1),
        ((-LARGEST, -LARGEST, LARGEST, LARGEST, TINY, 0.0), -1),
        ((-LARGEST, LARGEST, LARGEST, LARGEST, 0.0, LARGEST), 0),
        ((-LARGEST, LARGEST, LARGEST, LARGEST, 0.0, math.nextafter(LARGEST, 0.0)), -1),
        ((LARGEST, TINY, -LARGEST, -TINY, 0.0, 0.0), 0),
        ((LARGEST, TINY, -LARGEST, -TINY, 1.0, 0.0), 1),
        ((0.0, -0.0, -0.0, 0.0, 1.0, 1.0), 0),
        ((0.1, 0.1, 0.2, 0.2, 0.3, 0.3), 0),
        ((0.1, 0.1, 0.2, 0.2, 0.3, 0.1 + 0.2), 1),
        ((0.0, 0.0, 1.0, 1.0 + 2**-52, 1.0 - 2**-53, 1.0), -1),
        ((12.0, 12.0, 24.0, 24.0, 0.5 + 2**-53, 0.5 + 2**-52), 1),
    ],
)
def test_by_name(stage: Stage, six: Six, expected: int) -> None:
    assert exact(*six) == expected
    assert stage(*six) == expected


# ----------------------------------------------------------------------------- what must hold of it

finite = st.floats(allow_nan=False, allow_infinity=False)
few = st.sampled_from([0.0, -0.0, TINY, -TINY, 0.1, 0.2, 0.3, 0.1 + 0.2, 1.0, 1e300, LARGEST])
points = st.one_of(st.tuples(finite, finite), st.tuples(few, few))
SIGN_OF = dict(zip(permutations(range(3)), (1, -1, -1, 1, 1, -1), strict=True))


@pytest.mark.parametrize("stage", STAGES)
@given(st.tuples(points, points, points))
@example(((0.0, 0.0), (LARGEST, 0.0), (0.0, LARGEST)))
def test_swapping_two_points_turns_the_sign(
    stage: Stage, three: tuple[tuple[float, float], ...]
) -> None:
    expected = exact(*three[0], *three[1], *three[2])
    for (i, j, k), sign in SIGN_OF.items():
        assert stage(*three[i], *three[j], *three[k]) == sign * expected
    a, b, c = ((y, x) for x, y in three)
    assert stage(*a, *b, *c) == -expected
    a, b, c = ((-x, y) for x, y in three)
    assert stage(*a, *b, *c) == -expected


@pytest.mark.parametrize("stage", STAGES)
@given(points, points)
def test_a_point_given_twice_is_on_every_line(
    stage: Stage, a: tuple[float, float], b: tuple[float, float]
) -> None:
    assert stage(*a, *a, *b) == stage(*a, *b, *a) == stage(*b, *a, *a) == 0


UNCOMPILED = """
import numba
import numpy as np
from tests.kernels.geometry.test_orientation import INPUTS, STAGES, exact, inputs

assert numba.config.DISABLE_JIT
for make in INPUTS:
    for six in inputs(make, 300):
        scalars = [np.float64(number) for number in six]
        # The first stage may overflow or be undefined; then it leaves the answer to the others.
        with np.errstate(over="ignore", invalid="ignore"):
            assert STAGES[0](*scalars) == exact(*six), six
        assert [stage(*scalars) for stage in STAGES[1:]] == [exact(*six)] * 2, six
"""


def test_uncompiled() -> None:
    """Without compiler, NumPy would warn where a whole number overflows."""
    done = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", "-c", UNCOMPILED],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
