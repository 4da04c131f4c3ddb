"""Whether what follows a text keeps its place by its signs alone: brackets, comments, quotes, and the lines and
conditionals of a preprocessor. What is left where a parser has errors anyway."""

from __future__ import annotations

import functools
import re
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeVar

from codespec.completion.ending.brackets import CLOSERS, OPENERS, closer_of, is_closed, tokens
from codespec.languages import Language
from codespec.patience import check

T = TypeVar("T")

LARGEST = 100_000
"""Characters before and behind the cursor that are looked through."""
_DIRECTIVE = r"(?P<directive>(?:\A|(?<=\n))[ \t]*#[ \t]*(?P<name>\w*))|"
_ENDS = {"": ";}", ";": ";}:", "}": ";}:", ":": ";}:", "{": ";},", ",": ","}
"""What ends a statement or value, and what the one behind it may end with so that the next one is whole again."""
_CONTINUES = re.compile(r"\s*(?:else\b|(?P<block>\{))")


class Open(Generic[T]):
    """What is open, the innermost last. One more, or one less, takes no longer where many are: a text of 100,000
    brackets is read in no time. Two that hold the same are equal.

    Attributes:
        last: the innermost; None where nothing is open.
        outer: the others.
        depth: how many.
    """

    __slots__ = ("_hash", "depth", "last", "outer")

    def __init__(self, last: T | None = None, outer: Open[T] | None = None) -> None:
        self.last, self.outer = last, outer
        self.depth: int = outer.depth + 1 if outer is not None else 0
        self._hash: int = hash((last, outer._hash)) if outer is not None else 0

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Open) or self._hash != other._hash or self.depth != other.depth:
            return False
        one: Open[T] | None = self
        two: Open[T] | None = other
        while one is not two:
            if one is None or two is None or one.last != two.last:
                return False
            one, two = one.outer, two.outer
        return True


_NOTHING: Open[Any] = Open()


class Conditional(NamedTuple):
    """A conditional of the preprocessor that is open.

    Attributes:
        last: whether only its end may follow.
        brackets: that were open where it began, where each of its branches begins.
    """

    last: bool
    brackets: Open[str]


class State(NamedTuple):
    """What is open at a position.

    Attributes:
        brackets: what closes the open ones.
        conditionals: of the preprocessor.
        opened: what opens the comment or text that the position is in.
        directive: the brackets to return to behind the directive that the position is in; None elsewhere.
        last: the last sign of code (``::`` is one), directives aside.
        ends: ``;`` and ``}`` so far.
        problems: what closes nothing.
    """

    brackets: Open[str] = _NOTHING
    conditionals: Open[Conditional] = _NOTHING
    opened: str = ""
    directive: Open[str] | None = None
    last: str = ""
    ends: int = 0
    problems: int = 0

    @property
    def role(self) -> tuple[str, bool]:
        """What a sign at the position is part of."""
        return self.opened, self.directive is not None

    @property
    def code(self) -> tuple[str, int]:
        """What tells whether code came, and what it ended with."""
        return self.last, self.ends

    @property
    def unfinished(self) -> int:
        """The problems, and what is open."""
        return self.problems + self.brackets.depth + self.conditionals.depth + bool(self.opened)

    def behind_directive(self, name: str) -> State:
        """The state in the line of the directive called ``name``."""
        state, top, outer = self._replace(directive=self.brackets), self.conditionals.last, self.conditionals.outer
        if name.startswith("if"):
            return state._replace(conditionals=Open(Conditional(False, self.brackets), self.conditionals))
        if not name.startswith(("el", "endif")):
            return state
        if top is None or outer is None or (top.last and name != "endif"):
            return state._replace(problems=self.problems + 1)
        if name == "endif":
            return state._replace(conditionals=outer)
        branch = Conditional(name == "else", top.brackets)
        return state._replace(conditionals=Open(branch, outer), directive=branch.brackets)

    def behind_code(self, code: str) -> State:
        """The state behind signs without brackets, comments and texts."""
        code = code.rstrip()
        if not code or self.directive is not None:
            return self
        return self._replace(last="::" if code.endswith("::") else code[-1], ends=self.ends + code.count(";"))

    def behind_bracket(self, sign: str) -> State:
        """The state behind an opening or closing bracket."""
        state = self if self.directive is not None else self._replace(last=sign, ends=self.ends + (sign == "}"))
        if sign in OPENERS:
            return state._replace(brackets=Open(OPENERS[sign], self.brackets))
        if self.brackets.outer is not None and self.brackets.last == sign:
            return state._replace(brackets=self.brackets.outer)
        return state._replace(problems=self.problems + 1)


def read(text: str, language: Language, state: State, end: int) -> State:
    """The state behind ``end`` characters of ``text``, which begins a line in ``state``.

    What comes behind these only says where the token ends that the position is in.
    """
    text, shift = state.opened + text, len(state.opened)
    end, done = end + shift, shift
    state = state._replace(opened="")
    for match in _pattern(language).finditer(text):
        check()
        token, start = match.group(), match.start()
        if start >= end:
            break
        state = state.behind_code(text[done:start])
        done = match.end()
        if match.lastgroup == "directive":
            state = state if state.directive is not None else state.behind_directive(match["name"])
        elif token == "\n":
            if state.directive is not None and text[start - 1 : start] != "\\":
                state = state._replace(brackets=state.directive, directive=None)
        elif token in OPENERS or token in CLOSERS:
            state = state.behind_bracket(token)
        elif done > end or (done == end and not is_closed(token, language)):
            return state._replace(opened=_opening(token, language))
        elif not _is_comment(token, language):
            state = state.behind_code('"')
    return state.behind_code(text[done:end])


@functools.cache
def _pattern(language: Language) -> re.Pattern[str]:
    found = tokens(language)
    return re.compile(_DIRECTIVE + found.pattern, found.flags) if language.preprocessed else found


def _is_comment(token: str, language: Language) -> bool:
    return token.startswith(tuple(filter(None, (language.line_comment, *language.block_comment[:1]))))


def _opening(token: str, language: Language) -> str:
    """The signs that a comment or text begins with."""
    if not _is_comment(token, language):
        return closer_of(token, language)
    block = language.block_comment[:1]
    return block[0] if block and token.startswith(block) else language.line_comment


class LexicalCheck:
    """Whether texts put in at one place of a document leave its signs no less in order than they are.

    Args:
        closes: whether the place is in a comment or text that the text may close.

    Attributes:
        macros: whether no parser sees all that a text may be.
    """

    def __init__(self, prefix: str, suffix: str, language: Language, closes: bool = False) -> None:
        self._language, self._closes = language, closes
        self.macros = language.preprocessed
        prefix = prefix[-LARGEST:]
        start = prefix.rfind("\n") + 1
        self._line, self._rest = prefix[start:], suffix.partition("\n")[0]
        self._suffix = suffix[:LARGEST][len(self._rest) + 1 :]
        self._above = prefix[:start]
        self._continues = _CONTINUES.match(suffix)
        self._next = suffix.lstrip()[:1]
        self._known: dict[State, int] = {}

    @property
    def sound(self) -> bool:
        """Whether nothing seems to be missing at the place or anywhere else: a parser's errors are of macros."""
        ended = bool(self._rest.strip()) or self._before[0].last in _ENDS
        return self.macros and ended and not self._problems(self._before[-1])

    def __call__(self, text: str) -> bool:
        before, after = self._before, self._states(text)
        roles = self._closes or all(one.role == other.role for one, other in zip(before, after, strict=True))
        closes_nothing = after[-1].problems > before[-1].problems
        if not roles or closes_nothing or not self._keeps_whole(after[0]):
            return False
        return self._problems(after[-1]) <= self._problems(before[-1])

    @cached_property
    def _start(self) -> State:
        return read(self._above, self._language, State(), len(self._above))

    @cached_property
    def _before(self) -> tuple[State, ...]:
        return self._states("")

    def _states(self, text: str) -> tuple[State, ...]:
        """At the cursor and behind what follows on its line, if anything does, and on the next line."""
        whole = f"{self._line}{text}{self._rest}\n"
        behind = len(whole) - 1
        ends = (behind - len(self._rest), behind, len(whole)) if self._rest.strip() else (len(whole),)
        return tuple(read(whole, self._language, self._start, end) for end in ends)

    def _problems(self, state: State) -> int:
        """Those of the document that goes on as it does in ``state``."""
        state = state._replace(last="", ends=0)
        if state not in self._known:
            self._known[state] = read(self._suffix, self._language, state, len(self._suffix)).unfinished
        return self._known[state]

    def _keeps_whole(self, after: State) -> bool:
        """Whether what follows the cursor begins a statement or value, or goes on with one, as before."""
        before = self._before[0]
        if not self.macros or any(before.role) or after.code == before.code:
            return True
        same = after.ends == before.ends
        if self._line.strip() and self._rest:
            return same or re.match(r"\w\w", self._line[-1] + self._rest[0]) is None
        if self._continues is not None and (self._continues["block"] is None or before.last not in _ENDS):
            return same
        in_brackets = before.brackets.last in (")", "]") and before.last not in _ENDS
        closed = before.last == "," and self._next in CLOSERS
        return in_brackets or closed or after.last in _ENDS.get(before.last, ";}:")
