"""White space between the tokens of JSON, as formatters write it and as the document has it.

The grammar takes any amount of it anywhere, so that a model that is sure of nothing else would go on with blanks.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from codespec.grammar.fit import TokenText
from codespec.protocols import Bits, GrammarState

READ = 20_000
"""Characters on either side of the cursor that tell how a document is written."""
WIDTH = 4
"""Blanks for a level of indentation, in a document that has none."""
_CLOSERS = {"}": "{", "]": "["}
_STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')
_TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*(?:"|\\?\Z)|[{}\[\],:]|[^\s{}\[\],:"]+')


def _near(prefix: str) -> str:
    """The end of a document's beginning, from the start of a line on: no string goes on behind one."""
    return prefix[prefix.rfind("\n", 0, max(0, len(prefix) - READ)) + 1 :]


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))] if line.strip() else ""


def _indentation(text: str, at: int) -> int:
    """Of the line that holds ``at``, up to there."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return len(line) - len(line.lstrip(" \t"))


class Place(NamedTuple):
    """What stands before a place.

    Attributes:
        open: the brackets that are not closed.
        last: the last sign: a bracket, comma or colon; ``v`` for any other value, ``k`` for a name in an object.
        blanks: the white space behind it.
        own: whether that began in the document.
        column: how much of it stands at the start of the line; -1 where that is not blank.
        line: the indentation of the line.
        levels: those of the lines on which the brackets opened.
        string: ``k`` in a name, ``v`` in another string, else empty.
        escaped: whether a backslash stands before the place, in a string.
    """

    open: str = ""
    last: str = ""
    blanks: str = ""
    own: bool = True
    column: int = 0
    line: int = 0
    levels: tuple[int, ...] = ()
    string: str = ""
    escaped: bool = False

    def behind(self, sign: str) -> Place:
        """The place behind one more character, whatever it is."""
        if self.string:
            return self._in_string(sign)
        if sign == "\n":
            return self._replace(blanks=self.blanks + sign, column=0)
        if sign.isspace():
            return self._replace(blanks=self.blanks + sign, column=self.column + (self.column >= 0))
        line = self.line if self.column < 0 else self.column
        place = self._replace(blanks="", own=False, column=-1, line=line)
        if sign == '"':
            return place._replace(string="k" if self.open[-1:] == "{" and self.last in ("{", ",") else "v")
        if sign in "[{":
            return place._replace(open=self.open + sign, last=sign, levels=(*self.levels, line))
        if sign in _CLOSERS and self.open.endswith(_CLOSERS[sign]):
            return place._replace(open=self.open[:-1], last="v", levels=self.levels[:-1])
        return place._replace(last=sign if sign in ",:" else "v")

    def _in_string(self, sign: str) -> Place:
        if self.escaped or sign == "\\":
            return self._replace(escaped=not self.escaped)
        return self._replace(last=self.string, string="") if sign == '"' else self


def place_behind(prefix: str) -> Place:
    """The place at the end of a document's beginning."""
    text = _near(prefix)
    tokens = list(_TOKEN.finditer(text))
    opened: list[int] = []
    last = ""
    for match in tokens[:-1]:
        last = match[0][0]
        if last in "{[":
            opened.append(match.start())
        elif last in _CLOSERS and opened and text[opened[-1]] == _CLOSERS[last]:
            opened.pop()
    start = tokens[-1].start() if tokens else 0
    levels = tuple(_indentation(text, at) for at in opened)
    column = -1 if text[text.rfind("\n", 0, start) + 1 : start].strip() else _indentation(text, start)
    place = Place("".join(text[at] for at in opened), last, "", True, column, _indentation(text, start), levels)
    place = functools.reduce(Place.behind, text[start:], place)
    return place._replace(own=bool(place.blanks or not place.last))


class Spacing:
    """Which white space may come at a place of a document.

    Blanks within a line are single ones, behind signs that have one in the document, and not left out behind a comma or
    colon where those have one always. A line break stands behind a value, a comma or an opening bracket, if the
    document has any, and no more indentation behind it than brackets are open. No comma begins a line. What the
    document has before the cursor may be as it is.
    """

    def __init__(self, prefix: str, suffix: str) -> None:
        self.start = place_behind(prefix)
        text = _STRING.sub('""', _near(prefix) + suffix[:READ])
        steps = [indent for indent in map(_indent, text.split("\n")) if indent]
        self._indent = "\t" if sum(indent[0] == "\t" for indent in steps) * 2 > len(steps) else " "
        depths = sorted({0, *map(len, steps)})
        self._width = min((b - a for a, b in pairwise(depths)), default=1 if self._indent == "\t" else WIDTH)
        self._breaks = "\n" in text.strip() or not text.strip("{}[] \n\t")
        spaced, bare = ({found[0] for found in re.findall(rf"[,:]{after}", text)} for after in (" ", r"\S"))
        broken = {","} if ",\n" in text else set()
        self._always = (spaced | broken) - bare
        self._blanks = spaced | ({",", ":"} - broken - bare)
        self._blanks |= {sign for sign in "[{" if re.search(rf"\{sign} \S", text)}
        self._blanks |= {"k"} if '" :' in text else set()
        self._blanks |= {"v"} if re.search(r"\S [}\]]", text) else set()

    def behind(self, place: Place, piece: bytes) -> Place | None:
        """The place behind ``piece``; None where that has white space that may not come."""
        for sign in piece.decode("latin-1"):
            if not place.string and not self._allows(place, sign):
                return None
            place = place.behind(sign)
        return place

    def needs_blank(self, place: Place) -> bool:
        """Whether nothing but white space may come."""
        if place.string or place.own:
            return False
        if not place.blanks:
            return place.last in self._always
        return "\n" in place.blanks and place.last != "v" and place.column < self._deepest(place)

    def _deepest(self, place: Place) -> int:
        """The indentation that what comes on a line of its own has: a closing bracket behind a value, else a value."""
        return place.levels[-1] + self._width * (place.last != "v") if place.levels else 0

    def _allows(self, place: Place, sign: str) -> bool:
        if sign == "\n":
            return self._breaks and place.last not in ("", ":", "k") and "\n" not in place.blanks
        if not sign.isspace():
            return not self.needs_blank(place) and (sign != "," or place.own or not place.blanks)
        if place.column >= 0:
            return sign == self._indent and place.column < self._deepest(place)
        return sign == " " and not place.blanks and place.last in self._blanks


class SpacedState:
    """A grammar state that takes white space only as a ``Spacing`` does.

    Args:
        exempt: bytes at the beginning of what is accepted that are the document's own.
    """

    __slots__ = ("_exempt", "_places", "_spacing", "_state", "_vocabulary")

    def __init__(self, state: GrammarState, spacing: Spacing, vocabulary: TokenText, exempt: int = 0) -> None:
        self._state, self._spacing, self._vocabulary = state, spacing, vocabulary
        self._places = [spacing.start]
        self._exempt = [exempt]

    def copy(self) -> SpacedState:
        """An independent copy."""
        other = object.__new__(SpacedState)
        other._state, other._spacing, other._vocabulary = self._state.copy(), self._spacing, self._vocabulary
        other._places, other._exempt = self._places.copy(), self._exempt.copy()
        return other

    def __deepcopy__(self, memo: dict[int, object]) -> SpacedState:
        return self.copy()

    def accept(self, tokens: Sequence[int]) -> int:
        """As ``GrammarState.accept``."""
        places, exempt = [self._places[-1]], [self._exempt[-1]]
        for token in tokens:
            place = self._behind(token, places[-1], exempt[-1])
            if place is None:
                break
            places.append(place)
            exempt.append(max(0, exempt[-1] - len(self._vocabulary.token_bytes(token))))
        taken = self._state.accept(tokens[: len(places) - 1])
        self._places += places[1 : taken + 1]
        self._exempt += exempt[1 : taken + 1]
        return taken

    def _behind(self, token: int, place: Place, exempt: int) -> Place | None:
        piece = self._vocabulary.token_bytes(token)
        place = functools.reduce(Place.behind, piece[:exempt].decode("latin-1"), place)
        return self._spacing.behind(place._replace(own=True) if exempt else place, piece[exempt:])

    def allows(self, token: int) -> bool:
        """As ``GrammarState.allows``."""
        return self._behind(token, self._places[-1], self._exempt[-1]) is not None and self._state.allows(token)

    def mask_into(self, bits: Bits) -> None:
        """As ``GrammarState.mask_into``."""
        self._state.mask_into(bits)
        place, tokens = self._places[-1], _tokens(self._vocabulary)
        if not self._exempt[-1] and self._spacing.needs_blank(place):
            bits &= tokens.blank[: len(bits)]
        among = tokens.in_string if place.string else tokens.in_code
        for token in among[bits[among >> 5] >> (among & 31).astype(np.uint32) & 1 == 1]:
            if self._behind(int(token), place, self._exempt[-1]) is None:
                bits[token >> 5] &= ~np.uint32(1 << (int(token) & 31))

    def rollback(self, n: int) -> None:
        """As ``GrammarState.rollback``."""
        self._state.rollback(n)
        del self._places[len(self._places) - n :], self._exempt[len(self._exempt) - n :]

    def forced(self) -> bytes:
        """As ``GrammarState.forced``."""
        return self._state.forced()

    @property
    def can_end(self) -> bool:
        """As ``GrammarState.can_end``."""
        return self._state.can_end

    @property
    def finished(self) -> bool:
        """As ``GrammarState.finished``."""
        return self._state.finished


def prepare(vocabulary: TokenText) -> None:
    """Do what the first mask over a vocabulary would do first: about 2 µs for each token."""
    _tokens(vocabulary)


class _Tokens(NamedTuple):
    """What is known of a vocabulary.

    Attributes:
        in_code, in_string: the tokens that may be refused outside of strings, where no blank is missing, and in them.
        blank: the set of those that begin with white space, as ``GrammarState.mask_into`` writes sets.
    """

    in_code: npt.NDArray[np.int64]
    in_string: npt.NDArray[np.int64]
    blank: npt.NDArray[np.uint32]


@functools.lru_cache(maxsize=4)
def _tokens(vocabulary: TokenText) -> _Tokens:
    pieces = [vocabulary.token_bytes(token) for token in range(vocabulary.size)]
    code = [token for token, piece in enumerate(pieces) if re.search(rb"[\s,:]", piece)]
    string = [token for token in code if re.search(rb'".*[\s,:]', pieces[token], re.DOTALL)]
    blank = np.zeros(-(-vocabulary.size // 32) * 32, np.bool_)
    blank[[token for token in code if pieces[token][:1].isspace()]] = True
    words = np.packbits(blank, bitorder="little").view("<u4")
    return _Tokens(np.array(code, np.int64), np.array(string, np.int64), words)
