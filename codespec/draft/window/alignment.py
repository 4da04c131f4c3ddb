"""Where a text that is being written stands in an older text that it repeats with few changes."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from math import log2

from codespec.draft.acceptance import GuessKind, found_kind, lost_kind
from codespec.draft.text import spelled
from codespec.draft.window.repeated_changes import Change, Expected
from codespec.draft.window.window_text import WindowText

REJOINED, REJOINED_BITS = 2, 8.0
"""Tokens in a row that must be the window's again for a difference to be over, and what they must say together."""

BACK, AHEAD = 64, 512
"""Tokens of the window before and after the beginning of a difference among which its end is looked for."""

LONGEST_MATCH = 16
_NEAR = 8  # tokens after the beginning of a difference whose ends are compared by text
_LEAST_TEXT = 2  # bytes that must be the same there
_CHANGE_BITS = 4.0  # of a token of an expected change that came
_LEAST_BITS = -2.0
_BACK_BITS = 12.0  # against a place before the beginning of the difference: a copy is likelier than a move
_SURE_BITS = 10.0  # of tokens that are the same again, with which nothing else is supposed

# Bins of guesses while a difference is open: by what they suppose, or what the tokens that are the same again say.
_ONE_REPLACED, _LINES_INSERTED, _LINE_REPLACED, _SAME_TEXT, _SAME_TOKENS = range(5)
_EVIDENCE_EDGES = (1.0, 4.0, 8.0, 14.0)

_WORDS = re.compile(rb"\w+")


@dataclass(frozen=True)
class Difference:
    """Tokens ``start`` to ``end`` of the window that ``tokens`` replaced."""

    start: int
    end: int
    tokens: tuple[int, ...]


@dataclass(frozen=True)
class Recurrence:
    """A change that was expected again, and whether it came."""

    change: Change
    came: bool


class Alignment:
    """A place in the window that follows the text token by token.

    While the text is the window's, the next token is expected. At another one a difference begins: then each token is
    looked for in the window near by, until a few in a row are the same again. At some places a change that was seen
    before is expected instead.

    Attributes:
        at: index of the window's token that is expected next; -1: nothing is expected.
        run: tokens in a row that came as expected.
        bits: what these say about the place.

    Args:
        places: where in the window a change is expected; may grow and shrink meanwhile.
    """

    __slots__ = (
        "_ahead", "_back", "_bin", "_expected", "_places", "_since", "_start", "_window", "_wrong", "at", "bits", "run"
    )  # fmt: skip

    def __init__(self, window: WindowText, places: dict[int, Expected]) -> None:
        self._window, self._places = window, places
        self.run = 0
        self.bits = 0.0
        self._back = False  # whether the place was lost before
        self._wrong = 0  # guesses that did not come since the open difference began
        self._start = 0  # of the open difference in the window
        self._since: list[int] | None = None  # the text of the open difference, and what was the same again after it
        self._bin = 0
        self._ahead = 0  # tokens of the expected change that came
        self._arrive(0)

    def copy(self) -> Alignment:
        """An independent one at the same place."""
        other = Alignment.__new__(Alignment)
        other._window, other._places, other.at, other.run = self._window, self._places, self.at, self.run
        other.bits, other._back, other._wrong = self.bits, self._back, self._wrong
        other._start, other._bin, other._ahead, other._expected = self._start, self._bin, self._ahead, self._expected
        other._since = None if self._since is None else list(self._since)
        return other

    def guess(self) -> tuple[int, GuessKind] | None:
        """The token that is expected next and what kind of guess it is; None where nothing is expected."""
        if self._expected is not None:
            return self._expected.tokens[self._ahead], ("window-change", self._expected.change.bin)
        held = self._window.tokens
        if not 0 <= self.at < len(held):
            return None
        if self._since is not None:
            return held[self.at], lost_kind(self._bin, self._wrong)
        return held[self.at], found_kind(self.bits, self._back)

    def step(self, token: int) -> Difference | Recurrence | None:
        """Follow the text by a token; what has become known with it."""
        expected, held = self._expected, self._window.tokens
        if self._since is not None:
            self._since.append(token)
        if expected is not None:
            return self._step_in_change(expected, token)
        if 0 <= self.at < len(held) and held[self.at] == token:
            self.bits += self._window.bits[token]
            self._arrive(self.at + 1)
            return self._rejoined() if self._since is not None else None
        self._lose(token)
        return None

    def _arrive(self, at: int) -> None:
        self.at = at
        self.run += 1
        self._expected, self._ahead = self._places.get(at), 0

    def _step_in_change(self, expected: Expected, token: int) -> Recurrence | None:
        if expected.tokens[self._ahead] == token:
            self._ahead += 1
            self.run += 1
            self.bits += _CHANGE_BITS
            if self._ahead < len(expected.tokens):
                return None
            at = self.at
            self._arrive(expected.end)
            if self.at == at:  # an insertion, which comes once
                self._expected = None
            return Recurrence(expected.change, came=True)
        self._expected = None
        if self._ahead == 0 and self._window.tokens[self.at : self.at + 1] == [token]:
            self._arrive(self.at + 1)
        else:
            self._lose(token, expected.tokens[: self._ahead])
        return Recurrence(expected.change, came=False)

    def _rejoined(self) -> Difference | None:
        """The open difference, if it is over: what follows is the window's again."""
        self._bin = _SAME_TOKENS + bisect_right(_EVIDENCE_EDGES, self.bits)
        if self.run < REJOINED or self.bits < REJOINED_BITS or self._since is None:
            return None
        difference = Difference(self._start, self.at - self.run, tuple(self._since[: -self.run]))
        self._since = None
        return difference

    def _lose(self, token: int, before: Sequence[int] = ()) -> None:
        """Go on from a token that was not expected: to the likeliest place after it."""
        if self._since is None:
            self._start, self._since, self._wrong = self.at, [*before, token], 0
        elif self.at >= 0:
            self._wrong += 1
        self._back = True
        self.run, self.bits = 0, 0.0
        self._expected = None
        at, run, self._bin = self._place_after(self._since)
        self._arrive(at)
        self.run = run
        if run:
            self.bits = sum(self._window.bits[token] for token in self._window.tokens[at - run : at])
        if at < 0:
            self._expected = None

    def _place_after(self, since: Sequence[int]) -> tuple[int, int, int]:
        """Where the text of an open difference is likely to go on in the window, how many tokens before that are the
        same, and the bin of that guess."""
        window = self._window
        found, run, bits = self._same_tokens(since)
        evidence = _SAME_TOKENS + bisect_right(_EVIDENCE_EDGES, bits)
        if bits >= _SURE_BITS:
            return found, run, evidence
        last = window.vocabulary.token_bytes(since[-1])
        if b"\n" in last:
            return self._at_line(since)
        if run:
            return found, run, evidence
        found = self._same_text(since)
        if found >= 0:
            return found, 0, _SAME_TEXT
        return (self._start + 1, 0, _ONE_REPLACED) if len(since) == 1 else (-1, 0, 0)

    def _same_tokens(self, since: Sequence[int]) -> tuple[int, int, float]:
        """The place in the window after the likeliest match with the end of the text, its tokens, and how many bits
        speak for it: those of its tokens, less those of the way there."""
        window, held = self._window, self._window.tokens
        places = window.places.get(since[-1], ())
        best, best_run, most_bits = -1, 0, float("-inf")
        low, high = bisect_left(places, self._start - BACK), bisect_right(places, self._start + AHEAD)
        for place in places[low:high]:
            run, most, bits = 1, min(LONGEST_MATCH, len(since), place + 1), window.bits[since[-1]]
            while run < most and held[place - run] == since[-1 - run]:
                bits += window.bits[since[-1 - run]]
                run += 1
            away = place - self._start
            bits -= log2(1 + away) if away >= 0 else _BACK_BITS + log2(1 - away)
            if bits > max(most_bits, _LEAST_BITS):
                best, best_run, most_bits = place + 1, run, bits
        return best, best_run, most_bits

    def _same_text(self, since: Sequence[int]) -> int:
        """The index after the near token that ends as the text does, for tokens are cut elsewhere around a change."""
        window = self._window
        written = spelled(window.vocabulary, since[-4:])
        best, most = -1, _LEAST_TEXT - 1
        for index in range(self._start, min(self._start + _NEAR, len(window.tokens))):
            end = window.borders[index + 1]
            same, reach = 0, min(len(written), end)
            while same < reach and written[-1 - same] == window.data[end - 1 - same]:
                same += 1
            if same > most:
                best, most = index + 1, same
        return best

    def _at_line(self, since: Sequence[int]) -> tuple[int, int, int]:
        """Where to go on at the beginning of a line: where the difference began, if lines were inserted there, or at
        the line after it."""
        window = self._window
        began = window.borders[self._start]
        line = window.data.rfind(b"\n", 0, began) + 1
        end = window.data.find(b"\n", began)
        if not window.data[line:began].strip():
            written = spelled(window.vocabulary, since).splitlines()[-1]
            if not _alike(window.data[line : end if end >= 0 else None], written):
                return bisect_left(window.borders, line), 0, _LINES_INSERTED
        return (bisect_left(window.borders, end + 1), 0, _LINE_REPLACED) if end >= 0 else (-1, 0, 0)


def _alike(one: bytes, other: bytes) -> bool:
    """Whether two lines share most of their words."""
    words, others = set(_WORDS.findall(one)), set(_WORDS.findall(other))
    return 2 * len(words & others) > max(len(words), len(others))
