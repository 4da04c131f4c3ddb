"""Names that a text at the cursor uses and nothing defines, in documents whose reader tells of every name.

Elsewhere other files may define them: those of a package in Go, other scripts of a page.
"""

from __future__ import annotations

import re
import string
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codespec.languages import Language, load
from codespec.syntax.parsing import TooMuchToParse
from codespec.syntax.scopes.reading import Name, Reader, TooDeepError
from codespec.syntax.tree import syntax_parser

if TYPE_CHECKING:
    import tree_sitter

LONGEST = 100
"""Bytes of a name around the cursor that are read."""
LARGEST = 100_000
"""Characters of a document that is read for every text."""

_WORD = re.compile(rb"[A-Za-z_$\x80-\xff][\w$\x80-\xff]*")
_PARTS = string.ascii_letters.encode() + string.digits.encode() + b"_$" + bytes(range(0x80, 0x100))


@dataclass(frozen=True)
class Invention:
    """A name that stands for nothing.

    Attributes:
        start: in characters of the text; 0 where it begins before it.
    """

    name: str
    start: int


class Inventions:
    """Finds them in texts at one cursor.

    Args:
        prefix, suffix: the whole document around the texts.
    """

    def __init__(self, language: Language, prefix: str, suffix: str) -> None:
        self._language = language
        self._before, self._after = prefix.encode("utf-8", "replace"), suffix.encode("utf-8", "replace")
        self._reader = _reader(language, self._before + b"\n" + self._after)

    def first(self, text: str) -> Invention | None:
        """The first name in ``text`` that is used, and neither bound where it is seen, nor built in, nor used elsewhere
        in the document as unbound as here. None, too, where the parser finds errors in the text."""
        if self._reader is None or not text.strip():
            return None
        own = text.encode("utf-8", "replace")
        data, start = self._before + own + self._after, len(self._before)
        end = start + len(own)
        # Words begin before the cursor, and end behind the text.
        near = self._before[-LONGEST:]
        begin = start - len(near) + len(near.rstrip(_PARTS))
        words = {each[0] for each in _WORD.finditer(data[begin : end + LONGEST]) if begin + each.start() < end}
        names = self._unbound(data, start, end, words) if words else []
        inside = [each for each in names if start < each.start + len(each.text) and each.start < end]
        outside = {each.text for each in names if each not in inside}
        for each in sorted(inside, key=lambda name: name.start):
            if each.text not in outside:
                at = len(data[start : each.start].decode("utf-8", "replace")) if each.start > start else 0
                return Invention(each.text.decode("utf-8", "replace"), at)
        return None

    def _unbound(self, data: bytes, start: int, end: int, words: set[bytes]) -> list[Name]:
        """The uses of ``words`` that stand for nothing that the document binds; none where that is in doubt."""
        parser = syntax_parser(self._language)
        assert parser is not None
        assert self._reader is not None
        try:
            root = parser.parse(data).root_node
            if _broken(root, start, end):
                return []
            reader = self._reader(root, data, words)
        except (TooMuchToParse, TooDeepError):
            return []
        uses = [each for each in reader.names if each.role.kind == "use" and each.text in words]
        return [each for each in uses if reader.variable(each) == (None, each.text) and not self._known(reader, each)]

    def _known(self, reader: Reader, name: Name) -> bool:
        return reader.known(name.text) or name.text in reader.ambient() or name.text in reader.keywords


def _reader(language: Language, data: bytes) -> type[Reader] | None:
    """What reads a document in which all names can be told; None where they cannot."""
    if len(data) > LARGEST or not language.scopes or syntax_parser(language) is None:
        return None
    found: type[Reader] = load(language.scopes)
    return found if found.tells_all(data) else None


def _broken(root: tree_sitter.Node, start: int, end: int) -> bool:
    """Whether the parser finds an error that touches these bytes."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if not node.has_error or node.end_byte < start or node.start_byte > end:
            continue
        if node.is_error or node.is_missing:
            return True
        waiting += node.children
    return False
