"""HTML and SVG of objects in notebooks: self-contained, escaped, without scripts.

Every colour is set, so that a card looks the same on light and on dark pages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from math import cos, floor, isfinite, log10, radians
from typing import NamedTuple, TypeAlias

XY: TypeAlias = tuple[float, float]

INK, MUTED, LINE, PAPER, WATER = "#1f2937", "#6b7280", "#e5e7eb", "#ffffff", "#f5f8fb"
AREA, PATH, POINT, REACH = "#2563eb", "#0f766e", "#be185d", "#b45309"
_MEANINGS = {AREA: "area", PATH: "line", POINT: "point", REACH: "within a distance"}
_FONT = "font-family:system-ui,-apple-system,'Segoe UI',Roboto,sans-serif"
_WIDTH, _MIN_HEIGHT = 560.0, 160.0
_MARGIN = 14.0
_MIN_PIXELS = 3.0  # what is smaller is drawn as a dot
_GRID_LINES = 5


class Figure(NamedTuple):
    """A shape on a map.

    Attributes
    ----------
    rings : sequence of sequences of (x, y)
        The rings of an area, the lines of a path, or one point each.
    colour : str
    is_filled : bool
    label : str
        Shown while the pointer rests on the shape.
    reach : float
        The distance from the shape up to which events match, in the unit of y.
    """

    rings: Sequence[Sequence[XY]]
    colour: str
    is_filled: bool
    label: str
    reach: float = 0.0


def card(title: str, facts: Mapping[str, object], body: str = "") -> str:
    """Return a framed card: a title, facts as name and value, and further HTML."""
    cells = "".join(
        f'<span style="white-space:nowrap"><span style="color:{MUTED}">{escape(name)}</span> '
        f'<b style="font-weight:600">{escape(shown(value))}</b></span>'
        for name, value in facts.items()
    )
    return (
        f'<div style="{_FONT};font-size:13px;line-height:1.5;color:{INK};background:{PAPER};'
        f"border:1px solid {LINE};border-radius:8px;padding:12px 14px;max-width:{_WIDTH:g}px;"
        'box-sizing:content-box">'
        f'<div style="font-weight:700;font-size:14px;margin-bottom:4px">{escape(title)}</div>'
        f'<div style="display:flex;flex-wrap:wrap;gap:2px 18px">{cells}</div>{body}</div>'
    )


def note(text: str) -> str:
    """Return a line of small grey text."""
    return f'<div style="color:{MUTED};font-size:12px;margin-top:6px">{escape(text)}</div>'


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table."""
    style = f"text-align:left;padding:3px 18px 3px 0;border-bottom:1px solid {LINE};color:"
    head = "".join(
        f'<th style="{style}{MUTED};font-weight:500;background:none">{escape(name)}</th>'
        for name in header
    )
    body = "".join(
        "<tr style='background:none'>"
        + "".join(f'<td style="{style}{INK}">{escape(shown(value))}</td>' for value in row)
        + "</tr>"
        for row in rows
    )
    return (
        '<table style="border-collapse:collapse;margin-top:8px;font-size:13px;background:none">'
        f"<tr>{head}</tr>{body}</table>"
    )


def tree_node(badge: str, colour: str, text: str, details: str, children: Iterable[str]) -> str:
    """Return a node of a tree: a coloured badge, code, details, and the nodes below it."""
    mark = (
        f'<span style="flex:none;width:64px;text-align:center;color:{PAPER};background:{colour};'
        'border-radius:9px;font-size:11px;font-weight:600;line-height:17px;margin-top:1px">'
        f"{escape(badge)}</span>"
    )
    code = (
        '<code style="font-family:ui-monospace,SFMono-Regular,Menlo,monospace;font-size:12.5px;'
        f'color:{INK};background:none;padding:0;overflow-wrap:anywhere">{escape(text)}</code>'
    )
    if details:
        code += f'<div style="color:{MUTED};font-size:12px">{escape(details)}</div>'
    below = "".join(children)
    if below:
        below = (
            f'<div style="margin-left:9px;padding-left:14px;border-left:2px solid {colour}">'
            f"{below}</div>"
        )
    style = "display:flex;align-items:flex-start;gap:8px;margin-top:7px"
    return f'<div style="{style}">{mark}<div>{code}</div></div>{below}'


def legend(figures: Sequence[Figure]) -> str:
    """Return what the colours of a map mean, with the number of shapes of each."""
    counts = Counter(figure.colour for figure in figures)
    items = "".join(
        f'<span style="white-space:nowrap"><span style="display:inline-block;width:9px;height:9px;'
        f'border-radius:3px;background:{colour};margin-right:5px"></span>{name} '
        f"{counts[colour]:,}</span>"
        for colour, name in _MEANINGS.items()
        if counts[colour]
    )
    return (
        f'<div style="display:flex;flex-wrap:wrap;gap:2px 16px;color:{MUTED};font-size:12px;'
        f'margin-top:6px">{items}</div>'
    )


def size_text(bytes: int) -> str:
    """Return a number of bytes as text."""
    return f"{bytes / 1e6:,.1f} MB" if bytes >= 100_000 else f"{bytes / 1e3:,.1f} kB"


def shown(value: object) -> str:
    """Return a value as text; whole numbers have separators."""
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


# ------------------------------------------------------------------------------------------- maps


def map_svg(figures: Sequence[Figure], is_geographic: bool, max_height: float = 420.0) -> str:
    """Return a map of figures, the largest first, with a grid; empty without figures."""
    frame = _Frame.around(figures, is_geographic, max_height)
    if frame is None:
        return ""
    drawn = "".join(_drawn(figure, frame) for figure in figures)
    label = f"map of {len(figures):,} shapes"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{label}" '
        f'viewBox="0 0 {frame.width:g} {frame.height:.0f}" width="100%" '
        f'style="display:block;margin-top:10px;background:{WATER};border:1px solid {LINE};'
        f'border-radius:6px;{_FONT}">{_grid(frame, is_geographic)}{drawn}</svg>'
    )


class _Frame(NamedTuple):
    """The part of the plane that is shown, and its scale; y grows upwards."""

    x0: float
    y1: float
    x_scale: float
    y_scale: float
    width: float
    height: float

    @classmethod
    def around(
        cls, figures: Sequence[Figure], is_geographic: bool, max_height: float
    ) -> _Frame | None:
        corners = [corner for figure in figures for corner in _corners(figure, is_geographic)]
        corners = [(x, y) for x, y in corners if isfinite(x) and isfinite(y)]
        if not corners:
            return None
        xs, ys = zip(*corners, strict=True)
        x0, x1, y0, y1 = min(xs), max(xs), min(ys), max(ys)
        stretch = max(cos(radians((y0 + y1) / 2)), 0.05) if is_geographic else 1.0
        across, up = (x1 - x0) * stretch, y1 - y0
        if not isfinite(across) or not isfinite(up):
            return None
        smallest = max(abs(x0), abs(y0), abs(x1), abs(y1), 1e-9) * 1e-4
        across, up = max(across, up / 8, smallest), max(up, across / 8, smallest)
        scale = min((_WIDTH - 2 * _MARGIN) / across, (max_height - 2 * _MARGIN) / up)
        height = max(up * scale + 2 * _MARGIN, _MIN_HEIGHT)
        centre_x, centre_y = x0 + (x1 - x0) / 2, y0 + (y1 - y0) / 2
        return cls(
            centre_x - _WIDTH / 2 / (scale * stretch),
            centre_y + height / 2 / scale,
            scale * stretch,
            scale,
            _WIDTH,
            height,
        )

    def place(self, point: XY) -> XY:
        return (point[0] - self.x0) * self.x_scale, (self.y1 - point[1]) * self.y_scale


def _corners(figure: Figure, is_geographic: bool) -> list[XY]:
    corners = []
    for ring in figure.rings:
        xs, ys = zip(*ring, strict=True)
        y0, y1 = min(ys), max(ys)
        reach_x = figure.reach / max(cos(radians((y0 + y1) / 2)), 0.05)
        reach_x = reach_x if is_geographic else figure.reach
        corners.append((min(xs) - reach_x, y0 - figure.reach))
        corners.append((max(xs) + reach_x, y1 + figure.reach))
    return corners


def _drawn(figure: Figure, frame: _Frame) -> str:
    colour, radius = figure.colour, figure.reach * frame.y_scale
    placed = [[frame.place(point) for point in ring] for ring in figure.rings]
    points = [point for ring in placed for point in ring]
    xs, ys = zip(*points, strict=True)
    if max(max(xs) - min(xs), max(ys) - min(ys)) < _MIN_PIXELS:
        placed = [[(sum(xs) / len(xs), sum(ys) / len(ys))]]
    if all(len(ring) == 1 for ring in placed):
        drawn = "".join(_dot(*ring[0], colour, radius) for ring in placed)
    else:
        end = "Z" if figure.is_filled else ""
        path = "".join("M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in ring) + end for ring in placed)
        shape = f'<path d="{path}" stroke="{colour}" stroke-linejoin="round" '
        fill = f'fill="{colour}" fill-opacity="0.13" fill-rule="evenodd"'
        fill = fill if figure.is_filled else 'fill="none"'
        drawn = f'{shape}stroke-opacity="0.75" stroke-width="1.1" {fill}/>'
        if radius >= 1:
            halo = f'stroke-opacity="0.14" stroke-width="{2 * radius:.1f}" stroke-linecap="round"'
            drawn = f'{shape}{halo} fill="none"/>{drawn}'
    return f"<g><title>{escape(figure.label)}</title>{drawn}</g>"


def _dot(x: float, y: float, colour: str, radius: float) -> str:
    """Return a dot and, if it can be seen, the disc around it."""
    place = f'<circle cx="{x:.1f}" cy="{y:.1f}"'
    dot = f'{place} r="2.2" fill="{colour}"/>'
    if radius < _MIN_PIXELS:
        return dot
    disc = f'{place} r="{radius:.1f}" fill="{colour}" fill-opacity="0.13" stroke="{colour}"'
    return f'{disc} stroke-opacity="0.75" stroke-dasharray="4 3"/>{dot}'


def _grid(frame: _Frame, is_geographic: bool) -> str:
    x1 = frame.x0 + frame.width / frame.x_scale
    y0 = frame.y1 - frame.height / frame.y_scale
    parts = []
    unit = "°" if is_geographic else ""
    text = f'font-size="10" fill="{MUTED}"'
    for x in _ticks(frame.x0, x1):
        at, _ = frame.place((x, 0.0))
        parts.append(f'<path d="M{at:.1f} 0V{frame.height:.0f}" stroke="{LINE}"/>')
        if 24 < at < frame.width - 24:
            place = f'x="{at:.1f}" y="{frame.height - 4:.0f}" text-anchor="middle"'
            parts.append(f"<text {place} {text}>{_number(x)}{unit}</text>")
    for y in _ticks(y0, frame.y1):
        _, at = frame.place((0.0, y))
        parts.append(f'<path d="M0 {at:.1f}H{frame.width:g}" stroke="{LINE}"/>')
        if 14 < at < frame.height - 18:
            parts.append(f'<text x="4" y="{at - 3:.1f}" {text}>{_number(y)}{unit}</text>')
    return "".join(parts)


def _ticks(low: float, high: float) -> list[float]:
    """Return round numbers between two numbers."""
    span = (high - low) / _GRID_LINES
    if not isfinite(span) or span <= 0:
        return []
    power = 10.0 ** floor(log10(span))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= span)
    first = floor(low / step) + 1
    return [(first + k) * step for k in range(2 * _GRID_LINES) if (first + k) * step < high]


def _number(value: float) -> str:
    return f"{value:.10g}" if abs(value) < 1e9 else f"{value:.3g}"
