"""Equivalence classes of tokens under a grammar: in every state all tokens of a class are allowed, or none.

A token read from a state of a lexeme's automaton either stays inside the lexeme, or the lexeme ends somewhere in the
token and the rest is read from the start of a lexeme that may follow. Two tokens are equivalent if from every state of
every lexeme they can be read as the same sequences of lexemes. The proof is in docs/grammar.md, "Token classes".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from codespec.grammar.lower.automaton import bits
from codespec.grammar.lower.fuse import Fused
from codespec.grammar.lower.positions import Positions

Ints = npt.NDArray[np.int32]

MAX_WORK = 500_000_000
"""Steps beyond which ``TooMuchToTell`` is raised: 5 s, 130 MB. ``sql`` takes 280 million, all others below 150."""
_STEPS_STORED = 30  # for each number that is stored
NEVER, ITSELF = 0, -1
"""The class of tokens that are allowed nowhere; and the mark of tokens without a class, which begin or end within a
character."""


class TooMuchToTell(Exception):
    """It would take too long to find out which tokens a grammar tells apart."""


def classes(fused: Fused, root: str, texts: Sequence[bytes]) -> Ints:
    """The class of each token by its text: ``NEVER``, ``ITSELF``, or a positive number.

    Args:
        fused: a grammar's lexemes, without token elements.
        root: the rule it starts at.
        texts: of the tokens; empty where a token is none.

    Raises:
        TooMuchToTell: the grammar is too large for that, or tells too many apart.
    """
    found = np.full(len(texts), ITSELF, np.int32)
    whole: list[str] = []
    places: list[int] = []
    for place, text in enumerate(texts):
        try:
            whole.append(text.decode())
            places.append(place)
        except UnicodeDecodeError:
            pass
    outcomes = _Outcomes(fused, root)
    found[places] = outcomes.of(whole)
    found[[place for place, text in zip(places, whole, strict=True) if not text]] = NEVER
    return found


class _Outcomes:
    """The ways to read a text from each state of each lexeme.

    An *outcome* is the number of a set: whether the text stays inside the lexeme, and which lexemes may follow, each
    with the outcome of the rest. A *row* holds the outcome from every state. The row of a text with a character in
    front depends only on the character and the row of the text, so texts are read from their ends, all at once.
    """

    def __init__(self, fused: Fused, root: str) -> None:
        self._left = MAX_WORK
        positions = Positions(fused.bodies, root)
        names = [name for name in positions.with_text if name]
        self._build(fused, names)
        self._follow = _follow(positions, names)
        self._sets: list[frozenset[tuple[int, int]]] = [frozenset()]
        self._set_numbers = {self._sets[0]: 0}
        # Numbers 0 and 1: nothing can come of it; it stays inside and nothing else.
        self._outcomes: list[tuple[bool, frozenset[tuple[int, int]]]] = [(False, frozenset()), (True, frozenset())]
        self._numbers = {outcome: number for number, outcome in enumerate(self._outcomes)}
        self._joined: dict[tuple[int, int], int] = {}
        self._rows: list[tuple[Ints, Ints]] = []
        self._row_numbers: dict[bytes, int] = {}
        self._buffer = np.zeros(self._states + 1, np.int32)
        self._row(np.zeros(self._states + 1, np.int32))  # NEVER
        nothing_read = np.ones(self._states + 1, np.int32)
        nothing_read[-1] = 0
        self._empty = self._row(nothing_read)
        self._table = np.full((1024, self._kinds), -1, np.int32)  # rows by row and kind of character before it

    def _build(self, fused: Fused, names: list[str]) -> None:
        """The automata of all lexemes as one table, a last state for what no text leads on from."""
        dfas = [fused.automata[name] for name in names]
        first = np.cumsum([0, *(len(dfa.edges) for dfa in dfas)])
        self._states = int(first[-1])
        self._spend(self._states * fused.alphabet.size + len(names) ** 2)
        self._starts = first[:-1]
        table = np.full((fused.alphabet.size, self._states + 1), self._states, np.int32)
        ends, lexemes = [], []
        for lexeme, (start, dfa) in enumerate(zip(first.tolist(), dfas, strict=False)):
            for state, row in enumerate(dfa.edges):
                for mask, target in row:
                    table[list(bits(mask)), start + state] = start + target
                if dfa.accepting[state]:
                    ends.append(start + state)
                    lexemes.append(lexeme)
        self._ends, self._ended = np.array(ends, np.intp), np.array(lexemes, np.intp)
        self._table_of, kinds = np.unique(table, axis=0, return_inverse=True)
        self._kind_of, self._alphabet = kinds.reshape(-1), fused.alphabet
        self._kinds = len(self._table_of)

    def of(self, texts: Sequence[str]) -> Ints:
        """The numbers of their rows."""
        lengths = np.array([len(text) for text in texts], np.intp)
        codes = np.frombuffer("".join(texts).encode("utf-32-le"), np.uint32)
        kinds = self._kind_of[self._alphabet.classes(codes)]
        order = np.argsort(-lengths, kind="stable")
        ends = np.cumsum(lengths)[order]
        rows = np.full(len(texts), self._empty, np.int32)
        longer = len(texts)
        for back in range(1, int(lengths.max(initial=0)) + 1):
            longer = int(np.searchsorted(-lengths[order[:longer]], -back, side="right"))
            rows[:longer] = self._before(kinds[ends[:longer] - back], rows[:longer])
        found = np.empty_like(rows)
        found[order] = rows
        return found

    def _before(self, kinds: npt.NDArray[np.intp], rows: Ints) -> Ints:
        """The rows with a character of each kind before the text of each row."""
        found: Ints = self._table[rows, kinds]
        missing = np.flatnonzero(found < 0)
        if len(missing):
            for code in np.unique(rows[missing].astype(np.int64) * self._kinds + kinds[missing]).tolist():
                row, kind = divmod(code, self._kinds)
                number = self._step(row, kind)
                while len(self._rows) > len(self._table):
                    self._table = np.concatenate([self._table, np.full_like(self._table, -1)])
                self._table[row, kind] = number
            found = self._table[rows, kinds]
        return found

    def _step(self, row: int, kind: int) -> int:
        """The row of a character before a text."""
        self._spend(self._states + 1000)
        places, outcomes = self._rows[row]
        self._buffer[places] = outcomes
        inside: Ints = self._buffer[self._table_of[kind]]
        self._buffer[places] = 0
        begun = inside[self._starts]
        beginning = np.flatnonzero(begun)
        if len(beginning):
            # Where a lexeme has ended already, all of the text belongs to those that follow.
            followed = self._follow[:, beginning]
            self._spend(followed.size)
            sets = np.zeros(len(followed), np.int64)
            pairs = list(zip(beginning.tolist(), begun[beginning].tolist(), strict=True))
            known: dict[bytes, int] = {}
            for lexeme in np.flatnonzero(followed.any(axis=1)).tolist():
                key = followed[lexeme].tobytes()
                number = known.get(key)
                if number is None:
                    chosen = [pair for pair, yes in zip(pairs, followed[lexeme].tolist(), strict=True) if yes]
                    number = known[key] = self._set(frozenset(chosen))
                sets[lexeme] = number
            after = sets[self._ended]
            where = np.flatnonzero(after)
            at = self._ends[where]
            both, back = np.unique(inside[at].astype(np.int64) << 32 | after[where], return_inverse=True)
            inside[at] = np.array([self._join(code >> 32, code & 0xFFFFFFFF) for code in both.tolist()], np.int32)[back]
        return self._row(inside)

    def _spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise TooMuchToTell

    def _set(self, pairs: frozenset[tuple[int, int]]) -> int:
        number = self._set_numbers.setdefault(pairs, len(self._sets))
        if number == len(self._sets):
            self._sets.append(pairs)
        return number

    def _join(self, outcome: int, after: int) -> int:
        """The outcome that is either of the two."""
        number = self._joined.get((outcome, after))
        if number is None:
            inside, sets = self._outcomes[outcome]
            new = (inside, sets | self._sets[after])
            number = self._joined[outcome, after] = self._numbers.setdefault(new, len(self._outcomes))
            if number == len(self._outcomes):
                self._outcomes.append(new)
        return number

    def _row(self, outcomes: Ints) -> int:
        places = np.flatnonzero(outcomes).astype(np.int32)
        chosen = outcomes[places]
        number = self._row_numbers.setdefault(places.tobytes() + chosen.tobytes(), len(self._rows))
        if number == len(self._rows):
            self._spend(_STEPS_STORED * len(places))
            self._rows.append((places, chosen))
        return number


def _follow(positions: Positions, names: list[str]) -> npt.NDArray[np.bool_]:
    """Which lexemes may follow which, wherever they stand."""
    number = {name: index for index, name in enumerate(names)}
    found = np.zeros((len(names), len(names)), np.bool_)
    for name in names:
        after = 0
        for at in bits(positions.with_text[name]):
            after |= positions.next[at]
        found[number[name], [number[positions.texts[at]] for at in bits(after)]] = True
    return found
