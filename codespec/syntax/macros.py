"""What a parser without a preprocessor cannot read in C: macros that are no C before they are expanded, conditionals
that cut statements in two, parameters in the style of K&R. They are blanked, byte for byte, for the parser alone.

``search`` finds by trial what has to be blanked in a document: what leaves the fewest errors. A ``Blanking`` then does
it in every later version of the document.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, NamedTuple

Mode = Literal["name", "call", "arguments", "statement", "unwrapped"]
"""What is blanked: the name; the name and its arguments; its arguments; both, with a ``;`` left in their place; or all
but the list in ``name((list))``."""

MOST_BYTES = 2_500_000
"""That a search lets the parser read: some 300 ms."""
MOST_NAMES, MOST_CONDITIONS = 8, 6
"""Those tried for one step of a search."""
MOST_ERRORS = 60
"""Those that a search looks for names beside."""
FEW = 3
"""Uses of a name in small letters that may be a specifier."""
LONGEST_ARGUMENTS = 8_000
"""Bytes of the arguments of a macro."""
MOST_OPEN = 100
"""Uses of a macro whose arguments do not end: what stands behind more of them is left as it is."""
MISSING = 20
"""Bytes that an error counts for in itself."""

_WORD = re.compile(rb"\b[A-Za-z_]\w*")
_BEFORE_A_WORD = re.compile(rb"\b([A-Za-z_]\w*)(?=\s+\w)")
_SIGN = re.compile(rb"[^\n]")
_STRINGS = rb'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
_FLAT = rb"[^()\"';{}]|" + _STRINGS
_ARGUMENTS = re.compile(rb"[ \t]*\((?:%b|\((?:%b|\((?:%b)*\))*\))*\)" % (_FLAT, _FLAT, _FLAT))
_OPENS = re.compile(rb"[ \t]{0,99}\(")
_OPENS_TWICE = re.compile(rb"[ \t]{0,99}\([ \t]{0,99}\(")
_DIRECTIVE = re.compile(rb"#[ \t]*(ifdef|ifndef|if|elif|else|endif)\b((?:[^\n\\]|\\[^\n]|\\\n)*)")
_COMMENT = re.compile(rb"/\*.*?(?:\*/|\Z)|//.*", re.DOTALL)
_DEFINED = re.compile(rb"(!?) ?defined ?\(? ?(\w+) ?\)?")
# Between the head of a function and its body: whole lines of declarations.
_OLD_STYLE = re.compile(rb"\)[ \t]*\n((?:[ \t]*(?:[A-Za-z_][\w \t*,;\[\]()]*;[ \t]*(?:/\*[^\n]*)?)?\n){1,64})\{")
_GOTO = re.compile(rb"\bgoto(?=[ \t]*\*)")
_ADDRESS = re.compile(rb"\bgoto[ \t]*\*|[={,(][ \t\n]*&&[ \t]*[A-Za-z_]")
_FIRST = re.compile(rb"^[ \t]*#[ \t]*(?:include|define)\b", re.MULTILINE)
_DEFINITION = re.compile(rb"#[ \t]*define[ \t]+(\w+)")
_MACRO = re.compile(rb"(?=\w+\Z)(?:_\w+|[A-Z][A-Z0-9_]+|\w*_[A-Z]\w*|[A-Z]+_\w+)")
_KEYWORDS = frozenset(
    b"auto break case char const continue default defined do double else enum extern float for goto if inline int long "
    b"NULL register return short signed sizeof static struct switch typedef union unsigned void volatile while".split()
)


class Error(NamedTuple):
    """Where a parser has one, in bytes."""

    start: int
    end: int
    missing: bool


_CALLED: tuple[Mode, ...] = ("name", "call", "arguments", "statement")
Parse = Callable[[bytes], Sequence[Error]]
"""The errors of a text, in order."""


class _Branch(NamedTuple):
    """Of a conditional.

    Attributes:
        directive: where its line begins.
        start, end: of what it holds.
        condition: None for ``else``.
        wanted: what the condition must be for it.
    """

    directive: int
    start: int
    end: int
    condition: bytes | None
    wanted: bool


@dataclass(frozen=True)
class Blanking:
    """What is blanked in a document.

    Attributes:
        names: of macros.
        conditions: of the preprocessor that are taken to be true or false; nothing is left of their directives, and of
            what stands under one that is false.
        old_style: whether declarations of parameters between the head and the body of a function are blanked, too.
        addresses: whether ``goto`` is, where it goes to the address of a label: an expression is left.
    """

    names: Mapping[bytes, Mode] = field(default_factory=dict)
    conditions: Mapping[bytes, bool] = field(default_factory=dict)
    old_style: bool = False
    addresses: bool = False

    def __bool__(self) -> bool:
        return bool(self.names or self.conditions or self.old_style or self.addresses)

    def __call__(self, data: bytes, cursor: int = -1) -> bytes:
        """``data`` with as many bytes and the same lines. What ``cursor`` is in is left as it is, but for names."""
        found = bytearray(data)
        # Before that nothing has been defined.
        first = _FIRST.search(data) if self.names else None
        for name, mode in self.names.items():
            for start, end in _uses(data, name, mode, first.start() if first is not None else 0):
                _blank(found, start, end)
                if mode == "statement":
                    found[start : start + 1] = b";"
                elif mode == "unwrapped":
                    inner = data.find(b"(", data.find(b"(", start) + 1)
                    found[inner : end - 1] = data[inner : end - 1]
        if self.old_style:
            for match in _OLD_STYLE.finditer(data):
                if not match.start(1) < cursor <= match.end(1):
                    _blank(found, *match.span(1))
        if self.addresses:
            for match in _GOTO.finditer(data):
                _blank(found, *match.span())
        if self.conditions:
            for chain, end in conditionals(data):
                self._select(found, chain, end, cursor)
        return bytes(found)

    def _select(self, data: bytearray, chain: Sequence[_Branch], end: int, cursor: int) -> None:
        """Leave one branch of a conditional, the one that the cursor is in or else the one that is compiled."""
        known = [branch.condition is None or branch.condition in self.conditions for branch in chain]
        if not any(branch.condition in self.conditions for branch in chain):
            return
        chosen = next((branch for branch in chain if branch.start <= cursor <= branch.end), None)
        for branch, is_known in zip(chain, known, strict=True):
            if chosen is None:
                if not is_known:
                    return
                if branch.condition is None or self.conditions[branch.condition] == branch.wanted:
                    chosen = branch
        for branch in chain:
            _blank(data, branch.directive, branch.start if branch is chosen else branch.end)
        _blank(data, chain[-1].end, end)


def _blank(data: bytearray, start: int, end: int) -> None:
    data[start:end] = _SIGN.sub(b" ", data[start:end])


def _uses(data: bytes, name: bytes, mode: Mode, first: int) -> Iterator[tuple[int, int]]:
    """What of each use of a name behind ``first`` is blanked; directives that define it or ask for it stay."""
    done, still_open, line = first, 0, data.rfind(b"\n", 0, first) + 1
    for match in re.compile(re.escape(name) + rb"(?!\w)").finditer(data, first):
        start, end = match.span()
        if start < done:
            continue
        if mode != "name":
            opens = (_OPENS_TWICE if mode == "unwrapped" else _OPENS).match(data, end)
            closed = _ARGUMENTS.match(data, end, end + LONGEST_ARGUMENTS) if opens else None
            if closed is not None:
                end = closed.end()
            elif opens is not None:
                still_open += 1
                if still_open > MOST_OPEN:
                    return
            if closed is None and mode != "statement":
                continue
        line = data.rfind(b"\n", done, start) + 1 or line
        done = end
        if start and (data[start - 1 : start].isalnum() or data[start - 1 : start] == b"_"):
            continue
        if data[line : line + 99].lstrip()[:1] != b"#":
            yield start + (len(name) if mode == "arguments" else 0), end


def conditionals(data: bytes) -> Iterator[tuple[Sequence[_Branch], int]]:
    """The branches of each conditional of the preprocessor, and where its last line ends."""
    waiting: list[list[_Branch]] = []
    for match in _DIRECTIVE.finditer(data):
        start = data.rfind(b"\n", 0, match.start()) + 1
        if data[start : match.start()].strip():
            continue
        kind = match[1]
        if kind.startswith(b"if"):
            waiting.append([])
        elif not waiting:
            continue
        elif waiting[-1]:
            waiting[-1][-1] = waiting[-1][-1]._replace(end=start)
        if kind == b"endif":
            yield waiting.pop(), match.end()
        else:
            condition, wanted = _condition(kind, match[2])
            waiting[-1].append(_Branch(start, match.end(), match.end(), condition, wanted))


def _condition(kind: bytes, rest: bytes) -> tuple[bytes | None, bool]:
    """The condition of a branch, and what it must be."""
    if kind == b"else":
        return None, True
    text = b" ".join(_COMMENT.sub(b"", rest).split())
    defined = _DEFINED.fullmatch(text)
    if defined is not None:
        return defined[2], not defined[1]
    return text, kind != b"ifndef"


def default(data: bytes) -> Blanking:
    """What is blanked in a document without errors: the parser misreads functions in the style of K&R that return a
    pointer, without a word, and knows no addresses of labels."""
    return Blanking(old_style=_OLD_STYLE.search(data) is not None, addresses=_ADDRESS.search(data) is not None)


def search(data: bytes, parse: Parse, errors: Sequence[Error], defined: Sequence[str] = ()) -> Blanking:
    """The blanking that leaves the fewest errors in a document.

    Args:
        errors: of the document with the ``default`` blanking.
        defined: macros that a compiler of the language defines.
    """
    return _Search(data, parse, errors).run("__cplusplus" in defined)


def _cost(errors: Sequence[Error]) -> int:
    return sum(MISSING if error.missing else MISSING + error.end - error.start for error in errors)


class _Search:
    """One search: step by step, the name or condition that leaves the fewest errors."""

    def __init__(self, data: bytes, parse: Parse, errors: Sequence[Error]) -> None:
        self._data, self._parse = data, parse
        self._left = MOST_BYTES
        self._best = default(data)
        self._errors, self._cost = errors, _cost(errors)
        self._defined = frozenset(_DEFINITION.findall(data))

    @cached_property
    def _uses(self) -> Counter[bytes]:
        return Counter(_WORD.findall(self._data))

    @cached_property
    def _before_words(self) -> Counter[bytes]:
        """How often each word stands before another one."""
        return Counter(_BEFORE_A_WORD.findall(self._data))

    def run(self, cpp: bool) -> Blanking:
        general = [replace(self._best, conditions={b"__cplusplus": cpp})] if b"__cplusplus" in self._data else []
        self._step(iter(general))
        while self._errors and self._left > 0:
            before = self._cost
            if self._step(self._by_names()) and self._cost < 0.7 * before:
                continue
            if not self._step(self._by_conditions()) and self._cost == before:
                break
        return self._best

    def _step(self, candidates: Iterator[Blanking]) -> bool:
        """Take the best of ``candidates``, if it is better than what was found so far."""
        found, cost, before = self._errors, self._cost, self._cost
        best = self._best
        for candidate in candidates:
            if self._left <= 0 or cost < before // 2:
                break
            self._left -= len(self._data)
            errors = self._parse(candidate(self._data))
            if _cost(errors) < cost:
                found, cost, best = errors, _cost(errors), candidate
        self._errors, self._cost, self._best = found, cost, best
        return cost < before

    def _by_names(self) -> Iterator[Blanking]:
        for name in self._names()[:MOST_NAMES]:
            for mode in self._modes(name):
                yield replace(self._best, names={**self._best.names, name: mode})

    def _names(self) -> Sequence[bytes]:
        """Those beside errors that may be macros, the most frequent first."""
        counts: dict[bytes, int] = {}
        text = self._best(self._data)
        for error in self._errors[:MOST_ERRORS]:
            start = text.rfind(b"\n", 0, max(0, text.rfind(b"\n", 0, error.start))) + 1
            end = min(error.end, error.start + 200)
            end = text.find(b"\n", end) if b"\n" in text[end:] else len(text)
            lines = (line for line in text[start:end].split(b"\n") if not line.lstrip().startswith(b"#"))
            for name in {name for line in lines for name in _WORD.findall(line)} - _KEYWORDS:
                counts[name] = counts.get(name, 0) + 1
        likely = {name: count for name, count in counts.items() if self._may_be_a_macro(name)}
        return sorted(likely, key=lambda name: (-likely[name], name))

    def _may_be_a_macro(self, name: bytes) -> bool:
        """Whether a name looks like one, is defined as one, or stands before other words wherever it stands."""
        if name in self._best.names:
            return False
        if name in self._defined or _MACRO.fullmatch(name):
            return True
        return self._uses[name] >= FEW and self._before_words[name] >= 0.9 * self._uses[name]

    def _modes(self, name: bytes) -> Sequence[Mode]:
        called = re.search(rb"\b%b[ \t]*\(" % name, self._data)
        if not (name in self._defined or _MACRO.fullmatch(name)):
            return ("name",)
        if not called:
            return "name", "statement"
        wrapped = re.search(rb"\b%b[ \t]*\([ \t]*\(" % name, self._data)
        return ("unwrapped", *_CALLED) if wrapped else _CALLED

    def _by_conditions(self) -> Iterator[Blanking]:
        """Those of the conditionals around or beside the errors, what blanks the least first."""
        near: dict[tuple[bytes, bool], int] = {}
        for chain, end in conditionals(self._data):
            if not any(error.start <= end and error.end >= chain[0].directive for error in self._errors[:MOST_ERRORS]):
                continue
            for branch in chain:
                condition = branch.condition
                if condition is None or condition in self._best.conditions:
                    continue
                size = branch.end - branch.start
                for value, blanked in ((not branch.wanted, size), (branch.wanted, end - chain[0].start - size)):
                    near[condition, value] = near.get((condition, value), 0) + blanked
        order = sorted(near, key=lambda each: near[each])
        # All at once: statements that are put together line by line need them all.
        yield replace(self._best, conditions={**dict(reversed(order)), **self._best.conditions})
        for condition, value in order[: 2 * MOST_CONDITIONS]:
            yield replace(self._best, conditions={**self._best.conditions, condition: value})
