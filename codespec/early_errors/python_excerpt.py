"""Of a Python document what its compiler has to see to judge one range: the statements around it, with the bodies of
other functions and classes left out, so that it takes as long as the functions around the range and not as the file.

Lines and columns stay what they are.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_left, bisect_right
from copy import copy
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

from codespec.patience import check

_SCOPES = frozenset({"function_definition", "class_definition"})
_SCOPE = re.compile(rb"\b(?:def|class) ")
_LARGEST = 20_000
"""Bytes of a list or dictionary from which elements that the range does not touch are left out."""
_ELEMENTS = frozenset({"list", "set", "dictionary"})
_NO_LINE_END = re.compile(rb"[^\r\n]+")
# Whether anything in a text may be of 3.12 or later: ``type X``, ``def f[T]``, a string with code in it.
_NEWER = re.compile(rb"\btype\s+\w|\b(?:def|class)\s+\w+\s*\[|\b[rR]?[fFtT][rR]?[\"']")

Omission = tuple[int, int, bytes]
"""Start and end, in bytes of the document, of what is left out, and what stands there instead."""


class Excerpt(NamedTuple):
    """A part of a document.

    Attributes:
        text: UTF-8; its lines and columns are those of the document from ``start`` on.
        start: in bytes.
        statement: start and end of the innermost statement that the range touches, in bytes of the document.
    """

    text: bytes
    start: int
    statement: tuple[int, int]


class Cut:
    """Cuts excerpts from one document for one range.

    Args:
        root: of the document's tree.
        begin, end: of the range, in bytes.
    """

    def __init__(self, root: Any, data: bytes, begin: int, end: int) -> None:
        self._statements, self._data = list(root.children), data
        self._set(begin, end)

    def at(self, begin: int, end: int) -> Cut:
        """The same for another range."""
        other = copy(self)
        other._set(begin, end)
        return other

    def _set(self, begin: int, end: int) -> None:
        self._begin, self._end = begin, end
        # A block may wait for a statement at the end of the text before the range.
        self._reach = begin
        while self._reach > 0 and self._data[self._reach - 1 : self._reach].isspace():
            self._reach -= 1

    def excerpt(self, narrow: bool = False, hollow: bool = False, older: bool = False) -> Excerpt:
        """The part that the range is in.

        Args:
            narrow: whether only statements that the range touches remain, and what they are in.
            hollow: whether the innermost of them is left out, too.
            older: whether to leave out what the Python that runs this does not know yet.
        """
        inside = self._around(narrow)
        if not inside:
            return Excerpt(self._data[self._begin : self._end], self._begin, (0, 0))
        start, end = self._line_start(inside[0].start_byte), inside[-1].end_byte
        omissions, statement = self._omissions(inside, narrow)
        if hollow and statement[1]:
            omissions.append((*statement, b"0"))
        if older:
            omissions += newer_syntax(inside, self._data)
        return Excerpt(without(self._data, start, end, omissions), start, statement)

    def has_newer_syntax(self, excerpt: Excerpt) -> bool:
        """Whether it may have what the Python that runs this does not know."""
        return sys.version_info < (3, 14) and _NEWER.search(excerpt.text) is not None

    def _around(self, narrow: bool) -> list[Any]:
        """The statements of the file that the range touches, those on the same lines, and one more on each side where
        not ``narrow``; where future imports have to do with it, all that are before."""
        statements = self._statements
        reach = self._begin if narrow else self._reach
        first = bisect_left(statements, reach, key=lambda each: each.end_byte)
        last = bisect_right(statements, self._end, key=lambda each: each.start_byte) - 1
        if first > last:
            return []
        if not narrow:
            first = next((index for index in range(first - 1, -1, -1) if statements[index].type != "comment"), first)
            behind = range(last + 1, len(statements))
            last = next((index for index in behind if statements[index].type != "comment"), last)
        while first > 0 and statements[first - 1].end_point[0] == statements[first].start_point[0]:
            first -= 1
        while last + 1 < len(statements) and statements[last].end_point[0] == statements[last + 1].start_point[0]:
            last += 1
        if not narrow and b"__future__" in self._data:
            imports = [index for index, each in enumerate(statements) if each.type == "future_import_statement"]
            if imports and statements[imports[-1]].end_byte >= self._reach:
                first, last = 0, max(last, imports[-1])
        return list(statements[first : last + 1])

    def _touches(self, node: Any, narrow: bool = False) -> bool:
        return bool(node.end_byte >= (self._begin if narrow else self._reach) and node.start_byte <= self._end)

    def _line_start(self, place: int) -> int:
        return max(self._data.rfind(b"\n", 0, place), self._data.rfind(b"\r", 0, place)) + 1

    def _omissions(self, nodes: list[Any], narrow: bool) -> tuple[list[Omission], tuple[int, int]]:
        """What is left out, and the innermost statement that the range touches."""
        omissions: list[Omission] = []
        statement = (0, 0)
        stack = [(node, True, True) for node in reversed(nodes)]
        while stack:
            check()
            node, is_statement, of_file = stack.pop()
            kind, touched = node.type, self._touches(node, narrow)
            if is_statement and touched and kind != "comment":
                statement = node.start_byte, node.end_byte
            if (
                is_statement
                and not touched
                and (
                    narrow
                    or (of_file and kind != "future_import_statement")  # of which only counts that one stands there
                )
            ):
                omissions.append((node.start_byte, node.end_byte, b"#" if kind == "comment" else _instead_of(node)))
            elif kind in _SCOPES and not touched:
                omissions += self._body(node)
            elif touched or (kind == "block" or kind.endswith("_clause") if narrow else self._holds_scopes(node)):
                if kind == "except_clause":
                    omissions += self._exceptions(node)
                elif kind in _ELEMENTS and node.end_byte - node.start_byte > _LARGEST:
                    omissions += self._elements(node)
                children = reversed(node.children)
                stack.extend((child, kind == "block", False) for child in children if child.is_named)
        return omissions, statement

    def _holds_scopes(self, node: Any) -> bool:
        following = bisect_left(self._scopes, node.start_byte)
        return following < len(self._scopes) and self._scopes[following] < node.end_byte

    @cached_property
    def _scopes(self) -> list[int]:
        """Where functions and classes begin, and what looks like them."""
        return [found.start() for found in _SCOPE.finditer(self._data)]

    def _body(self, scope: Any) -> list[Omission]:
        """The body of a function or class, but for one that may name variables of the functions around it."""
        body = scope.child_by_field_name("body")
        if body is None or not body.child_count or b"nonlocal" in self._data[body.start_byte : body.end_byte]:
            return []
        return [(body.start_byte, body.end_byte, b"0")]

    def _exceptions(self, clause: Any) -> list[Omission]:
        """All but the first of exceptions without parentheses (Python 2 and 3.14), where the range is elsewhere."""
        commas = [child.start_byte for child in clause.children if child.type == ","]
        colons = [child.start_byte for child in clause.children if child.type == ":"]
        elsewhere = bool(colons) and (self._begin > colons[-1] or self._end < clause.start_byte)
        return [(commas[0], colons[-1], b"")] if commas and elsewhere else []

    def _elements(self, node: Any) -> list[Omission]:
        """Elements that the range does not touch, with their commas."""
        children = [child for child in node.children if child.type != "comment"]
        return [
            (each.start_byte, comma.end_byte, b"")
            for each, comma in pairwise(children)
            if each.is_named and comma.type == "," and not self._touches(each) and not self._touches(comma)
        ]


def _instead_of(statement: Any) -> bytes:
    """A statement that takes the place of one: only texts may stand before future imports, and only one."""
    return b'""' if statement.child_count == 1 and statement.children[0].type == "string" else b"0"


def without(data: bytes, start: int, end: int, omissions: list[Omission]) -> bytes:
    """A part of a document without some of it; where they overlap, the one that begins first counts."""
    parts = []
    at = start
    for begin, stop, instead in sorted(omissions, key=lambda each: (each[0], -each[1])):
        if begin < at or stop > end:
            continue
        parts += [data[at:begin], instead]
        ends = _line_ends(data, begin, stop)
        behind = max(data.rfind(b"\n", begin, stop), data.rfind(b"\r", begin, stop)) + 1
        alone = not data[stop : stop + 1].strip()
        parts += [ends, b"" if alone else b" " * (stop - behind if ends else stop - begin - len(instead))]
        at = stop
    return b"".join([*parts, data[at:end]])


def _line_ends(data: bytes, begin: int, end: int) -> bytes:
    if data.find(b"\r", begin, end) < 0:
        return b"\n" * data.count(b"\n", begin, end)
    return _NO_LINE_END.sub(b"", data[begin:end])


def newer_syntax(nodes: list[Any], data: bytes, version: tuple[int, int] = sys.version_info[:2]) -> list[Omission]:
    """What a Python of this version does not know in some nodes.

    These are statements ``type``, parameters of types and code in f-strings that came with 3.12, and strings
    ``t"..."``, which came with 3.14.
    """
    found: list[Omission] = []
    stack = list(nodes)
    while stack:
        node = stack.pop()
        start, end = node.start_byte, node.end_byte
        if version < (3, 12) and node.type == "type_alias_statement":
            found.append((start, end, b"0"))
        elif version < (3, 12) and node.type == "type_parameter":
            found.append((start, end, b""))
        elif node.type == "string" and version < (3, 14) and _is_newer(node, data, version):
            found += [(start, end - 3, b'"""'), (end - 3, end, b'"""')]
        else:
            stack.extend(child for child in node.children if child.is_named)
    return found


def _is_newer(string: Any, data: bytes, version: tuple[int, int]) -> bool:
    opening = data[string.start_byte : string.children[0].end_byte].lower() if string.children else b""
    if string.end_byte - string.start_byte < 6:
        return False
    if b"t" in opening:
        return True
    quote = opening.lstrip(b"furb")
    parts = [data[each.start_byte : each.end_byte] for each in string.children if each.type == "interpolation"]
    return version < (3, 12) and any(
        b"\\" in part or b"#" in part or quote in part or (len(quote) == 1 and b"\n" in part) for part in parts
    )
