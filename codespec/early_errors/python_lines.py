"""Python: line breaks within a statement, which only brackets and backslashes allow."""

from __future__ import annotations

from itertools import takewhile

from codespec.early_errors.walk import Node, Walk

# Everything that holds statements on lines of their own.
_COMPOUND = frozenset(
    {
        "if_statement", "for_statement", "while_statement", "with_statement", "try_statement", "match_statement",
        "function_definition", "class_definition", "decorated_definition",
    }
)  # fmt: skip
_WHOLE = frozenset({"string", "comment", "line_continuation"})


def check_lines(walk: Walk, statement: Node) -> None:
    """Report a line break in a statement, or before the colon of a compound one."""
    if statement.type == "decorated_definition":
        for child in statement.children:
            check_lines(walk, child)
    elif walk.is_touched(statement):
        parts = statement.children
        if statement.type in _COMPOUND:
            parts = list(takewhile(lambda child: child.type != ":", parts))
        _check(walk, parts)


def _check(walk: Walk, parts: list[Node]) -> None:
    brackets = 0
    for index, part in enumerate(parts):
        kind, before = part.type, parts[index - 1]
        # Behind a comma a statement may end; the parser then takes the next one for a part of it.
        if index and not brackets and before.type != "," and _breaks(walk.data[before.end_byte : part.start_byte]):
            walk.report("line break in a statement", part)
        if kind in ("(", "[", "{"):
            brackets += 1
        elif kind in (")", "]", "}"):
            brackets -= 1
        elif not brackets and kind not in _WHOLE and part.child_count:
            _check(walk, part.children)


def _breaks(gap: bytes) -> bool:
    return b"\n" in gap and b"\n" in gap.replace(b"\\\r\n", b"").replace(b"\\\n", b"")
