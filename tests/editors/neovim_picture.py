"""A picture of what Neovim shows, for the documentation."""

from __future__ import annotations

import re
from html import escape
from itertools import groupby
from pathlib import Path

from tests.editors.neovim_screen import Cell, Screen

WIDTH, HEIGHT = 8.4, 18


def draw(screen: Screen, path: Path, rows: int) -> None:
    """Write the first rows of a screen as SVG, with the cursor as a bar."""
    width = len(screen.cells[0]) * WIDTH
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {rows * HEIGHT}" font-size="14"'
        ' font-family="ui-monospace, \'DejaVu Sans Mono\', Menlo, Consolas, monospace" xml:space="preserve">',
        f'<rect width="100%" height="100%" fill="{_colour(screen.colours[1])}"/>',
    ]
    for number, row in enumerate(screen.cells[:rows]):
        column = 0
        for highlight, cells in groupby(row, key=lambda cell: cell.highlight):
            piece = list(cells)
            out += _piece(screen, piece, highlight, number, column)
            column += len(piece)
    row_of_cursor, column = screen.cursor
    place = f'x="{column * WIDTH:.1f}" y="{row_of_cursor * HEIGHT}"'
    out.append(f'<rect {place} width="2" height="{HEIGHT}" fill="{_colour(screen.colours[0])}"/></svg>')
    path.write_text("\n".join(out) + "\n")


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
