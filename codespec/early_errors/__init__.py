"""What a language's own compiler refuses early, although a parser takes it: names declared twice, ``await`` outside an
async function, ``break`` outside a loop.

Only what a file alone tells is judged, and what is in doubt is taken. The nodes are those of tree-sitter, which is not
imported here.
"""

from __future__ import annotations

from collections.abc import Callable

from codespec.early_errors import javascript, python
from codespec.early_errors.walk import EarlyError, Handler, Node, Walk

__all__ = ["EarlyError", "EarlyErrors", "checks", "early_errors"]

Start = Callable[[Walk, Node, str], None]
"""Begins a walk at the root of a tree, given the suffix of the file's name."""

_CHECKERS: dict[str, tuple[dict[str, Handler], Start]] = {
    "javascript": (javascript.HANDLERS, javascript.check),
    "javascriptreact": (javascript.HANDLERS, javascript.check),
    "typescript": (javascript.HANDLERS, javascript.check_typescript),
    "typescriptreact": (javascript.HANDLERS, javascript.check_typescript),
    "python": (python.HANDLERS, python.check),
}


def checks(language_id: str) -> bool:
    """Whether anything is known of a language."""
    return language_id in _CHECKERS


def early_errors(language_id: str, root: Node, data: bytes, path: str = "") -> set[EarlyError]:
    """Those of a whole document.

    Args:
        root: of its tree.
        path: of the file, where its name tells more of the language (``.mjs``).
    """
    walk = _walk(language_id, root, data, None, path)
    return walk.errors if walk else set()


class EarlyErrors:
    """Those that texts put in at one place of a document bring with them."""

    def __init__(self, language_id: str, root: Node, data: bytes, place: int, path: str = "") -> None:
        """
        Args:
            root: of the tree of the document as it is.
            place: where texts are put in, in bytes.
        """
        self._language_id, self._place, self._path = language_id, place, path
        self._before = None if root.has_error else _walk(language_id, root, data, (place, place), path)

    def added(self, root: Node, data: bytes, size: int, strict: bool = True) -> list[EarlyError]:
        """The errors that the document has with a text and not without it.

        Args:
            root: of the tree of the document with the text.
            size: of the text, in bytes.
            strict: whether those count, too, that were there before, if the text touches them.
        """
        after = _walk(self._language_id, root, data, (self._place, self._place + size), self._path)
        if after is None:
            return []
        if self._before is None:
            # Where the document is broken as it is, nobody knows what surrounded what the text does not touch.
            return [error for error in after.errors if after.touches(error)]
        after.settle(self._before)
        self._before.settle(after)
        known = {place for _, place in self._before.placed()}
        return [error for error, place in after.placed() if place not in known or (strict and after.touches(error))]


def _walk(language_id: str, root: Node, data: bytes, touched: tuple[int, int] | None, path: str) -> Walk | None:
    """None where nothing can be said."""
    if language_id not in _CHECKERS or any(child.is_error or child.is_missing for child in root.children):
        return None
    handlers, check = _CHECKERS[language_id]
    walk = Walk(data, handlers, touched)
    check(walk, root, path.lower())
    return walk
