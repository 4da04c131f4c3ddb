"""Go: line breaks that end a statement, where the parser goes on (Go's specification, Semicolons)."""

from __future__ import annotations

import re

from codespec.early_errors.walk import Node, Walk

# What holds statements or specifications, of which each may end with its line.
_LISTS = frozenset(
    {
        "source_file", "statement_list", "block", "field_declaration_list", "interface_type", "import_spec_list",
        "var_spec_list", "const_declaration", "type_declaration", "expression_switch_statement",
        "type_switch_statement", "select_statement", "expression_case", "type_case", "default_case",
        "communication_case",
    }
)  # fmt: skip
_READ = 12  # bytes before a line break, more than a keyword has
_WORD = re.compile(rb"\w{1,%d}\Z" % _READ)
# The keywords after which no statement ends.
_KEYWORDS = frozenset(
    b"case chan const default defer else for func go goto if import interface map package range select struct switch "
    b"type var".split()
)


def check_lines(walk: Walk, node: Node) -> None:
    """Report line breaks between the parts of a node at which the compiler sees a semicolon."""
    if node.type in _LISTS:
        return
    before: Node | None = None
    for child in node.children:
        if child.type == "comment":
            continue
        if before is not None and before.type not in ("\n", ";"):
            end, start = before.end_byte, child.start_byte
            if start > end and b"\n" in walk.data[end:start] and _ends(walk.data[max(0, end - _READ) : end]):
                walk.report("line break in a statement", child)
        before = child


def _ends(text: bytes) -> bool:
    """Whether a line that ends so ends a statement."""
    word = _WORD.search(text)
    if word is not None:
        return word[0] not in _KEYWORDS
    return text.endswith((b")", b"]", b"}", b'"', b"`", b"'", b"++", b"--"))
