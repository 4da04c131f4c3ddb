"""Texts that end a generation."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache


class Stops:
    """Follows a text up to the stop text that is complete first; of several that end at one character, the longest one
    counts. What may be the beginning of a stop text is held back.

    The time that it takes grows with the text and the number of stop texts, not with their lengths.

    Attributes:
        found: the stop text that ended it; empty before.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = [(stop, _borders(stop)) for stop in dict.fromkeys(stops)]
        self._lengths = [0] * len(self._stops)  # how much of each stop text the text ends in
        self._held = ""
        self.found = ""

    def add(self, text: str) -> str:
        """What is certain to belong to the text once ``text`` was added."""
        if not self._stops:
            return text
        for at, character in enumerate(text):
            self.found = self._ended_by(character)
            if self.found:
                whole, self._held = self._held + text[: at + 1], ""
                return whole[: len(whole) - len(self.found)]
        whole = self._held + text
        certain = len(whole) - max(self._lengths)
        self._held = whole[certain:]
        return whole[:certain]

    def end(self) -> str:
        """What was held back, once nothing follows."""
        held, self._held = self._held, ""
        return held

    def _ended_by(self, character: str) -> str:
        """The longest stop text that is complete with the next character; empty for none (Knuth, Morris and Pratt)."""
        found = ""
        for index, (stop, borders) in enumerate(self._stops):
            length = self._lengths[index]
            while length and stop[length] != character:
                length = borders[length - 1]
            length += stop[length] == character
            self._lengths[index] = length
            if length == len(stop) > len(found):
                found = stop
        return found


@lru_cache(maxsize=256)
def _borders(stop: str) -> tuple[int, ...]:
    """For every beginning of a text, the length of the longest shorter one that it ends in."""
    borders, length = [0], 0
    for character in stop[1:]:
        while length and stop[length] != character:
            length = borders[length - 1]
        length += stop[length] == character
        borders.append(length)
    return tuple(borders)
