"""A plain bar chart as SVG, without a plotting library."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

COLOURS = ["#2f6fb0", "#c8553d", "#7a9e3e", "#8d6bb3", "#b08a2e"]
ROW, LEFT, WIDTH = 18, 250, 560


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


def _short(value: float) -> str:
    """About three digits, with separators and no exponent."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
