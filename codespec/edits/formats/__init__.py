"""Prompt layouts of next-edit models: a window of a document goes in, the window as it should be comes out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Protocol, TypeAlias

from codespec.protocols import Vocabulary


class Change(Protocol):
    """An edit made before, in whole lines; ``line`` is 0-based in the new text."""

    @property
    def path(self) -> str: ...
    @property
    def line(self) -> int: ...
    @property
    def before(self) -> str: ...
    @property
    def after(self) -> str: ...
    @property
    def context_before(self) -> str: ...
    @property
    def context_after(self) -> str: ...


@dataclass(frozen=True)
class Snippet:
    """A piece of another document."""

    path: str
    text: str


@dataclass(frozen=True)
class WindowPrompt:
    """What a format makes a prompt of.

    Attributes:
        path: of the document, relative to its workspace.
        window: whole lines of the document, as they stand now.
        cursor: its offset in the window, in characters.
        line: of the document that the window begins with, 0-based.
        before, after: the lines around the window.
        original: the window as it was before the last edit.
        recent: earlier edits, the most recent last.
        snippets: pieces of other documents.
    """

    path: str
    language: str
    window: str
    cursor: int
    line: int = 0
    before: str = ""
    after: str = ""
    original: str = ""
    recent: Sequence[Change] = field(default=())
    snippets: Sequence[Snippet] = field(default=())


@dataclass(frozen=True)
class Marker:
    """The name of a special token, which stands for that token; in a text the same letters are only letters."""

    name: str


PromptParts: TypeAlias = tuple[Marker | str, ...]


class EditFormat(Protocol):
    """The layout of one model.

    Attributes:
        name: of the layout, for people.
        stop: names of tokens, or texts, that end what the model writes.
        reserved: texts that mean something to the model and are no tokens: a window that holds one is left alone.
        around: lines of a window above and below its place.
    """

    @property
    def name(self) -> str: ...
    @property
    def stop(self) -> tuple[str, ...]: ...
    @property
    def reserved(self) -> tuple[str, ...]: ...
    @property
    def around(self) -> tuple[int, int]: ...

    def prompt(self, prompt: WindowPrompt) -> PromptParts:
        """The prompt as markers and texts."""
        ...

    def unchanged(self, prompt: WindowPrompt) -> str:
        """What the model writes after ``prompt(prompt)`` where nothing changes; a draft."""
        ...

    def read(self, text: str, prompt: WindowPrompt) -> str | None:
        """The new window from what the model wrote, with or without the stop; None: no edit."""
        ...


def as_text(parts: PromptParts) -> str:
    """The prompt as one text, for engines that take texts: marker names and contents are alike in it."""
    return "".join(part.name if isinstance(part, Marker) else part for part in parts)


def as_tokens(parts: PromptParts, vocabulary: Vocabulary) -> list[int]:
    """The prompt as tokens; nothing in a document becomes a special token."""
    tokens: list[int] = []
    for special, text in _runs(parts):
        tokens += vocabulary.tokenize(text, special=special)
    return tokens


def _runs(parts: PromptParts) -> Iterator[tuple[bool, str]]:
    """Texts that follow each other are one: they are tokenized as in the model's training."""
    for special, run in groupby(parts, lambda part: isinstance(part, Marker)):
        yield special, as_text(tuple(run))


def cut(text: str, stop: tuple[str, ...]) -> str:
    """``text`` up to the first of the stops."""
    return text[: min((at for each in stop if (at := text.find(each)) >= 0), default=len(text))]


def new_window(text: str, window: str) -> str | None:
    """The window that was written, None where it is empty or the old one; blank lines at its end stay as they were."""
    bare = window.rstrip("\n")
    new = text.rstrip("\n")
    return new + window[len(bare) :] if new.strip() and new != bare else None
