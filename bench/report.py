"""`Report`: the result of a benchmark, for a terminal and as JSON, Markdown and PNG."""

from __future__ import annotations

import io
import json
import platform
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import shapely
from matplotlib import rc_context
from matplotlib.figure import Figure
from PIL import Image
from rich.console import Console, Group
from rich.table import Table as RichTable
from rich.text import Text

_STYLE: dict[Any, Any] = {
    "font.size": 12,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.alpha": 0.3,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}
_COLOURS = 48


@dataclass(frozen=True, slots=True)
class Table:
    """Rows and columns of text; the first column is aligned left, the others right."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a benchmark.

    Attributes
    ----------
    name : str
        Name of the files, without extension.
    title : str
    values : dict
        All numbers, as plain values.
    tables : list of Table
    draw : callable
        Draws the chart on an empty Matplotlib figure.
    size : pair of float
        Width and height of the chart, in inches.
    notes : list of str
        Remarks that a reader needs to interpret the numbers.
    """

    name: str
    title: str
    values: dict[str, Any]
    tables: list[Table]
    draw: Callable[[Figure], None]
    size: tuple[float, float] = (9.0, 5.5)
    notes: list[str] = field(default_factory=list)


def machine() -> dict[str, str]:
    """Return the processor and the versions of the libraries."""
    return {
        "processor": _processor(),
        "python": platform.python_version(),
        "numba": version("numba"),
        "numpy": version("numpy"),
        "shapely": f"{shapely.__version__} (GEOS {shapely.geos_version_string})",
        "fencepost": version("fencepost"),
    }


def _processor() -> str:
    file = Path("/proc/cpuinfo")
    if file.is_file():
        model = re.search(r"^model name\s*:\s*(.+)$", file.read_text(), re.MULTILINE)
        if model:
            return model[1]
    return platform.processor() or platform.machine()


def plain(report: Report) -> dict[str, Any]:
    """Return a report as plain values, for JSON."""
    return {
        "name": report.name,
        "title": report.title,
        "machine": machine(),
        "notes": report.notes,
        **report.values,
    }


def render(report: Report, console: Console) -> Group:
    """Return a report for a terminal."""
    parts: list[Any] = [Text(report.title, style="bold")]
    for table in report.tables:
        parts += _fit_to_width(table, console)
    parts += [Text(f"- {note}") for note in report.notes]
    return Group(*parts)


def _fit_to_width(table: Table, console: Console) -> list[Any]:
    """Return a table, or a list for each of its rows if the table is wider than the console."""
    shown = RichTable(title=table.title, title_justify="left")
    for number, column in enumerate(table.columns):
        shown.add_column(column, justify="right" if number else "left")
    for row in table.rows:
        shown.add_row(*row)
    if console.measure(shown).maximum <= console.width:
        return [shown]
    lists = []
    for row in table.rows:
        row_table = RichTable(title=row[0], title_justify="left", show_header=False, box=None)
        for column, value in zip(table.columns[1:], row[1:], strict=True):
            row_table.add_row(column, value)
        lists.append(row_table)
    return [Text(table.title, style="italic"), *lists]


def write(report: Report, folder: Path) -> list[Path]:
    """Write the JSON, Markdown and PNG of a report into a folder, and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{report.name}.{ending}" for ending in ("json", "md", "png")]
    paths[0].write_text(json.dumps(plain(report), indent=2) + "\n", encoding="utf-8")
    paths[1].write_text(_markdown(report), encoding="utf-8")
    with rc_context(_STYLE):
        chart = Figure(figsize=report.size, layout="constrained")
        report.draw(chart)
        png = io.BytesIO()
        chart.savefig(png, dpi=120)
    # Charts have few colours, and a palette takes a quarter of the bytes of full colour.
    with Image.open(png) as image:
        image.convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE).save(
            paths[2], optimize=True
        )
    return paths


def _markdown(report: Report) -> str:
    lines = [f"# {report.title}", "", f"![{report.title}]({report.name}.png)", ""]
    for table in report.tables:
        lines += [f"**{table.title}**", ""]
        lines.append("| " + " | ".join(table.columns) + " |")
        lines.append("|---|" + "---:|" * (len(table.columns) - 1))
        lines += ["| " + " | ".join(row) + " |" for row in table.rows]
        lines.append("")
    lines += [f"- {note}" for note in report.notes]
    lines += ["", "Measured on: " + ", ".join(f"{k} {v}" for k, v in machine().items()) + "."]
    return "\n".join(lines) + "\n"


def log_axis(axis: Any) -> None:
    """Make an axis logarithmic, with plain numbers as tick labels."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 1000 * low else (1,)))
    axis.set_major_formatter(
        FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")
    )
    axis.set_minor_formatter(NullFormatter())
