"""Times the exact relation of two geometries, beside `shapely.relate` in the same process.

Each library gets its own form of input: Shapely geometry objects, Fencepost flat arrays.
`shapely.relate` returns a DE-9IM string, Fencepost one of eight relations; neither prepares
geometries. Times are per pair: the best of five rounds, mean and standard deviation.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import shapely
from rich.table import Table

from fencepost import reference
from fencepost.engine.relate import matrices, relations
from fencepost.geometry.prepared_shapes import Shapes
from fencepost.geometry.relation import RELATIONS, Relation, matrix_text
from fencepost.testing import (
    Geometries,
    add_holes,
    chain_sharing_pairs,
    make_multipolygons,
    mixed_pairs,
)

ROUNDS = 5


def workloads(
    pairs: int, seed: int
) -> list[tuple[str, Callable[[], tuple[Geometries, Geometries]], float | None]]:
    """Return each workload's name, generator, and the speedup to reach (None: no slower)."""

    def rng() -> np.random.Generator:
        return np.random.default_rng(seed)

    def holed() -> tuple[Geometries, Geometries]:
        source = rng()
        a, b = mixed_pairs(source, pairs // 10, 50)
        return add_holes(source, a, 4), add_holes(source, b, 4)

    def parts() -> tuple[Geometries, Geometries]:
        source = rng()
        a, b = mixed_pairs(source, pairs // 10, 30)
        return make_multipolygons(source, a, 4), make_multipolygons(source, b, 3)

    return [
        ("10 vertices, mixed", lambda: mixed_pairs(rng(), pairs, 10), 8.0),
        ("50 vertices, mixed", lambda: mixed_pairs(rng(), pairs // 2, 50), 12.0),
        ("500 vertices, mixed", lambda: mixed_pairs(rng(), pairs // 20, 500), 50.0),
        ("50 vertices, common chain", lambda: chain_sharing_pairs(rng(), pairs // 10, 50), 3.0),
        ("500 vertices, common chain", lambda: chain_sharing_pairs(rng(), pairs // 40, 500), 3.0),
        ("50 vertices, 4 holes", holed, None),
        ("30 vertices, 3-4 parts", parts, None),
    ]


def run(*, pairs: int, seed: int, verify: int) -> dict[str, Any]:
    """Measure every workload, and compare `verify` pairs of each with the exact reference."""
    results = []
    for name, make, promised in workloads(max(pairs, 40), seed):
        a, b = make()
        results.append({"workload": name, "promised": promised, **_measure(a, b, verify)})
    return {"pairs": pairs, "seed": seed, "shapely": shapely.__version__, "results": results}


def _measure(a: Geometries, b: Geometries, verify: int) -> dict[str, Any]:
    left, right = Shapes.read_all(a), Shapes.read_all(b)

    def run_ours() -> None:
        relations(left, right)

    def run_shapely() -> None:
        shapely.relate(a, b)

    codes, texts = relations(left, right), shapely.relate(a, b)
    our_times, shapely_times = [], []
    for _ in range(ROUNDS):
        our_times.append(_seconds(run_ours) / len(a))
        shapely_times.append(_seconds(run_shapely) / len(a))
    our_texts = [matrix_text(int(packed)) for packed in matrices(left, right)]
    differing = [k for k in range(len(a)) if our_texts[k] != texts[k]]
    wrong = sum(our_texts[k] != reference.matrix(a[k], b[k]) for k in differing)
    checked = range(min(verify, len(a)))
    wrong += sum(
        Relation.from_code(int(codes[k])) != reference.relation(a[k], b[k]) for k in checked
    )
    kinds = Counter(RELATIONS[code].value for code in codes)
    return {
        "pairs": len(a),
        "ours_us": _summary(our_times),
        "shapely_us": _summary(shapely_times),
        "ratio": min(shapely_times) / min(our_times),
        "relations": dict(kinds.most_common()),
        "shapely_differs": len(differing),
        "verified": len(checked) + len(differing),
        "ours_wrong": int(wrong),
    }


def _seconds(call: Callable[[], None]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _summary(times: list[float]) -> dict[str, float]:
    micro = np.array(times) * 1e6
    return {"min": float(micro.min()), "mean": float(micro.mean()), "std": float(micro.std())}


def render(result: dict[str, Any]) -> Table:
    """Return a table of the results in microseconds a pair."""
    table = Table(title=f"Exact relation, us a pair, beside shapely.relate {result['shapely']}")
    for column in (
        "workload",
        "pairs",
        "ours",
        "Shapely",
        "ratio",
        "promised",
        "relations",
        "wrong",
    ):
        table.add_column(column, justify="left" if column in ("workload", "relations") else "right")
    for row in result["results"]:
        promised = row["promised"]
        shares = [f"{name} {n / row['pairs']:.0%}" for name, n in row["relations"].items()]
        table.add_row(
            row["workload"],
            f"{row['pairs']:,}",
            _time(row["ours_us"]),
            _time(row["shapely_us"]),
            f"{row['ratio']:.1f}x",
            "no slower" if promised is None else f"{promised:.0f}x",
            ", ".join(shares),
            f"{row['ours_wrong']} of {row['verified']:,}" if row["verified"] else "not checked",
        )
    return table


def _time(summary: dict[str, float]) -> str:
    return f"{summary['min']:.2f} ({summary['mean']:.2f} ± {summary['std']:.2f})"
