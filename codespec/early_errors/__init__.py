"""Early errors: text that a parser takes and the language's own compiler refuses before it runs anything, such as names
declared twice, ``await`` outside an async function, ``break`` outside a loop.

Only what a file alone tells is judged, and what is in doubt is taken. The nodes are those of tree-sitter, which is not
imported here. Go and Rust are judged by the user's own ``gofmt`` and ``rustfmt``, where they are installed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from codespec.early_errors.walk import EarlyError, Handler, Node, TooMuchToJudge, Walk
from codespec.languages import Language, load

__all__ = ["EarlyError", "EarlyErrors", "TooMuchToJudge", "early_errors"]

Start = Callable[[Walk, Node, str], None]
"""Begins a walk at the root of a tree, given the file's path in small letters."""


def early_errors(language: Language, root: Node, data: bytes, path: str = "") -> set[EarlyError]:
    """The early errors of a whole document.

    Args:
        root: of the document's tree.
        path: of the file, where its name tells more of the language (``.mjs``).

    Raises:
        TooMuchToJudge: it would take too long.
    """
    if language.compiler:
        compiler = load(language.compiler)
        found: set[EarlyError] = compiler.of_all(root, data, path.lower()) if _is_sound(root, None) else set()
        return found
    walk = _walk(language, root, data, None, path)
    return walk.errors if walk else set()


class EarlyErrors:
    """The early errors that a text brings into a document, inserted at one position; for any number of texts."""

    def __init__(self, language: Language, root: Node, data: bytes, place: int, path: str = "") -> None:
        """
        Args:
            root: of the tree of the document as it is.
            place: byte offset at which texts are inserted.
        """
        self._language, self._place, self._path = language, place, path
        self._root, self._data = root, data
        self._compiler = load(language.compiler)(root, data, place, path.lower()) if language.compiler else None

    def added(self, root: Node, data: bytes, strict: bool = True) -> list[EarlyError]:
        """The errors that the document has with a text and not without it. A document that cannot be judged in
        reasonable time has none, as if its language had no checker; a text that makes it one is an error itself.

        Args:
            root: of the tree of the document with the text.
            data: the document with the text, UTF-8.
            strict: whether errors that were there before count, too, if the text touches them.
        """
        if self._compiler is not None:
            touched = self._place, self._place + len(data) - len(self._data)
            found: list[EarlyError] = self._compiler.added(root, data, strict) if _is_sound(root, touched) else []
            return found
        if not self._can_be_judged:
            return []
        try:
            return self._added(root, data, strict)
        except TooMuchToJudge:
            return [EarlyError("too much to judge", self._place, self._place + len(data) - len(self._data))]

    def _added(self, root: Node, data: bytes, strict: bool) -> list[EarlyError]:
        size = len(data) - len(self._data)
        after = _walk(self._language, root, data, (self._place, self._place + size), self._path)
        if after is None:
            return []
        touched = [error for error in after.errors if after.touches(error)]
        before = self._before
        if before is None or (strict and touched):
            # Where the document is broken as it is, nobody knows what surrounded what the text does not touch.
            return touched
        after.settle(before)
        before.settle(after)
        known = {place for _, place in before.placed()}
        return [error for error, place in after.placed() if place not in known or (strict and after.touches(error))]

    @property
    def _can_be_judged(self) -> bool:
        """Whether the document as it is takes no more time than there is."""
        return self._own[1]

    @property
    def _before(self) -> Walk | None:
        """Over the document as it is; None where that is broken."""
        return None if self._root.has_error else self._own[0]

    @cached_property
    def _own(self) -> tuple[Walk | None, bool]:
        """The walk over the document as it is, and whether there was time for it."""
        try:
            return _walk(self._language, self._root, self._data, (self._place, self._place), self._path), True
        except TooMuchToJudge:
            return None, False


def _walk(language: Language, root: Node, data: bytes, touched: tuple[int, int] | None, path: str) -> Walk | None:
    """None where nothing can be said."""
    if not language.checker or not _is_sound(root, touched):
        return None
    check: Start = load(language.checker)
    handlers: dict[str, Handler] = load(language.checker.partition(":")[0]).HANDLERS
    walk = Walk(root, data, handlers, touched)
    check(walk, root, path.lower())
    walk.run()
    return walk


def _is_sound(root: Node, touched: tuple[int, int] | None) -> bool:
    """Whether no part of a file is an error, or a text lies within a part that is none, or between parts that are
    none."""
    if not any(child.is_error or child.is_missing for child in root.children):
        return True
    if touched is None:
        return False
    begin, end = touched
    if any(child.start_byte < begin and end < child.end_byte and not child.has_error for child in root.children):
        return True
    near = [index for index, child in enumerate(root.children) if child.end_byte >= begin and child.start_byte <= end]
    around = root.children[max(0, near[0] - 1) : near[-1] + 2] if near else []
    return bool(around) and not any(child.is_missing or child.has_error for child in around)
