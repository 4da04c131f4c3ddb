"""Traces of the completions that were shown, for clients that draw them."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from codespec.line_ends import line_feeds

if TYPE_CHECKING:
    from codespec.completion.request import Completion

KEPT = 32
"""Completions whose traces are kept, most of them prefetched and perhaps never shown."""


@dataclass(frozen=True)
class _Traced:
    document: str
    language: str
    completion: Completion


class Traces:
    """The traces of the latest completions. The rest of a completion, from the cache, has the trace of the whole."""

    def __init__(self) -> None:
        self._kept: deque[_Traced] = deque(maxlen=KEPT)
        self._latest: _Traced | None = None
        self._shown, self._nothing = "", ""

    def keep(self, document: str, language: str, completions: Sequence[Completion]) -> None:
        """Note what the models have generated."""
        self._kept.extend(
            _Traced(document, language, each) for each in reversed(completions) if each.passes or not each.text
        )

    def show(self, document: str, text: str, nothing: str = "") -> None:
        r"""Note that a text, with ``\n`` as its line ends, was answered.

        Args:
            nothing: why it is empty.
        """
        found = (
            each
            for each in reversed(self._kept)
            if each.document == document and line_feeds(each.completion.text).endswith(text)
        )
        self._latest, self._shown, self._nothing = next(found, self._latest), text, nothing

    def forget(self, document: str) -> None:
        """Drop what is known of a document: it has turned out to hold secrets."""
        self._kept = deque((each for each in self._kept if each.document != document), KEPT)
        if self._latest is not None and self._latest.document == document:
            self._latest, self._shown, self._nothing = None, "", ""

    def latest(self) -> dict[str, Any] | None:
        """The trace of the latest answer, as plain data; None where there is none yet.

        ``text`` is the whole completion, ``shown`` the rest of it that was answered; ``passes`` are before any trimming
        and begin ``backed_up`` characters before the cursor; the other fields are those of ``--json``.
        ``nothing`` says why ``shown`` is empty.
        """
        if self._latest is None:
            return None
        completion = self._latest.completion
        return {
            "document": self._latest.document,
            "language": self._latest.language,
            "shown": self._shown,
            "nothing": self._nothing,
            "backed_up": completion.backed_up,
            **completion.as_json(),
            "passes": [asdict(each) for each in completion.passes],
        }
