"""Pictures of what Neovim shows, for the documentation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from itertools import groupby
from pathlib import Path

from tests.editors.neovim_screen import Cell, Screen

WIDTH, HEIGHT = 8.4, 18


def draw(screen: Screen, path: Path, rows: int) -> None:
    """Write the first rows of a screen as SVG, with the cursor as a bar."""
    path.write_text("\n".join([*_opening(screen, rows), *_drawn(screen, rows), "</svg>"]) + "\n", "utf-8")


def animate(frames: Sequence[tuple[Screen, float]], path: Path, rows: int) -> None:
    """Write the first rows of screens as an SVG that shows one after the other, again and again, light or dark as the
    reader's system is. Who wants no motion sees the middle one.

    Args:
        frames: each with the seconds that it is shown.
    """
    whole = sum(seconds for _, seconds in frames)
    out, shown = _opening(frames[0][0], rows), 0.0
    style = [
        f"g.frame {{ visibility: hidden; animation: {whole:.2f}s step-end infinite; }}",
        "@media (prefers-color-scheme: light) { svg > * { filter: invert(1) hue-rotate(180deg) brightness(1.12); } }",
        "@media (prefers-reduced-motion: reduce) { g.frame { animation-name: none !important; } "
        f"g.frame:nth-of-type({len(frames) // 2 + 1}) {{ visibility: visible; }} }}",
    ]
    for number, (screen, seconds) in enumerate(frames):
        start, end = (100 * at / whole for at in (shown, shown + seconds))
        shown += seconds
        steps = f"{start:.3f}% {{ visibility: visible; }} {end:.3f}% {{ visibility: hidden; }}"
        style.append(f"@keyframes f{number} {{ {'0% { visibility: hidden; }' if number else ''} {steps} }}")
        out += [f'<g class="frame" style="animation-name: f{number}">', *_drawn(screen, rows), "</g>"]
    out.insert(1, "<style>" + "\n".join(style) + "</style>")
    path.write_text("\n".join([*out, "</svg>"]) + "\n", "utf-8")


def _opening(screen: Screen, rows: int) -> list[str]:
    width = len(screen.cells[0]) * WIDTH
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {rows * HEIGHT}" font-size="14"'
        ' font-family="ui-monospace, \'DejaVu Sans Mono\', Menlo, Consolas, monospace" xml:space="preserve">',
        f'<rect width="100%" height="100%" fill="{_colour(screen.colours[1])}"/>',
    ]


def _drawn(screen: Screen, rows: int) -> list[str]:
    out = []
    for number, row in enumerate(screen.cells[:rows]):
        column = 0
        for highlight, cells in groupby(row, key=lambda cell: cell.highlight):
            piece = list(cells)
            out += _piece(screen, piece, highlight, number, column)
            column += len(piece)
    row_of_cursor, column = screen.cursor
    place = f'x="{column * WIDTH:.1f}" y="{row_of_cursor * HEIGHT}"'
    return [*out, f'<rect {place} width="2" height="{HEIGHT}" fill="{_colour(screen.colours[0])}"/>']


def _piece(screen: Screen, cells: list[Cell], highlight: int, row: int, column: int) -> list[str]:
    attributes = screen.highlights.get(highlight, {})
    foreground = attributes.get("foreground", screen.colours[0])
    background = attributes.get("background", screen.colours[1])
    if attributes.get("reverse"):
        foreground, background = background, foreground
    x, y, length = column * WIDTH, row * HEIGHT, len(cells) * WIDTH
    out = []
    if background != screen.colours[1]:
        out.append(f'<rect x="{x:.1f}" y="{y}" width="{length:.1f}" height="{HEIGHT}" fill="{_colour(background)}"/>')
    style = ' font-weight="bold"' * bool(attributes.get("bold"))
    style += ' font-style="italic"' * bool(attributes.get("italic"))
    text = "".join(cell.text for cell in cells)
    for word in re.finditer(r"\S+", text):  # one by one: spaces may be of any width
        place = f'x="{x + word.start() * WIDTH:.1f}" y="{y + 14}" textLength="{len(word.group()) * WIDTH:.1f}"'
        out.append(f'<text {place} fill="{_colour(foreground)}"{style}>{escape(word.group())}</text>')
    return out


def _colour(number: int) -> str:
    return f"#{number:06x}"
