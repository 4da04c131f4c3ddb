"""Arrays whose items must differ (``uniqueItems``), and objects with many names, which no context-free grammar can say.

A state of the engine is wrapped in one that also reads the JSON text, byte by byte, and refuses the byte that completes
an item or a name which was there before: a closing quote, brace or bracket, the last letter of ``true``, or what ends a
number. Where that is wanted is told by the place: the names and indices that lead to it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from codespec.grammar.json.positions import ValuePosition, ValuePositions
from codespec.grammar.json.token_texts import members, texts_of
from codespec.grammar.state import LlguidanceState
from codespec.grammar.tokenizer import Tokenizer
from codespec.protocols import Bits

_BETWEEN, _STRING, _ESCAPE, _SCALAR = range(4)
_SPACE, _LITERALS = b" \t\r\n", (b"true", b"false", b"null")


class _Container(NamedTuple):
    """An object or array that is open.

    Attributes:
        step: the index of the item, or the name of the property, that stands or comes there.
        begin: where in the text the item begins; -1 between items.
        differ: whether its items, or names, must.
        seen: those until now, the last first, each with its text and those before it.
        names: what is left of the names that an object may have; None where it may have any.
    """

    outer: _Container | None
    place: ValuePosition
    array: bool
    differ: bool
    step: int | str | None
    begin: int
    seen: tuple[Any, bytes, Any] | None
    names: tuple[bytes, ...] | None = None


class _Reader(NamedTuple):
    """The state after reading a text: the innermost open container, the kind of token that the last byte is in, and
    where that began."""

    inner: _Container | None
    mode: int
    begin: int


class _Twice(Exception):
    """An item or name is there already."""


class UniqueState:
    """A state of the engine that also refuses items and names which are there already; see ``GrammarState``."""

    def __init__(self, inner: LlguidanceState, places: ValuePositions, tokenizer: Tokenizer) -> None:
        self._inner, self._places, self._tokenizer = inner, places, tokenizer
        self._text = bytearray()
        self._read = [(_Reader(None, _BETWEEN, 0), 0)]  # behind each token, with the length of the text

    def copy(self) -> UniqueState:
        """An independent deep copy, in time linear in the tokens taken so far."""
        other = object.__new__(UniqueState)
        other._inner, other._places, other._tokenizer = self._inner.copy(), self._places, self._tokenizer
        other._text, other._read = self._text.copy(), self._read.copy()
        return other

    def __deepcopy__(self, memo: dict[int, object]) -> UniqueState:
        return self.copy()

    def accept(self, tokens: Sequence[int]) -> int:
        """As ``LlguidanceState.accept``."""
        for index, token in enumerate(tokens):
            if not self._push(int(token)):
                return index
            if self._stuck():
                self.rollback(1)
                return index
        return len(tokens)

    def allows(self, token: int) -> bool:
        """As ``LlguidanceState.allows``."""
        return self._inner.allows(token) and not self._refuses(token) and not self._leads_nowhere(token)

    def mask_into(self, bits: Bits) -> None:
        """As ``LlguidanceState.mask_into``."""
        self._inner.mask_into(bits)
        suspects = self._suspects()
        if suspects is None:
            return
        for token in members(bits & suspects):
            if self._refuses(token):
                bits[token >> 5] &= ~np.uint32(1 << (token & 31))
        for token in self._repeating(bits):
            if self._leads_nowhere(token):
                bits[token >> 5] &= ~np.uint32(1 << (token & 31))

    def rollback(self, n: int) -> None:
        """As ``LlguidanceState.rollback``."""
        self._inner.rollback(n)
        if n:
            del self._read[len(self._read) - n :]
            del self._text[self._read[-1][1] :]

    def forced(self) -> bytes:
        """As ``LlguidanceState.forced``; nothing where that is refused here."""
        forced = self._inner.forced()
        reader, length = self._read[-1]
        for end in range(1, len(forced) + 1):
            try:
                self._after(reader, length, forced[:end])
            except _Twice:
                return b""
        return forced

    @property
    def can_end(self) -> bool:
        """As ``LlguidanceState.can_end``."""
        return self._inner.can_end

    @property
    def finished(self) -> bool:
        """As ``LlguidanceState.finished``."""
        return self._inner.finished

    def _refuses(self, token: int) -> bool:
        reader, length = self._read[-1]
        try:
            self._after(reader, length, self._bytes(token))
        except _Twice:
            return True
        return False

    def _push(self, token: int) -> bool:
        """Take a token, wherever it leads; False where it is refused."""
        text = self._bytes(token)
        before, length = self._read[-1]
        try:
            after = self._after(before, length, text)
        except _Twice:
            return False
        if self._inner.accept([token]) == 0:
            return False
        self._text += text
        self._read.append((after, length + len(text)))
        return True

    def _stuck(self) -> bool:
        """Whether a string or number is an item or name that is there already, and can only end."""
        reader, length = self._read[-1]
        inner = reader.inner
        if inner is None or not inner.differ or reader.mode not in (_STRING, _SCALAR) or reader.begin != _begin(reader):
            return False
        text = bytes(self._text[reader.begin : length])
        if text not in _open_texts(inner):
            return False
        bits = np.zeros((self._tokenizer.size + 31) // 32, np.uint32)
        self.mask_into(bits)
        return not bits.any()

    def _leads_nowhere(self, token: int) -> bool:
        if not self._push(token):
            return True
        stuck = self._stuck()
        self.rollback(1)
        return stuck

    def _repeating(self, allowed: Bits) -> list[int]:
        """Tokens of a mask behind which a string or number may be an item or name that is there already."""
        reader, length = self._read[-1]
        texts, inner = texts_of(self._tokenizer), reader.inner
        if inner is None or not (inner.array or inner.differ):
            return []
        found = members(allowed & texts.several)
        if inner.differ:
            begin = _begin(reader)
            own = bytes(self._text[begin:length]) if begin >= 0 else b""
            rest = [text[len(own) :] for text in _open_texts(inner) if text.startswith(own) and text != own]
            found += [token for each in rest for token in (texts.named(each) if own else texts.begun(each))]
        return [token for token in dict.fromkeys(found) if allowed[token >> 5] >> np.uint32(token & 31) & 1]

    def _bytes(self, token: int) -> bytes:
        return texts_of(self._tokenizer).of(token)

    def _suspects(self) -> Bits | None:
        """Tokens that may complete an item which is there already; None where none can."""
        reader = self._read[-1][0]
        open_ = reader.inner
        if open_ is None and self._text.strip(_SPACE):
            return None  # the text is complete
        inside = False  # an item of an array that holds others
        each = open_
        while each is not None and not inside:
            inside, each = each.differ and each.seen is not None, each.outer
        if not inside and open_ is not None and not open_.place:
            return None
        texts = texts_of(self._tokenizer)
        if open_ is not None and open_.names is not None and open_.seen is not None:
            if open_.step is None:
                return texts.all
            return texts.whole | texts.commas if reader.mode == _BETWEEN else texts.ends | texts.quotes
        if not inside:
            return texts.several
        return {_BETWEEN: texts.whole, _SCALAR: texts.ends}.get(reader.mode, texts.quotes)

    def _after(self, reader: _Reader, length: int, text: bytes) -> _Reader:
        """The state after ``text``, which begins at ``length``.

        Raises:
            _Twice: it completes an item that is there already.
        """
        inner, mode, begin = reader
        for at, byte in enumerate(text, length):
            if mode == _STRING:
                if byte == 0x22:
                    mode = _BETWEEN
                    if inner is not None and not inner.array and inner.step is None:
                        inner = _named(inner, self._part(begin, at + 1, length, text))
                    else:
                        inner = self._ended(inner, at + 1, length, text)
                else:
                    mode = _ESCAPE if byte == 0x5C else _STRING
                    self._check_name(inner, begin, at + 1, length, text)
                continue
            if mode == _ESCAPE:
                mode = _STRING
                self._check_name(inner, begin, at + 1, length, text)
                continue
            if mode == _SCALAR:
                if byte in b",]} \t\r\n":
                    mode, inner = _BETWEEN, self._ended(inner, at, length, text)
                elif byte in b"el" and self._part(begin, at + 1, length, text) in _LITERALS:
                    mode, inner = _BETWEEN, self._ended(inner, at + 1, length, text)
                    continue
                else:
                    continue
            if byte in b" \t\r\n:":
                continue
            if byte == 0x2C:
                if inner is not None:
                    if inner.names == ():
                        raise _Twice
                    inner = inner._replace(step=inner.step + 1 if isinstance(inner.step, int) else None)
                continue
            if byte in b"]}":
                outer = inner.outer if inner is not None else None
                inner = self._ended(outer, at + 1, length, text)
                continue
            begin = at
            if inner is not None and inner.array:
                inner = inner._replace(begin=at)
            if byte == 0x22:
                mode = _STRING
            elif byte in b"[{":
                inner = self._opened(inner, byte == 0x5B)
            else:
                mode = _SCALAR
        return _Reader(inner, mode, begin)

    def _opened(self, outer: _Container | None, array: bool) -> _Container:
        places = self._places
        place = places.start if outer is None else places.below(outer.place, "" if outer.step is None else outer.step)
        differ = places.differ(place, array)
        names = places.names(place) if differ and not array else None
        return _Container(outer, place, array, differ, 0 if array else None, -1, None, names)

    def _check_name(self, inner: _Container | None, begin: int, end: int, length: int, text: bytes) -> None:
        """Of an object with a few names: whether one of those left begins as what was written of one."""
        if inner is not None and inner.names is not None and inner.step is None:
            part = self._part(begin, end, length, text)
            if not any(name.startswith(part) for name in inner.names):
                raise _Twice

    def _ended(self, inner: _Container | None, end: int, length: int, text: bytes) -> _Container | None:
        """Behind a value in ``inner``."""
        if inner is None or not inner.array or inner.begin < 0:
            return inner
        if inner.differ:
            item = self._part(inner.begin, end, length, text)
            inner = _with(inner, comparable(item), item)
        return inner._replace(begin=-1)

    def _part(self, begin: int, end: int, length: int, text: bytes) -> bytes:
        """Of the text with ``text`` at ``length``."""
        if begin >= length:
            return text[begin - length : end - length]
        return bytes(self._text[begin:length]) + text[: end - length]


def _with(container: _Container, found: Any, text: bytes) -> _Container:
    """With one more item or name.

    Args:
        text: of the item.

    Raises:
        _Twice: it is there already.
    """
    if not container.differ:
        return container
    seen = container.seen
    while seen is not None:
        if seen[0] == found:
            raise _Twice
        seen = seen[2]
    return container._replace(seen=(found, text, container.seen))


def _named(container: _Container, text: bytes) -> _Container:
    """With a name, in its quotes.

    Raises:
        _Twice: it is there already.
    """
    names = container.names
    left = tuple(name for name in names if name != text) if names is not None else None
    return _with(container, _name(text), text)._replace(step=_name(text), names=left)


def _begin(reader: _Reader) -> int:
    """Where the item begins, or the name, that is being written; -1 between them."""
    inner = reader.inner
    if inner is None or inner.array:
        return -1 if inner is None else inner.begin
    return reader.begin if inner.step is None and reader.mode in (_STRING, _ESCAPE) else -1


def _open_texts(container: _Container) -> list[bytes]:
    """The strings, without the quote at their end, and numbers among an array's items; or an object's names."""
    found, seen = [], container.seen
    while seen is not None:
        text: bytes = seen[1]
        if text[:1] not in (b"[", b"{"):
            found.append(text[:-1] if text.startswith(b'"') else text)
        seen = seen[2]
    return found


def _name(text: bytes) -> str:
    try:
        return str(json.loads(text))
    except ValueError:
        return ""


def comparable(text: bytes) -> Any:
    """Equal for two JSON texts of equal values: numbers by their value as 64-bit floats, objects in any order."""
    try:
        return _comparable(json.loads(text, parse_int=float))
    except (ValueError, RecursionError):  # the engine refuses what is no JSON; what nests too deeply equals everything
        return None if text[:1] not in b"[{" else _Anything()


class _Anything:
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


def _comparable(value: Any) -> Any:
    if isinstance(value, list):
        return "array", tuple(map(_comparable, value))
    if isinstance(value, dict):
        return "object", frozenset((key, _comparable(item)) for key, item in value.items())
    return type(value).__name__, value
