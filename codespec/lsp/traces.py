"""How the completions that were shown came about, for a client that draws it."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from codespec.completion.request import plain

if TYPE_CHECKING:
    from codespec.completion.request import Completion

KEPT = 32
"""Completions whose traces are kept, most of them made ahead and perhaps never shown."""


@dataclass(frozen=True)
class _Kept:
    document: str
    language: str
    completion: Completion


class Traces:
    """The traces of the latest completions. Completions from memory have none of their own: that of the one that they
    are the rest of stands for them."""

    def __init__(self) -> None:
        self._kept: deque[_Kept] = deque(maxlen=KEPT)
        self._latest: _Kept | None = None
        self._shown = ""

    def keep(self, document: str, language: str, completions: Sequence[Completion]) -> None:
        """Note what the models have generated."""
        self._kept.extend(_Kept(document, language, each) for each in reversed(completions) if each.passes)

    def show(self, document: str, text: str) -> None:
        r"""Note that a text, with ``\n`` as its line ends, was answered."""
        found = (
            each
            for each in reversed(self._kept)
            if each.document == document and plain(each.completion.text).endswith(text)
        )
        self._latest, self._shown = next(found, self._latest), text

    def forget(self, document: str) -> None:
        """Drop what is known of a document: it has turned out to hold secrets."""
        self._kept = deque((each for each in self._kept if each.document != document), KEPT)
        if self._latest is not None and self._latest.document == document:
            self._latest, self._shown = None, ""

    def latest(self) -> dict[str, Any] | None:
        """The trace of what was answered last, in plain data; None where there is none yet.

        ``text`` is the whole completion, ``shown`` what was left of it then; ``passes`` are before any trimming and
        begin ``backed_up`` characters before the cursor; all else is as with ``--json``.
        """
        if self._latest is None:
            return None
        completion = self._latest.completion
        return {
            "document": self._latest.document,
            "language": self._latest.language,
            "shown": self._shown,
            "backed_up": completion.backed_up,
            **completion.as_json(),
            "passes": [asdict(each) for each in completion.passes],
        }
