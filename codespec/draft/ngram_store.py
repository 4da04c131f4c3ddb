"""The n-grams learnt online from open files and accepted completions, apart for each workspace and language."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from pathlib import Path

from codespec.draft.ngram import BREAK, GRAM, NgramIndex
from codespec.draft.sequence import common_prefix
from codespec.draft.storage.token_log import TokenLog, clear, delete_old_logs, note, noted, workspace_file
from codespec.files import StrPath
from codespec.recent import Recent

CAP = 262_144
"""Tokens that one index holds at most; beyond them the oldest are dropped until a quarter is free again."""

CHAINS = 1 << 17

CONTEXT = 16
"""Tokens on both sides of new text that are added again with it, so that it is found from the text before it."""

KNOWN = 16
"""A stretch of tokens of this length that the index holds already is not added again."""

MOST_DOCUMENTS = 32
"""Documents whose last version is kept, to see what has changed."""

MOST_OPEN = 6
"""Workspaces and languages that are kept in memory."""


class WorkspaceNgrams:
    """The n-grams of one workspace in one language and vocabulary.

    For one thread. The log is read when ``index`` is first asked for, 100,000 tokens in about 50 ms.

    Args:
        log: the file of the tokens; None: in memory only.
        cap: see ``CAP``.
    """

    def __init__(self, log: TokenLog | None = None, cap: int = CAP) -> None:
        self._log = log
        self._cap = cap
        self._index: NgramIndex | None = None
        self._documents: Recent[str, array[int]] = Recent(MOST_DOCUMENTS)

    @property
    def index(self) -> NgramIndex:
        """The index of all tokens learnt; grows, and positions in it change as the oldest are dropped."""
        if self._index is None:
            self._index = NgramIndex(chains=CHAINS)
            for segment in self._log.load() if self._log is not None else ():
                self._add(segment)
        return self._index

    def document(self, key: str, tokens: Sequence[int], persist: bool = True) -> int:
        """Learn the text of a document: only what is new since the last time, and nowhere else in the index.

        Args:
            key: tells the document from others.
            tokens: of all of it; ``BREAK`` where something is left out. The first quarter of the cap counts.
            persist: False keeps it in memory.

        Returns:
            How many tokens were taught.
        """
        new = array("i", tokens[: self._cap // 4])
        old = self._documents.get(key, array("i"))
        self._documents[key] = new
        same = common_prefix(old, new)
        if same == len(old) == len(new):
            return 0
        same_after = common_prefix(old[same:][::-1], new[same:][::-1])
        start, end = max(0, same - CONTEXT), min(len(new), len(new) - same_after + CONTEXT)
        return sum(self._teach(new[a:b], persist) for a, b in unknown(self.index, new, start, end))

    def accepted(self, context: Sequence[int], tokens: Sequence[int], persist: bool = True) -> int:
        """Learn a completion that the user took, known or not, after the end of the text before it.

        Returns:
            How many tokens were taught.
        """
        return self._teach(array("i", [*context[-CONTEXT:], *tokens]), persist) if tokens else 0

    def flush(self) -> None:
        """Write what was taught to the disk."""
        if self._log is not None:
            self._log.flush()

    def _teach(self, tokens: array[int], persist: bool) -> int:
        self.index  # what was learnt before comes first  # noqa: B018
        self._add(tokens)
        if persist and self._log is not None:
            self._log.append(tokens)
        return len(tokens)

    def _add(self, tokens: Sequence[int]) -> None:
        index = self.index
        if index.tokens:
            index.extend((BREAK,))
        index.extend(tokens)
        if len(index.tokens) > self._cap:
            index.forget_oldest(self._cap * 3 // 4)


def unknown(index: NgramIndex, tokens: Sequence[int], start: int, end: int) -> list[tuple[int, int]]:
    """The parts of ``tokens[start:end]`` that an index does not hold, with ``CONTEXT`` tokens on both sides."""
    wanted = min(KNOWN, end - start)
    parts: list[tuple[int, int]] = []
    known = start  # up to here everything is held, or in one of the parts
    at = start + GRAM
    while at < end:
        held = index.holds(tokens, at, end)
        if held + GRAM < wanted:
            at += 1
            continue
        if at - GRAM >= known and at - GRAM > start:  # where two held stretches meet, their meeting is new
            _join(parts, known, at - GRAM, len(tokens))
        known = at = at + held
    if known < end:
        _join(parts, known, end, len(tokens))
    return parts


def _join(parts: list[tuple[int, int]], begin: int, end: int, length: int) -> None:
    """Add a part, widened; what overlaps becomes one."""
    begin, end = max(0, begin - CONTEXT), min(length, end + CONTEXT)
    if parts and parts[-1][1] >= begin:
        begin = parts.pop()[0]
    parts.append((begin, end))


class NgramStore:
    """The n-grams of every workspace and language of a session; those least recently used are closed.

    Args:
        vocabulary: ``registry.vocabulary_hash`` of the target.
        base: instead of the user's data folder.
    """

    def __init__(self, vocabulary: str, base: Path | None = None) -> None:
        self._vocabulary = vocabulary
        self._base = base
        if base is None:
            delete_old_logs()
        self._open: Recent[tuple[Path | None, str], WorkspaceNgrams] = Recent(
            MOST_OPEN, dropped=lambda _, learnt: learnt.flush()
        )

    def __len__(self) -> int:
        return len(self._open)

    def of(self, folder: StrPath | None, language: str) -> WorkspaceNgrams:
        """The n-grams of a workspace's folder and a language; None: outside any workspace, never kept on the disk."""
        folder = Path(folder) if folder is not None else None
        key = (folder, language)
        learnt = self._open.use(key)
        if learnt is None:
            log = None
            if folder is not None:
                log = TokenLog(workspace_file(folder, self._base), f"{self._vocabulary} {language!a}", CAP)
            learnt = self._open[key] = WorkspaceNgrams(log)
        return learnt

    def note(self, folder: Path, document: Path) -> None:
        """As ``token_log.note``."""
        note(folder, document, self._base)

    def noted(self, folder: Path, document: Path) -> bool:
        """As ``token_log.noted``."""
        return noted(folder, document, self._base)

    def forget(self, folder: Path | None) -> None:
        """Forget all that a workspace taught, here and on the disk.

        Raises:
            CodespecError: a file cannot be deleted.
        """
        for key in [key for key in self._open if key[0] == folder]:
            del self._open[key]
        if folder is not None:
            clear(folder, self._base)

    def close(self) -> None:
        """Write what is not on the disk yet; a second call does nothing."""
        for learnt in self._open.values():
            learnt.flush()
        self._open.clear()
