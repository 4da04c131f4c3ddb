"""The seam of sources that copy: what they say of the next token costs no forward pass.

A new one is a class with the methods of ``CopyingSource`` and a line in ``sources.COPYING``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from codespec.draft.acceptance import GuessKind

Guess = tuple[int, GuessKind]
"""A token and what kind of guess it is: the name of the source and a bin of how sure it is."""


class Follower(Protocol):
    """What a source says of the tokens of one proposal, one after the other.

    Attributes:
        repeats_whole: whether the text repeats a whole window, so that long proposals save much in the end.
    """

    repeats_whole: bool

    def guess(self) -> Guess | None:
        """The next token; None where nothing is said of it."""
        ...

    def step(self, token: int) -> None:
        """The proposal goes on with a token, this source's or another's."""
        ...

    def refused(self, kept: Sequence[int]) -> None:
        """The grammar has refused what stood behind these tokens of the proposal, which goes on there."""
        ...

    @property
    def is_sure(self) -> bool:
        """Whether the text repeats another one for so long that it is nearly certain to go on with it."""
        ...


class CopyingSource(Protocol):
    """A source that proposes text from elsewhere, such as earlier text of the file."""

    def follow(self, tokens: Sequence[int]) -> Follower | None:
        """Look for where ``tokens``, the prompt included, stand in what is copied; None where it says nothing."""
        ...
