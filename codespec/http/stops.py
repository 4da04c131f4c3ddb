"""Texts that end a generation."""

from __future__ import annotations

from collections.abc import Sequence


class Stops:
    """Follows a text up to the first of its stop texts; what may be the beginning of one is held back.

    Attributes:
        found: the stop text that ended it; empty before.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = stops
        self._longest = max(map(len, stops), default=0)
        self._held = ""
        self.found = ""

    def add(self, text: str) -> str:
        """What is certain to belong to the text once ``text`` was added."""
        if not self._stops:
            return text
        text = self._held + text
        hits = [(at, stop) for stop in self._stops if (at := text.find(stop)) >= 0]
        if hits:
            at, self.found = min(hits)
            self._held = ""
            return text[:at]
        keep = self._beginning(text)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def end(self) -> str:
        """What was held back, once nothing follows."""
        held, self._held = self._held, ""
        return held

    def _beginning(self, text: str) -> int:
        """Characters at the end of ``text`` that some stop text begins with, the most of them."""
        for length in range(min(self._longest - 1, len(text)), 0, -1):
            if any(stop.startswith(text[-length:]) for stop in self._stops):
                return length
        return 0
