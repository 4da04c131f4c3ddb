"""The way down a tree. ``tree_sitter.Node.parent`` and the siblings of a node begin at the root each time, so that a
loop over them takes time that grows with the square of the depth; and a function that calls itself ends where Python's
stack does. A cursor knows both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from codespec.patience import check

if TYPE_CHECKING:
    import tree_sitter


def path_to(root: tree_sitter.Node, start: int, end: int) -> list[tree_sitter.Node]:
    """The nodes around ``start`` … ``end`` (in bytes, not the same), from ``root`` to the smallest one."""
    cursor = root.walk()
    path = [root]
    while cursor.goto_first_child_for_byte(start) is not None:
        node = cursor.node
        if node is None or node.start_byte > start or node.end_byte < end:
            break
        path.append(node)
    return path


def is_deeper(root: tree_sitter.Node, end: int, most: int) -> bool:
    """Whether more than ``most`` nodes are in each other before ``end``, or what the parser could not read there may
    become as many: chains of half as many signs may be overlooked."""
    for start in range(0, end, max(1, most // 2)):
        cursor = root.walk()
        for _ in range(most):
            check()
            node = cursor.node
            if node is not None and node.is_error and node.child_count > most:
                return True
            if cursor.goto_first_child_for_byte(start) is None:
                break
        else:
            return True
    return False


def enter_behind(cursor: tree_sitter.TreeCursor, start: int) -> bool:
    """Go to the first child that ends behind ``start``; False, and no move, where there is none."""
    if cursor.goto_first_child_for_byte(start) is not None:
        return True
    # The cursor also says so where a token without a node is in the way.
    if not cursor.goto_first_child():
        return False
    while cursor.node is None or cursor.node.end_byte <= start:
        if not cursor.goto_next_sibling():
            cursor.goto_parent()
            return False
    return True


class LineStarts:
    """The lines of a text."""

    def __init__(self, data: bytes) -> None:
        self._data, self._done, self._line, self._blank = data, 0, 0, True

    def of(self, byte: int) -> int:
        """Where the line of ``byte`` starts, if only white space stands before it there; else ``byte``. It is never
        less than before, so that a line is read once whatever begins in it."""
        new = self._data[self._done : byte]
        at = new.rfind(b"\n")
        if at >= 0:
            self._line, self._blank, new = self._done + at + 1, True, new[at + 1 :]
        self._blank = self._blank and not new.strip()
        self._done = max(self._done, byte)
        return self._line if self._blank else byte
