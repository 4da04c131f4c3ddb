"""tree-sitter's parsers, each within a bound: one of them may take minutes for a few kilobytes, and two crash."""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable
from importlib import import_module
from time import thread_time
from typing import TYPE_CHECKING

from codespec.languages import LANGUAGES, load
from codespec.patience import check, over

if TYPE_CHECKING:
    import tree_sitter

SECONDS, SECONDS_A_BYTE = 1.0, 1.5e-6
"""Of the processor that a parse may take: ten times what files take. (`/*` 2,500 times in C: 30 s.)"""
_CHUNK = 1 << 14


class TooMuchToParse(Exception):
    """A parse took too long, or would end the process."""


class _Pieces:
    """The pieces of a document that a parser asks for.

    py-tree-sitter (0.25.0 to 0.26.1) keeps a reference too many to each, so that every text that was ever parsed would
    stay in memory.
    """

    def __init__(self, data: bytes) -> None:
        self._data, self._given = memoryview(data), list[bytes]()

    def read(self, byte: int, _: object) -> bytes:
        """The piece that begins at ``byte``; of its own, not the document itself."""
        piece = bytes(self._data[byte : byte + _CHUNK])
        if len(piece) > 1:  # CPython has one object for each shorter one
            self._given.append(piece)
        return piece

    def references(self) -> list[int]:
        """How many references to each piece there are, those from here included."""
        return [sys.getrefcount(piece) for piece in self._given]

    def release(self, own: int | None) -> None:
        """Forget the pieces, after a parse.

        Args:
            own: references from here; those beyond them, which the parser has kept, are given back. None: they are not
                known.
        """
        for piece, count in zip(self._given, self.references(), strict=True):
            for _ in range(count - own if own is not None else 0):
                ctypes.pythonapi.Py_DecRef(ctypes.py_object(piece))
        self._given.clear()  # a tree keeps its `read`


@functools.cache
def _own_references(parser: tree_sitter.Parser) -> int | None:
    """References to a piece from ``_Pieces``; None unless the parser leaves some that not even a tree has: they stay
    when it is gone."""
    if sys.implementation.name != "cpython" or not getattr(sys, "_is_gil_enabled", lambda: True)():
        return None
    pieces = _Pieces(b"a b\n" * 8)
    pieces.read(0, None)
    [own] = pieces.references()
    tree = parser.parse(pieces.read)
    before = pieces.references()
    del tree
    return own if max(before) > own and before == pieces.references() else None


class Parser:
    """The parser of one language. One thread at a time.

    Args:
        found: tree-sitter's.
        refuses: says of which texts it is not asked.
    """

    def __init__(self, found: tree_sitter.Parser, refuses: Callable[[bytes], bool] | None = None) -> None:
        self._parser, self._refuses = found, refuses

    def parse(self, data: bytes, old: tree_sitter.Tree | None = None) -> tree_sitter.Tree:
        """The tree of a document.

        Args:
            old: a tree of which the parser takes over what has not changed.

        Raises:
            TooMuchToParse: the document takes too long, or the parser cannot hold it.
            Aborted: there is no time for it (``codespec.patience``).
        """
        if self._refuses is not None and self._refuses(data):
            raise TooMuchToParse
        end = thread_time() + SECONDS + SECONDS_A_BYTE * len(data)
        pieces = _Pieces(data)

        def too_long(byte: int, has_error: bool) -> bool:
            return thread_time() > end or over()

        try:
            if old is None:
                return self._parser.parse(pieces.read, progress_callback=too_long)
            return self._parser.parse(pieces.read, old, progress_callback=too_long)
        except ValueError:
            self._parser.reset()
            check()
            raise TooMuchToParse from None
        finally:
            pieces.release(_own_references(self._parser))


def new_parser(name: str) -> Parser | None:
    """A parser, for one thread, of the language that ``module`` or ``module:function`` gives; None where that is not
    installed or does not load."""
    module, _, function = name.partition(":")
    try:
        import tree_sitter

        language = tree_sitter.Language(getattr(import_module(module), function or "language")())
        overflows = next((each.overflows for each in LANGUAGES.values() if each.parser == name), "")
        return Parser(tree_sitter.Parser(language), load(overflows) if overflows else None)
    except (ImportError, AttributeError, ValueError):
        # A ValueError is a wheel built for another version of tree-sitter.
        return None
