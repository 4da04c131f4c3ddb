"""The target's text in the tokens of a draft's own vocabulary, kept in step as it grows and shrinks at its end."""

from __future__ import annotations

from collections.abc import Iterable

from codespec.draft.text import TAIL, exact_tokens, tokenize_after, whole_characters
from codespec.protocols import Vocabulary

BEHIND = 4
"""Tokens at the end that are tokenized anew when text is added, since they may merge with it."""


class RetokenizedText:
    """The text of the target's tokens in tokens of a draft's own.

    What lies further back than ``BEHIND`` tokens never changes, so that a KV cache of it stays good; the price is
    that the tokens depend a little on where the text grew.

    Attributes:
        tokens: the draft's, of all whole characters; read only.
    """

    def __init__(self, own: Vocabulary, target: Vocabulary) -> None:
        self._own = own
        self._target = target
        self.tokens: list[int] = []
        self._data = bytearray()
        # In bytes of `_data`, where each token ends.
        self._own_ends: list[int] = []
        self._target_ends: list[int] = []

    @property
    def rest(self) -> bytes:
        """The bytes that ``tokens`` lacks: the beginning of a character, up to 3; more where the text has no tokens."""
        return bytes(self._data[self._end(len(self.tokens)) :])

    def replace(self, kept: int, tokens: Iterable[int]) -> None:
        """Follow a change of the text: its first ``kept`` target tokens stay, the target's ``tokens`` follow them."""
        del self._target_ends[kept:]
        del self._data[self._target_ends[-1] if kept else 0 :]
        while self._own_ends and self._own_ends[-1] > len(self._data):
            self._own_ends.pop()
            self.tokens.pop()
        for token in tokens:
            self._data += self._target.token_bytes(token)
            self._target_ends.append(len(self._data))
        if self._end(len(self.tokens)) < len(self._data):
            self._cut_end_anew()

    def _cut_end_anew(self) -> None:
        kept = max(0, len(self.tokens) - BEHIND)
        while kept and self._data[self._end(kept)] & 0xC0 == 0x80:
            kept -= 1  # not inside a character
        at = self._end(kept)
        text = whole_characters(bytes(self._data[at:]))
        fresh = tokenize_after(self._own, self.tokens[max(0, kept - TAIL) : kept], text.encode())
        if not fresh:
            return
        self.tokens[kept:] = fresh
        del self._own_ends[kept:]
        for token in fresh:
            at += len(self._own.token_bytes(token))
            self._own_ends.append(at)

    def _end(self, count: int) -> int:
        return self._own_ends[count - 1] if count else 0


SAMPLE = """import json
from pathlib import Path


class Reader:
    \"\"\"Reads the entries of a file.\"\"\"

    def __init__(self, path: Path, limit: int = 100) -> None:
        self._path = path
        self.names = {"first": 1, "second_name": [2, 3]}

    def entries(self) -> list[str]:
        with self._path.open("rb") as file:
            lines = [line.strip() for line in file if line]
        if not lines or len(lines) > self.limit:
            raise ValueError(f"{self._path}: {len(lines)} lines")
        return sorted(lines, key=lambda line: -len(line))


export async function load(url, options = {}) {
    const response = await fetch(`${url}/items?page=${options.page}`);
    for (const item of await response.json()) {
        if (item.id !== null && !seen.has(item.id)) { queue.push(item); }
    }
}

func (s *Server) Close() error {
\tif err := s.conn.Close(); err != nil {
\t\treturn fmt.Errorf("close: %w", err)
\t}
\treturn nil
}
"""


def cut_alike(own: Vocabulary, target: Vocabulary) -> float:
    """The share of token ends of ``own`` in a sample of code that are token ends of ``target``, however it goes on.

    1 for vocabularies that differ in their ids only; 0.7 to 1 between those of code models.
    """
    alike = count = 0
    for part in SAMPLE.split("\n\n"):  # each prefix of it is tokenized: short ones take less
        whole, data, end = exact_tokens(target, part), part.encode(), 0
        for token in exact_tokens(own, part)[:-1]:
            end += len(own.token_bytes(token))
            cut = exact_tokens(target, whole_characters(data[:end]))
            alike += bool(cut) and cut == whole[: len(cut)]
            count += 1
    return alike / count if count else 0.0
