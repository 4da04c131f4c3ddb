"""How the lexemes of a grammar overlap and extend each other."""

from __future__ import annotations

from collections.abc import Iterable

from codespec.grammar.lower.automaton import Alphabet, Dfa, overlap

MAX_WORK = 1_000_000
"""Steps of a proof, each well under a microsecond, beyond which it is tried again with smaller lexemes."""


class TooMuchWork(Exception):
    """The proof is too long for lexemes as large as these."""


class WorkBudget:
    """Counts the steps of a proof."""

    def __init__(self) -> None:
        self._left = MAX_WORK

    def spend(self, steps: int) -> None:
        """Raises: TooMuchWork: there were too many."""
        self._left -= steps
        if self._left < 0:
            raise TooMuchWork


class Lexicon:
    """Lexemes by text, and how they overlap. The empty text stands for token elements, which overlap everything."""

    def __init__(self, alphabet: Alphabet, work: WorkBudget) -> None:
        self._alphabet, self._work = alphabet, work
        self.dfas: dict[str, Dfa] = {}
        self._both: dict[str, set[str]] = {}
        self._extends: dict[str, dict[str, int]] = {}

    def extensions(self, text: str, present: Iterable[str]) -> dict[str, int]:
        """The lexemes among ``present`` that may go on after a text of this one, each with the first bytes of how."""
        if not text:
            return {}
        self._add(text)
        for other in present:
            if other:
                self._add(other)
        return {other: lead for other, lead in self._extends[text].items() if other in present}

    def matches_with(self, text: str) -> set[str] | None:
        """The lexemes that share a text with this one; None: all of them."""
        return self._both[text] | {""} if text else None

    def _add(self, text: str) -> None:
        if text in self._both:
            return
        self._both[text], self._extends[text] = set(), {}
        dfa = self.dfas[text]
        for other in self._both:
            beside = self.dfas[other]
            if dfa.first & beside.first:
                self._relate(text, dfa, other, beside)
                if other != text:
                    self._relate(other, beside, text, dfa)

    def _relate(self, a: str, left: Dfa, b: str, right: Dfa) -> None:
        both, extends, steps = overlap(left, right)
        self._work.spend(5 * steps)
        if both:
            self._both[a].add(b)
        if extends:
            self._extends[a][b] = self._alphabet.lead(extends)
