"""White space between the tokens of JSON, as formatters write it and as the document has it.

The JSON grammar allows any amount of it anywhere, so that an unsure model would go on with blanks.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from codespec.completion.ending.suffix_gate import TokenText
from codespec.protocols import Bits, GrammarState

READ = 20_000
"""Characters on either side of the cursor that tell how a document is written."""
WIDTH = 4
"""Blanks for a level of indentation, in a document that has none."""
_CLOSERS = {"}": "{", "]": "["}
_STRING = re.compile(r'"(?:\\.|[^"\\\n])*"?')  # to the end of its line where it is not closed
_TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*(?:"|\\?\Z)?|[{}\[\],:]|[^\s{}\[\],:"]+')


def _near(prefix: str) -> str:
    """About the last ``READ`` characters of the prefix, from the start of a line on, where no string is open."""
    return prefix[prefix.rfind("\n", 0, max(0, len(prefix) - READ)) + 1 :]


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))] if line.strip() else ""


def _indentation(text: str, at: int) -> int:
    """Of the line that holds ``at``, up to there."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return len(line) - len(line.lstrip(" \t"))


class JsonPosition(NamedTuple):
    """A position in a JSON text, by the text before it.

    Attributes:
        open: the brackets that are not closed.
        last: the last sign: a bracket, comma or colon; ``v`` for any other value, ``k`` for a name in an object.
        blanks: the white space after that sign.
        own: whether the white space began in the document.
        column: how much of it stands at the start of the line; -1 where the line does not begin with it.
        line: the indentation of the line.
        levels: the indentations of the lines on which the brackets opened.
        string: ``k`` in a name, ``v`` in another string, else empty.
        escaped: whether a backslash stands before the position, in a string.
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

    def after(self, sign: str) -> JsonPosition:
        """The position after one more character, whatever it is."""
        if self.string:
            return self._in_string(sign)
        if sign == "\n":
            return self._replace(blanks=self.blanks + sign, column=0)
        if sign.isspace():
            return self._replace(blanks=self.blanks + sign, column=self.column + (self.column >= 0))
        line = self.line if self.column < 0 else self.column
        position = self._replace(blanks="", own=False, column=-1, line=line)
        if sign == '"':
            return position._replace(string="k" if self.open[-1:] == "{" and self.last in ("{", ",") else "v")
        if sign in "[{":
            return position._replace(open=self.open + sign, last=sign, levels=(*self.levels, line))
        if sign in _CLOSERS and self.open.endswith(_CLOSERS[sign]):
            return position._replace(open=self.open[:-1], last="v", levels=self.levels[:-1])
        return position._replace(last=sign if sign in ",:" else "v")

    def _in_string(self, sign: str) -> JsonPosition:
        if self.escaped or sign == "\\":
            return self._replace(escaped=not self.escaped)
        return self._replace(last=self.string, string="") if sign == '"' else self


def position_after(prefix: str) -> JsonPosition:
    """The position at the end of a document's beginning."""
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
    position = JsonPosition(
        "".join(text[at] for at in opened), last, "", True, column, _indentation(text, start), levels
    )
    position = functools.reduce(JsonPosition.after, text[start:], position)
    return position._replace(own=bool(position.blanks or not position.last))


class Spacing:
    """The white space that is allowed at a position of a document.

    Blanks within a line are single ones, after signs that have one in the document, and not left out after a comma or
    colon where those have one always. A line break comes after a value, a comma or an opening bracket, if the
    document has any, with no more indentation than brackets are open. No comma begins a line. White space that the
    document has before the cursor is allowed as it is.
    """

    def __init__(self, prefix: str, suffix: str) -> None:
        self.start = position_after(prefix)
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

    def after(self, position: JsonPosition, piece: bytes) -> JsonPosition | None:
        """The position after ``piece``; None where ``piece`` has white space that is not allowed."""
        for sign in piece.decode("latin-1"):
            if not position.string and not self._allows(position, sign):
                return None
            position = position.after(sign)
        return position

    def needs_blank(self, position: JsonPosition) -> bool:
        """Whether only white space is allowed next."""
        if position.string or position.own:
            return False
        if not position.blanks:
            return position.last in self._always
        return "\n" in position.blanks and position.last != "v" and position.column < self._deepest(position)

    def _deepest(self, position: JsonPosition) -> int:
        """The deepest indentation of a new line: that of a closing bracket after a value, else that of a value."""
        return position.levels[-1] + self._width * (position.last != "v") if position.levels else 0

    def _allows(self, position: JsonPosition, sign: str) -> bool:
        if sign == "\n":
            return self._breaks and position.last not in ("", ":", "k") and "\n" not in position.blanks
        if not sign.isspace():
            return not self.needs_blank(position) and (sign != "," or position.own or not position.blanks)
        if position.column >= 0:
            return sign == self._indent and position.column < self._deepest(position)
        return sign == " " and not position.blanks and position.last in self._blanks


class SpacedState:
    """A grammar state that allows white space only where a ``Spacing`` does.

    Args:
        exempt: bytes at the start of the text that are the document's own.
    """

    __slots__ = ("_exempt", "_positions", "_spacing", "_state", "_vocabulary")

    def __init__(self, state: GrammarState, spacing: Spacing, vocabulary: TokenText, exempt: int = 0) -> None:
        self._state, self._spacing, self._vocabulary = state, spacing, vocabulary
        self._positions = [spacing.start]
        self._exempt = [exempt]

    def copy(self) -> SpacedState:
        """An independent copy."""
        other = object.__new__(SpacedState)
        other._state, other._spacing, other._vocabulary = self._state.copy(), self._spacing, self._vocabulary
        other._positions, other._exempt = self._positions.copy(), self._exempt.copy()
        return other

    def __deepcopy__(self, memo: dict[int, object]) -> SpacedState:
        return self.copy()

    def accept(self, tokens: Sequence[int]) -> int:
        """As ``GrammarState.accept``."""
        positions, exempt = [self._positions[-1]], [self._exempt[-1]]
        for token in tokens:
            position = self._after(token, positions[-1], exempt[-1])
            if position is None:
                break
            positions.append(position)
            exempt.append(max(0, exempt[-1] - len(self._vocabulary.token_bytes(token))))
        taken = self._state.accept(tokens[: len(positions) - 1])
        self._positions += positions[1 : taken + 1]
        self._exempt += exempt[1 : taken + 1]
        return taken

    def _after(self, token: int, position: JsonPosition, exempt: int) -> JsonPosition | None:
        piece = self._vocabulary.token_bytes(token)
        position = functools.reduce(JsonPosition.after, piece[:exempt].decode("latin-1"), position)
        return self._spacing.after(position._replace(own=True) if exempt else position, piece[exempt:])

    def allows(self, token: int) -> bool:
        """As ``GrammarState.allows``."""
        return self._after(token, self._positions[-1], self._exempt[-1]) is not None and self._state.allows(token)

    def mask_into(self, bits: Bits) -> None:
        """As ``GrammarState.mask_into``."""
        self._state.mask_into(bits)
        position, tokens = self._positions[-1], _tokens(self._vocabulary)
        if not self._exempt[-1] and self._spacing.needs_blank(position):
            bits &= tokens.blank[: len(bits)]
        among = tokens.in_string if position.string else tokens.in_code
        for token in among[bits[among >> 5] >> (among & 31).astype(np.uint32) & 1 == 1]:
            if self._after(int(token), position, self._exempt[-1]) is None:
                bits[token >> 5] &= ~np.uint32(1 << (int(token) & 31))

    def rollback(self, n: int) -> None:
        """As ``GrammarState.rollback``."""
        self._state.rollback(n)
        del self._positions[len(self._positions) - n :], self._exempt[len(self._exempt) - n :]

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
    """Classify the tokens of a vocabulary ahead of its first mask: about 2 µs for each token."""
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
    string = [token for token in code if re.search(rb"[\s,:]", pieces[token].partition(b'"')[2])]
    blank = np.zeros(-(-vocabulary.size // 32) * 32, np.bool_)
    blank[[token for token in code if pieces[token][:1].isspace()]] = True
    words = np.packbits(blank, bitorder="little").view("<u4")
    return _Tokens(np.array(code, np.int64), np.array(string, np.int64), words)
