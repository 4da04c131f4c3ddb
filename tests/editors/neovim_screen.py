"""What Neovim shows, kept from the ``redraw`` events that it sends to a user interface."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

GHOST_COLOUR = 0x7F8C98
"""The foreground that tests give to ghost text, and nothing else has."""


class Cell(NamedTuple):
    text: str
    highlight: int


@dataclass(frozen=True)
class Frame:
    """The screen as it was shown at one time.

    Attributes:
        rows: without spaces at the end.
        ghost: the ghost text on it, without spaces at its ends of lines.
    """

    rows: tuple[str, ...]
    ghost: str


@dataclass
class Screen:
    """A grid of cells.

    Attributes:
        frames: everything that was shown, in order.
        cursor: row and column, from 0.
        highlights: attributes by number.
        colours: foreground and background.
    """

    cells: list[list[Cell]] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    cursor: tuple[int, int] = (0, 0)
    highlights: dict[int, dict[str, Any]] = field(default_factory=dict)
    colours: tuple[int, int] = (0xFFFFFF, 0)

    def apply(self, events: list[Any]) -> None:
        """Follow the events of one ``redraw`` notification."""
        for name, *calls in events:
            handler = getattr(self, f"_{name}", None)
            if handler is not None:
                for arguments in calls:
                    handler(*arguments)

    @property
    def latest(self) -> Frame:
        return self.frames[-1]

    def is_ghost(self, cell: Cell) -> bool:
        return self.highlights.get(cell.highlight, {}).get("foreground") == GHOST_COLOUR

    def _grid_resize(self, grid: int, width: int, height: int) -> None:
        self.cells = [[Cell(" ", 0)] * width for _ in range(height)]

    def _grid_clear(self, grid: int) -> None:
        self.cells = [[Cell(" ", 0)] * len(row) for row in self.cells]

    def _grid_cursor_goto(self, grid: int, row: int, column: int) -> None:
        self.cursor = (row, column)

    def _grid_line(self, grid: int, row: int, column: int, cells: list[list[Any]], *_: Any) -> None:
        highlight = 0
        for text, *more in cells:
            highlight = more[0] if more else highlight
            for _repeated in range(more[1] if len(more) > 1 else 1):
                self.cells[row][column] = Cell(text, highlight)
                column += 1

    def _grid_scroll(self, grid: int, top: int, bottom: int, left: int, right: int, rows: int, columns: int) -> None:
        kept = range(max(top, top - rows), min(bottom, bottom - rows))
        for row in kept if rows > 0 else reversed(kept):
            self.cells[row][left:right] = self.cells[row + rows][left:right]

    def _hl_attr_define(self, number: int, rgb: dict[str, Any], cterm: Any, info: Any) -> None:
        self.highlights[number] = rgb

    def _default_colors_set(self, foreground: int, background: int, *_: Any) -> None:
        self.colours = (foreground, background)

    def _flush(self) -> None:
        rows = tuple("".join(cell.text for cell in row).rstrip() for row in self.cells)
        ghosts = ("".join(cell.text for cell in row if self.is_ghost(cell)).rstrip() for row in self.cells)
        self.frames.append(Frame(rows, "\n".join(filter(None, ghosts))))
