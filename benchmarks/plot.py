"""Plain charts as SVG, without a plotting library; one of them as PNG too, with one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TypeAlias

COLOURS = ["#2f6fb0", "#c8553d", "#7a9e3e", "#8d6bb3", "#b08a2e"]
RATIO_COLOURS = [*COLOURS, "#3f9c9c", "#c06c9a", "#777777"]
LABEL = {"facecolor": "white", "edgecolor": "none", "pad": 0.5, "alpha": 0.8}
ROW, LEFT, WIDTH = 18, 250, 560
HEIGHT = 340
DASHES = "6 4"

Line: TypeAlias = tuple[str, Sequence[tuple[float, float]], bool]
"""Name, points from left to right, and whether it is dashed."""


def bars(title: str, values: Sequence[tuple[str, str, float]]) -> str:
    """Horizontal bars on a logarithmic scale: (group, series, value) in order, a colour for each series."""
    series = list(dict.fromkeys(name for _, name, _ in values))
    low = math.floor(math.log10(max(1e-3, min((v for *_, v in values if v > 0), default=1.0))))
    high = math.ceil(math.log10(max((v for *_, v in values), default=10.0)) + 1e-9)
    scale = WIDTH / max(1, high - low)
    height = 60 + ROW * len(values)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 90}" height="{height}" '
        f'font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="white"/>',
        f'<text x="8" y="18" font-size="14">{escape(title)}</text>',
    ]
    for index, name in enumerate(series):
        at = LEFT + 110 * index
        parts.append(f'<rect x="{at}" y="26" width="10" height="10" fill="{COLOURS[index % len(COLOURS)]}"/>')
        parts.append(f'<text x="{at + 14}" y="35">{escape(name)}</text>')
    for power in range(low, high + 1):
        x = LEFT + (power - low) * scale
        parts.append(f'<line x1="{x}" y1="44" x2="{x}" y2="{height}" stroke="#ddd"/>')
        parts.append(f'<text x="{x + 2}" y="{height - 3}" fill="#777">{_short(10.0**power)}</text>')
    previous = ""
    for row, (group, name, value) in enumerate(values):
        y = 48 + ROW * row
        length = max(1.0, (math.log10(max(value, 10.0**low)) - low) * scale)
        colour = COLOURS[series.index(name) % len(COLOURS)]
        if group != previous:
            parts.append(f'<text x="{LEFT - 6}" y="{y + 11}" text-anchor="end">{escape(group)}</text>')
        parts.append(f'<rect x="{LEFT}" y="{y}" width="{length:.1f}" height="{ROW - 5}" fill="{colour}"/>')
        parts.append(f'<text x="{LEFT + length + 4:.1f}" y="{y + 11}">{_short(value)}</text>')
        previous = group
    return "\n".join([*parts, "</svg>\n"])


def lines(title: str, x_label: str, y_label: str, values: Sequence[Line]) -> str:
    """Lines over linear axes that begin at 0, each in the next of the colours.

    Raises:
        ValueError: a line has no points.
    """
    if not values or not all(points for _, points, _ in values):
        raise ValueError("a line without points")
    left, top = 60, 48
    x_step, x_end = _ticks(max(x for _, points, _ in values for x, _ in points))
    y_step, y_end = _ticks(max(y for _, points, _ in values for _, y in points))
    bottom = top + HEIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + WIDTH + 190}" height="{bottom + 44}" '
        f'font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="white"/>',
        f'<text x="8" y="18" font-size="14">{escape(title)}</text>',
        f'<text x="8" y="{top - 8}" fill="#777">{escape(y_label)}</text>',
        f'<text x="{left + WIDTH}" y="{bottom + 34}" fill="#777" text-anchor="end">{escape(x_label)}</text>',
    ]
    for tick in range(round(y_end / y_step) + 1):
        y = bottom - tick * y_step / y_end * HEIGHT
        parts.append(f'<line x1="{left}" y1="{y:.1f}" x2="{left + WIDTH}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{_short(tick * y_step)}</text>')
    for tick in range(round(x_end / x_step) + 1):
        x = left + tick * x_step / x_end * WIDTH
        parts.append(f'<line x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{bottom}" stroke="#eee"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{_short(tick * x_step)}</text>')
    for index, (name, points, dashed) in enumerate(values):
        colour = COLOURS[index % len(COLOURS)]
        style = f'stroke="{colour}" stroke-width="2"' + (f' stroke-dasharray="{DASHES}"' if dashed else "")
        path = " ".join(f"{left + x / x_end * WIDTH:.1f},{bottom - y / y_end * HEIGHT:.1f}" for x, y in points)
        parts.append(f'<polyline points="{path}" fill="none" {style}/>')
        at, y = left + WIDTH + 14, top + 8 + ROW * index
        parts.append(f'<line x1="{at}" y1="{y}" x2="{at + 24}" y2="{y}" {style}/>')
        parts.append(f'<text x="{at + 30}" y="{y + 4}">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>\n"])


def _ticks(most: float) -> tuple[float, float]:
    """The distance of ticks, 1, 2 or 5 times a power of ten, and the end of an axis that holds ``most``."""
    power = 10.0 ** math.floor(math.log10(max(most, 1e-9) / 4))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power * 6 >= most)
    return step, step * math.ceil(most / step - 1e-9)


def _short(value: float) -> str:
    """About three digits, with separators and no exponent."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


@dataclass(frozen=True)
class Bar:
    """A ratio and its interval."""

    group: str
    series: str
    value: float
    interval: Sequence[float]


def ratios(title: str, values: Sequence[Bar], notes: Sequence[str] = ()) -> str:
    """Horizontal bars on a linear scale from 0, with their intervals and a line at 1: the name of each beside it.

    Args:
        notes: lines under the title.
    """
    series = list(dict.fromkeys(bar.series for bar in values))
    top = 34 + 16 * len(notes)
    groups = len({bar.group for bar in values})
    height = top + ROW * len(values) + 10 * groups + 26
    scale = WIDTH / _end(values)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 90}" height="{height}" '
        f'font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="white"/>',
        f'<text x="8" y="18" font-size="14">{escape(title)}</text>',
    ]
    parts += [f'<text x="8" y="{34 + 16 * row}">{escape(note)}</text>' for row, note in enumerate(notes)]
    step = 0.5 if _end(values) <= 5 else 1.0 if _end(values) <= 12 else 5.0
    for tick in range(int(_end(values) / step) + 1):
        x = LEFT + tick * step * scale
        parts.append(f'<line x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{height - 16}" stroke="#ddd"/>')
        parts.append(f'<text x="{x:.1f}" y="{height - 4}" text-anchor="middle" fill="#777">{tick * step:g}x</text>')
    words: list[str] = []
    y, previous = top - 4, ""
    for bar in values:
        y += 14 if bar.group != previous else 0
        if bar.group != previous:
            words.append(f'<text x="8" y="{y + 11}" font-weight="bold">{escape(bar.group)}</text>')
        parts += _shapes(bar, y, scale, RATIO_COLOURS[series.index(bar.series) % len(RATIO_COLOURS)])
        words += _words(bar, y, scale)
        y, previous = y + ROW, bar.group
    one = LEFT + scale
    parts.append(
        f'<line x1="{one:.1f}" y1="{top}" x2="{one:.1f}" y2="{height - 16}" stroke="#000" stroke-width="1.5"/>'
    )
    return "\n".join([*parts, *words, "</svg>\n"])


def _end(values: Sequence[Bar]) -> float:
    """Where the scale ends."""
    return 1.1 * max([1.5, *(max(bar.value, *bar.interval) for bar in values)])


def _shapes(bar: Bar, y: float, scale: float, colour: str) -> list[str]:
    middle = y + (ROW - 5) / 2
    low, high = (LEFT + value * scale for value in bar.interval)
    return [
        f'<rect x="{LEFT}" y="{y}" width="{bar.value * scale:.1f}" height="{ROW - 5}" fill="{colour}"/>',
        f'<line x1="{low:.1f}" y1="{middle}" x2="{high:.1f}" y2="{middle}" stroke="#222"/>',
    ]


def _words(bar: Bar, y: float, scale: float) -> list[str]:
    end = LEFT + max(bar.value, *bar.interval) * scale
    return [
        f'<text x="{LEFT - 6}" y="{y + 11}" text-anchor="end">{escape(bar.series)}</text>',
        f'<text x="{end + 5:.1f}" y="{y + 11}" paint-order="stroke" stroke="white" stroke-width="3">'
        f"{bar.value:.2f}x</text>",
    ]


def ratios_png(path: Path, title: str, values: Sequence[Bar], notes: Sequence[str] = ()) -> None:
    """The same as PNG.

    Raises:
        ImportError: matplotlib is not installed.
    """
    from matplotlib.figure import Figure

    series = list(dict.fromkeys(bar.series for bar in values))
    figure = Figure(figsize=(9, 1.6 + 0.24 * len(values) + 0.2 * len(notes)), layout="constrained")
    axes = figure.add_subplot()
    names = []
    previous = None
    for row, bar in enumerate(values):
        colour = RATIO_COLOURS[series.index(bar.series) % len(RATIO_COLOURS)]
        axes.barh(row, bar.value, color=colour, height=0.75)
        axes.plot(list(bar.interval), [row, row], color="#222222", linewidth=1)
        axes.text(max(bar.value, *bar.interval) + 0.02, row, f"{bar.value:.2f}x", va="center", fontsize=8, bbox=LABEL)
        names.append(bar.series if bar.group == previous else f"{bar.group}: {bar.series}")
        previous = bar.group
    axes.set_yticks(range(len(values)), names, fontsize=8)
    axes.invert_yaxis()
    axes.axvline(1.0, color="black", linewidth=1)
    axes.set_xlim(0, _end(values))
    axes.set_title("\n".join([title, *notes]), fontsize=9, loc="left")
    axes.set_xlabel("speed, target alone = 1", fontsize=8)
    figure.savefig(path, dpi=130)
