"""A vocabulary without a model, for engines that take and give texts: bytes, and markers for the parts of a prompt.

Prompts are built with it as with any model's tokens; ``split`` turns such a prompt back into its parts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from codespec.models.fim import Family, FimFormat, Order, Snippets
from codespec.protocols import Snippet

END, PREFIX, SUFFIX, MIDDLE, FILE, REPOSITORY = range(256, 262)
"""The control tokens after the 256 bytes: of the text's end, and before the parts of a prompt."""
CONTROLS = REPOSITORY - END
"""Control tokens other than the end token."""
BYTES_PER_TOKEN = 3
"""Bytes of code that a token of an engine stands for at least, as a rule: it has room for so many bytes a token."""

_FILE_NAME = re.compile(r"([\w.-]*\w\.\w+)\n")


class ByteVocabulary:
    """Token ``b`` is the byte ``b``; see ``TextVocabulary``."""

    size = REPOSITORY + 1
    end_tokens = frozenset({END})
    beginning = None

    def tokenize(self, text: str, special: bool = False) -> list[int]:
        """The bytes of ``text``; control tokens have no names."""
        return list(text.encode("utf-8", "surrogatepass"))

    def token_bytes(self, token: int) -> bytes:
        """The byte; empty for control tokens.

        Raises:
            IndexError: no such token.
        """
        if not 0 <= token < self.size:
            raise IndexError(f"token {token} is not in a vocabulary of {self.size}")
        return bytes((token,)) if token < END else b""


def text_layout(snippets: Snippets, order: Order | None = None) -> FimFormat:
    """The layout of prompts that ``split`` takes apart.

    Args:
        snippets: how other files are shown; ``files`` keeps them apart from the text.
        order: the engine arranges its prompt itself, but in ``psm`` layouts less of the suffix is sent.
    """
    family = Family("text", None, ("spm", "psm"), path_alone=True, snippets=snippets)
    apart = snippets == "files"
    return FimFormat(
        prefix=PREFIX,
        suffix=SUFFIX,
        middle=MIDDLE,
        order=order or "spm",
        file_separator=FILE if apart else None,
        repository=REPOSITORY if apart else None,
        family=family,
    )


@dataclass(frozen=True)
class Parts:
    """A prompt for an engine that takes texts.

    Attributes:
        fills: whether the text goes between prefix and suffix; False: it only continues the prefix.
        begun: the beginning of the text that is to come, which the engine goes on with.
    """

    prefix: str
    suffix: str = ""
    path: str = ""
    repository: str = ""
    files: tuple[Snippet, ...] = ()
    fills: bool = False
    begun: str = ""

    @property
    def before(self) -> str:
        """All that the engine continues."""
        return self.prefix + self.begun

    def with_suffix(self, most: int) -> Parts:
        """At most so many bytes of the suffix, in whole lines where there are any."""
        if len(self.suffix.encode()) <= most:
            return self
        kept = self.suffix.encode()[:most].decode("utf-8", "ignore")
        return replace(self, suffix=kept[: kept.rfind("\n") + 1] or kept)

    def shorter(self) -> Parts:
        """The parts nearer to the cursor, about half of them, without other files."""
        start = len(self.prefix) // 2 if len(self.prefix) > 1 else 0
        start = self.prefix.find("\n", start) + 1 or start
        half = self.with_suffix(len(self.suffix.encode()) // 2)
        return replace(half, prefix=self.prefix[start:], files=())


def split(prompt: Sequence[int]) -> Parts:
    """The parts of a prompt of bytes and control tokens."""
    found: list[tuple[int, str]] = []
    start = 0
    for at, token in enumerate((*prompt, END)):
        if token >= END:
            found.append((prompt[start - 1] if start else END, _text(prompt[start:at])))
            start = at + 1
    by_marker = dict(found)
    texts = [text for marker, text in found if marker == FILE]
    repository = by_marker.get(REPOSITORY, "").strip("\n")
    if PREFIX not in by_marker:  # no more than a file name and the beginning of a text
        text = texts.pop() if texts else by_marker[END]
        name = _FILE_NAME.match(text)
        path, text = (name[1], text[name.end() :]) if name is not None else ("", text)
        return Parts(text, path=path, repository=repository, files=_files(texts))
    path = texts.pop().strip("\n") if texts else ""
    before, after = by_marker[PREFIX], by_marker.get(MIDDLE, "")
    return Parts(before + after, by_marker.get(SUFFIX, ""), path, repository, _files(texts), fills=True)


def _files(texts: Sequence[str]) -> tuple[Snippet, ...]:
    return tuple(Snippet(path, text) for path, _, text in (each.partition("\n") for each in texts))


def _text(tokens: Sequence[int]) -> str:
    # A prompt that was cut to its budget may begin or end in the middle of a character.
    return bytes(tokens).decode("utf-8", "ignore")
