"""The tokens of a tree, and what each is part of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from codespec.syntax.descent import enter_behind
from codespec.syntax.kinds import IN_STRINGS, STRING

if TYPE_CHECKING:
    import tree_sitter

Role = Literal["code", "comment", "string"]


def leaves_in(root: tree_sitter.Node, start: int, end: int) -> Iterator[tuple[tree_sitter.Node, Role]]:
    """The leaves that share a byte with ``start..end``, with what they are part of."""
    cursor = root.walk()
    around: list[Role] = []
    while True:
        node = cursor.node
        assert node is not None
        role = _role(node.type, around[-1] if around else "code")
        if not node.child_count and node.end_byte > node.start_byte:
            yield node, role
        if enter_behind(cursor, start):
            around.append(role)
            if _begins_before(cursor, end):
                continue
            cursor.goto_parent()
            around.pop()
        while around and not (cursor.goto_next_sibling() and _begins_before(cursor, end)):
            cursor.goto_parent()
            around.pop()
        if not around:
            return


def _begins_before(cursor: tree_sitter.TreeCursor, end: int) -> bool:
    return cursor.node is not None and cursor.node.start_byte < end


def _role(kind: str, around: Role) -> Role:
    """The role of a node of this type within one."""
    if "comment" in kind:
        return "comment"
    if STRING.search(kind):
        return "string"
    return "code" if kind in IN_STRINGS else around
