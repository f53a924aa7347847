"""The demonstration: hail warnings over a made-up city, and how each building relates to them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from shapely.geometry import Polygon, box, mapping

from fencepost.errors import FencepostError
from fencepost.match.relate import relate_one_to_many
from fencepost.model.geometry import Shapes
from fencepost.model.relation import RELATIONS, Relation
from fencepost.testing import star_coordinates

BUILDINGS, WARNINGS = 2_000, 4
_COLOURS = {
    Relation.DISJOINT: "#d8dde0",
    Relation.OVERLAPS: "#e8a33d",
    Relation.INSIDE: "#c8453b",
    Relation.COVERED_BY: "#7b2d8e",
    Relation.MEETS: "#2f7fc1",
}


def run(out: Path, seed: int) -> None:
    """Relate every building to every warning, print a summary, write GeoJSON and a picture."""
    rng = np.random.default_rng(seed)
    buildings = _city(rng)
    warnings = [
        Polygon(star_coordinates(rng, 40, tuple(rng.uniform(150, 850, 2)), rng.uniform(120, 260)))
        for _ in range(WARNINGS)
    ]
    console = Console()
    shapes = Shapes.read_all(buildings)
    codes = np.stack(
        [relate_one_to_many(w, shapes) for w in track(warnings, "Relating", console=console)]
    )
    converse = np.array([r.converse.code for r in RELATIONS], np.uint8)[codes]
    _summary(console, converse)
    out.mkdir(parents=True, exist_ok=True)
    _write_geojson(out / "buildings.geojson", buildings, converse)
    _draw(out / "city.png", buildings, warnings, converse)
    console.print(f"Wrote {out / 'city.png'} and {out / 'buildings.geojson'}")


def _city(rng: np.random.Generator) -> list[Polygon]:
    """Blocks of buildings on a grid of streets."""
    side = int(np.ceil(np.sqrt(BUILDINGS)))
    step = 1000 / side
    homes = []
    for number in range(BUILDINGS):
        x, y = step * (number % side), step * (number // side)
        width, depth = step * rng.uniform(0.4, 0.8, 2)
        homes.append(box(x, y, x + width, y + depth))
    return homes


def _summary(console: Console, codes: np.ndarray[tuple[int, int], np.dtype[np.uint8]]) -> None:
    table = Table(title=f"{BUILDINGS:,} buildings and {WARNINGS} hail warnings, exactly")
    table.add_column("warning", justify="right")
    for relation in _COLOURS:
        table.add_column(relation.value, justify="right")
    for number, row in enumerate(codes, start=1):
        counts = Counter(row.tolist())
        table.add_row(str(number), *(f"{counts[relation.code]:,}" for relation in _COLOURS))
    console.print(table)


def _worst(column: np.ndarray[tuple[int], np.dtype[np.uint8]]) -> Relation:
    """The relation to the warning that concerns a building most."""
    order = (Relation.INSIDE, Relation.COVERED_BY, Relation.OVERLAPS, Relation.MEETS)
    return next((r for r in order if r.code in column), Relation.DISJOINT)


def _write_geojson(
    path: Path, buildings: list[Polygon], codes: np.ndarray[tuple[int, int], np.dtype[np.uint8]]
) -> None:
    features = [
        {
            "type": "Feature",
            "id": number,
            "geometry": mapping(building),
            "properties": {"relation": _worst(codes[:, number]).value},
        }
        for number, building in enumerate(buildings)
    ]
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))


def _draw(
    path: Path,
    buildings: list[Polygon],
    warnings: list[Polygon],
    codes: np.ndarray[tuple[int, int], np.dtype[np.uint8]],
) -> None:
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise FencepostError(
            "the picture needs matplotlib; install it with: pip install 'fencepost[plot]'"
        ) from error
    mpl.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.collections import PolyCollection
    from matplotlib.patches import Patch

    figure, axes = plt.subplots(figsize=(9, 9), layout="constrained")
    relations = [_worst(codes[:, k]) for k in range(len(buildings))]
    axes.add_collection(
        PolyCollection(
            [np.asarray(b.exterior.coords) for b in buildings],
            facecolors=[_COLOURS[r] for r in relations],
            edgecolors="#ffffff",
            linewidths=0.3,
        )
    )
    axes.add_collection(
        PolyCollection(
            [np.asarray(w.exterior.coords) for w in warnings],
            facecolors="#3b6ea822",
            edgecolors="#1f3f66",
            linewidths=1.6,
        )
    )
    axes.legend(
        handles=[Patch(color=c, label=f"{r.value} a warning") for r, c in _COLOURS.items()],
        loc="upper center",
        bbox_to_anchor=(0.5, -0.01),
        ncols=5,
        frameon=False,
    )
    axes.set(xlim=(-15, 1015), ylim=(-15, 1015), aspect="equal", title="Hail over a city")
    axes.set_axis_off()
    figure.savefig(path, dpi=130)
    plt.close(figure)
