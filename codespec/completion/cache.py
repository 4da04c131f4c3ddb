"""A cache of completions: they answer again while the user types along with them, and after a step back."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from codespec.completion.ending.brackets import CLOSERS
from codespec.line_ends import line_feeds
from codespec.recent import Recent

if TYPE_CHECKING:
    from codespec.completion.request import Completion, Request

DOCUMENTS = 32
"""Documents whose completions are kept; of more, those least recently used are dropped."""

KEPT = 64
"""Completions that are kept for each document; of more, the oldest are dropped."""

_OPENERS = "\"'`" + "".join(CLOSERS.values())
_CLOSED = "\"'`" + "".join(CLOSERS)
_MOST_CLOSED = 8  # closing characters that an editor may have inserted by itself


_WINDOW = 64  # characters that are compared before anything is hashed
_LONGEST_LINE = 256


@dataclass(frozen=True)
class _Text:
    """A text to compare with, not to keep: documents are large, and completions many.

    Attributes:
        edge: its end at the cursor.
    """

    length: int
    edge: str
    hash: int


@dataclass(frozen=True)
class _Entry:
    """The completions that answered one request, and the texts around its cursor.

    Attributes:
        above: of the prefix, the lines above the cursor's.
        line: the cursor's up to the cursor; None where it is long.
    """

    prefix: _Text
    suffix: _Text
    above: _Text
    line: str | None
    language: str
    count: int
    completions: tuple[Completion, ...]


class CompletionCache:
    """The latest completions of each document. Not for two threads at a time.

    A completion answers at a later position if the text between the two positions is the completion's own beginning
    and nothing else has changed: while the user types along, accepts it word by word, or goes back.
    """

    def __init__(self, documents: int = DOCUMENTS, kept: int = KEPT) -> None:
        self._documents: Recent[str, deque[_Entry]] = Recent(documents)
        self._kept = kept

    def store(self, document: str, request: Request, completions: Sequence[Completion]) -> None:
        """Keep the answer to ``request``; no text is an answer too, unless it ran out of time."""
        if not any(each.text for each in completions) and any(each.finish_reason == "time" for each in completions):
            return
        kept = self._documents.use(document)
        if kept is None:
            kept = self._documents[document] = deque(maxlen=self._kept)
        prefix, suffix = request.text[: request.offset], request.text[request.offset :]
        start = _line_start(prefix)
        line = prefix[start:]
        kept.append(
            _Entry(
                _before(prefix),
                _Text(len(suffix), suffix[:_WINDOW], hash(suffix)),
                _before(prefix[:start]),
                line if len(line) <= _LONGEST_LINE else None,
                request.language,
                request.count,
                tuple(
                    replace(each, rounds=(), report={}, passes=()) for each in completions
                ),  # those are large, and never asked for
            )
        )

    def find(self, document: str, request: Request) -> list[Completion] | None:
        """The rest of completions given before, the latest first; None at a new position, or where fewer completions
        were asked for."""
        kept = self._documents.use(document)
        if kept is None:
            return None
        prefix, suffix = request.text[: request.offset], request.text[request.offset :]
        start = _line_start(prefix)
        for each in reversed(kept):
            if each.language != request.language or each.count < request.count:
                continue
            found = _left(each, prefix, suffix)
            if found is None:
                found = _left_of_indented(each, prefix, start, suffix)
            if found is not None:
                return found
        return None

    def forget(self, document: str | None = None) -> None:
        """Forget the completions of a document; None: of all."""
        if document is None:
            self._documents.clear()
        else:
            self._documents.pop(document, None)


def _line_start(prefix: str) -> int:
    return max(prefix.rfind("\n"), prefix.rfind("\r")) + 1


def _before(text: str) -> _Text:
    return _Text(len(text), text[-_WINDOW:], hash(text))


def _left_of_indented(kept: _Entry, prefix: str, start: int, suffix: str) -> list[Completion] | None:
    """The same where the editor has indented the line anew, as many do when a bracket that closes is typed; what goes
    on in another line would be indented as before, and is not given."""
    if kept.line is None or start != kept.above.length or len(suffix) != kept.suffix.length:
        return None
    line = prefix[start:]
    old, new = kept.line.lstrip(" \t"), line.lstrip(" \t")
    if not new.startswith(old) or new == old or line.startswith(kept.line):
        return None
    if (_before(prefix[:start]), hash(suffix)) != (kept.above, kept.suffix.hash):
        return None
    found = _untyped(kept.completions, new[len(old) :], "") or []
    return [each for each in found if "\n" not in line_feeds(each.text)] or None


def _left(kept: _Entry, prefix: str, suffix: str) -> list[Completion] | None:
    """The rest of each cached completion that starts with the text typed since."""
    before, closed = kept.prefix.length, len(suffix) - kept.suffix.length
    if before > len(prefix) or not 0 <= closed <= _MOST_CLOSED:
        return None
    if prefix[max(0, before - _WINDOW) : before] != kept.prefix.edge:
        return None
    typed, written = line_feeds(prefix[before:]), suffix[:closed]
    if suffix[closed : closed + _WINDOW] != kept.suffix.edge or not _is_closed(typed, written):
        return None
    found = _untyped(kept.completions, typed, written)
    if found is None or hash(prefix[:before]) != kept.prefix.hash or hash(suffix[closed:]) != kept.suffix.hash:
        return None
    return found


def _untyped(completions: Sequence[Completion], typed: str, written: str) -> list[Completion] | None:
    if not typed:
        return list(completions)
    found = []
    for completion in completions:
        text = line_feeds(completion.text)
        if not text.startswith(typed):
            continue
        left = text[len(typed) :]
        if written:
            # The editor has written the end of a pair: what is to stand between comes before it.
            first_line, newline, _ = left.partition("\n")
            if newline or not first_line.endswith(written):
                continue
            left = first_line[: -len(written)]
        if left:
            found.append(replace(completion, text=left, rounds=(), backed_up=0))
    return found or None


def _is_closed(typed: str, written: str) -> bool:
    """Whether an editor may have inserted ``written`` after the cursor when ``typed`` was typed."""
    return all(c in _CLOSED for c in written) and sum(typed.count(c) for c in _OPENERS) >= len(written)
