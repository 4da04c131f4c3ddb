"""GBNF text to rules, as llama.cpp's own parser reads it, with a position and a remedy in every error.

The extensions (subtraction, word boundaries, templates, levels) are described in ``docs/grammar.md``.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lark import Lark, Token
from lark.exceptions import UnexpectedCharacters, UnexpectedToken, VisitError
from lark.visitors import Transformer_NonRecursive

from codespec.grammar.errors import GrammarError
from codespec.grammar.gbnf.definition import Note, Written
from codespec.grammar.gbnf.source import GbnfSource, unescape
from codespec.grammar.gbnf.templates import Deeper, Instance, Template
from codespec.grammar.rules import (
    EMPTY,
    MAX_CODE_POINT,
    Boundary,
    CharClass,
    Choice,
    Except,
    Literal,
    Node,
    Repeat,
    RuleRef,
    Rules,
    Sequence,
    TokenRef,
)

MAX_SOURCE = 256 * 1024
"""Characters of one grammar."""
MAX_RULES = 2000
"""Rules of one grammar as written; engines recurse along chains of rules."""
MAX_NESTING = 64
"""Parentheses within parentheses and repetitions of repetitions, together."""
MAX_REPETITIONS = 2000
"""llama.cpp's bound: a larger minimum is an error, a larger maximum is no maximum."""

MAX_NOTES = 100

_RANGE = re.compile(r"\{\s*(\d+)\s*(?:(,)\s*(?:(\d+)\s*)?)?\}", re.ASCII)
_TOKEN_ID = re.compile(r"<\[(\d{1,9})\]>", re.ASCII)
_STARTS = re.compile(r"^#[ \t]*Start symbols:[ \t]*([A-Za-z0-9, -]+)", re.MULTILINE)
_BLANKS = re.compile(r"\d{1,3}", re.ASCII)
_NO_EXTENSIONS = "".join(
    f"\n%override {terminal}: /(?!.)./" for terminal in ("_LESS.2", "_GREATER", "_COMMA", "_MINUS.2", "BOUNDARY")
)


def parse(
    text: str,
    name: str = "grammar",
    strict: bool = False,
    extensions: bool = False,
    start: str | None = None,
    levels: tuple[str, ...] | None = None,
) -> Rules:
    """The rules of a GBNF ``text``; ``name`` stands in messages.

    Of several rules with one name the last wins. A rule may refer to itself in any position.

    Args:
        strict: refuse what llama.cpp refuses: ``_`` in the name of a rule, left recursion, the extensions.
        extensions: read codespec's extensions too.
        start: the start rule; None is ``root``.
        levels: the indentations that levels stand for, the outermost first; None is 0, 4, … 36 blanks.

    Raises:
        GrammarError: the text is no grammar, refers to a rule that is not there, or is too large.
    """
    return read(text, name, strict, extensions).rules_from(start, levels)


def read(text: str, name: str = "grammar", strict: bool = False, extensions: bool = False) -> Written:
    """The rules of a GBNF ``text`` as they are written, names unchecked; arguments and errors as for ``parse``."""
    extensions = extensions and not strict
    source = GbnfSource(text, name, extensions, strict)
    if len(text) > MAX_SOURCE:
        raise GrammarError(name, f"the grammar has {len(text)} characters, at most {MAX_SOURCE} fit", "split it")
    try:
        tree = _parser(extensions).parse(text)
    except UnexpectedCharacters as error:
        source.fail_at_character(error.pos_in_stream or 0)
    except UnexpectedToken as error:
        source.fail_at_token(error.token, error.accepts or error.expected)
    except _TooDeep as error:
        source.fail(error.offset, f"more than {MAX_NESTING} levels of nesting", "move inner groups to rules")
    try:
        builder = _Builder(source, strict)
        found: list[Template] = builder.transform(tree)
    except VisitError as error:
        raise error.orig_exc from None
    rules = {rule.name: rule for rule in found}
    shadowed = tuple(rule for rule in found if rules[rule.name] is not rule)
    starts = tuple(word for line in _STARTS.findall(text) for word in re.split(r"[, ]+", line))
    return Written(name, rules, shadowed, extensions, strict, tuple(builder.notes), starts)


class _TooDeep(Exception):
    """Nesting beyond the limit; raised while the parser pulls tokens."""

    def __init__(self, offset: int) -> None:
        super().__init__(offset)
        self.offset = offset


class _Newlines:
    """Passes on only the newlines that end a rule, and bounds the nesting before anything recurses over it."""

    always_accept = ("_NL",)

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        inner = [0]  # deepest level inside each open parenthesis
        item = 0  # nesting of the last complete item
        previous = "_NL"
        pending: Token | None = None
        for token in stream:
            if token.type == "_NL":
                if len(inner) == 1 and previous not in ("_NL", "_ASSIGN", "_BAR", "_MINUS"):
                    pending = pending or token
                continue
            if pending is not None:
                yield pending
                pending, previous = None, "_NL"
            if token.type in ("_OPEN", "_LESS"):
                inner.append(0)
                item = 0
            elif token.type in ("_CLOSE", "_GREATER") and len(inner) > 1:
                item = inner.pop() + 1
            else:
                item = item + 1 if token.type == "REPEAT" else 0
            inner[-1] = max(inner[-1], item)
            if len(inner) - 1 > MAX_NESTING or inner[-1] > MAX_NESTING:
                raise _TooDeep(token.start_pos or 0)
            previous = token.type
            yield token


@functools.cache
def _parser(extensions: bool) -> Lark:
    text = Path(__file__).with_name("gbnf.lark").read_text(encoding="utf-8")
    text += "" if extensions else _NO_EXTENSIONS
    return Lark(text, parser="lalr", lexer="basic", postlex=_Newlines(), maybe_placeholders=False)


class _Builder(Transformer_NonRecursive[Token, Any]):
    """Parse tree to rules, from the leaves up."""

    def __init__(self, source: GbnfSource, strict: bool) -> None:
        super().__init__()
        self._source, self._strict, self._count = source, strict, 0
        self.notes: list[Note] = []

    def start(self, rules: list[Template]) -> list[Template]:
        return rules

    def rule(self, children: list[Any]) -> Template:
        (name, *parameters), body = children
        self._count += 1
        if self._count > MAX_RULES:
            self._source.fail(name.start_pos, f"more than {MAX_RULES} rules", "merge or split the grammar")
        for at, parameter in enumerate(parameters):
            if parameter in parameters[:at]:
                self._source.fail(parameter.start_pos, f"two parameters are called {str(parameter)!r}", "rename one")
        self._check_name(name)
        return Template(str(name), body, name.line, name.column, tuple(map(str, parameters)))

    def head(self, names: list[Token]) -> list[Token]:
        return names

    def choice(self, options: list[Node]) -> Node:
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def sequence(self, items: list[Node]) -> Node:
        if not items:
            return EMPTY
        return items[0] if len(items) == 1 else Sequence(tuple(items))

    def subtract(self, children: list[Node]) -> Node:
        return Except(*children)

    def repeat(self, children: list[Any]) -> Node:
        item, quantifier = children
        return Repeat(item, *self._bounds(quantifier))

    def string(self, children: list[Token]) -> Node:
        token = children[0]
        inside = unescape(token[1:-1], (token.start_pos or 0) + 1, self._source)
        return Literal(tuple(code for code, _ in inside))

    def char_class(self, children: list[Token]) -> Node:
        token = children[0]
        negated = token.startswith("[^")
        skip = 2 if negated else 1
        codes = list(unescape(token[skip:-1], (token.start_pos or 0) + skip, self._source))
        if not codes:
            remedy = "write . for any character" if negated else 'write "" for the empty text'
            self._note(token, f"an empty class matches the empty text; {remedy}")
            return EMPTY  # llama.cpp reads [] and [^] as nothing written at all
        ranges = []
        at = 0
        while at < len(codes):
            # A bare '-' makes a range unless it comes first or last.
            if at + 2 < len(codes) and codes[at + 1] == (45, False):
                ranges.append((codes[at][0], codes[at + 2][0]))
                at += 3
            else:
                ranges.append((codes[at][0], codes[at][0]))
                at += 1
        for low, high in ranges:
            if low > high:
                ends = (repr(chr(code)) if code <= MAX_CODE_POINT else f"U+{code:X}" for code in (low, high))
                self._note(token, f"the range {' to '.join(ends)} holds no character; swap its ends")
        return CharClass(tuple(ranges), negated)

    def any_char(self, _: list[Token]) -> Node:
        return CharClass((), negated=True)

    def boundary(self, children: list[Token]) -> Node:
        token = children[0]
        if not token.startswith("!"):
            return Boundary()
        barred = self.char_class([Token.new_borrow_pos("CLASS", token[1:], token)])
        return Boundary(barred) if isinstance(barred, CharClass) else EMPTY

    def rule_ref(self, children: list[Token]) -> Node:
        name = children[0]
        self._check_name(name)
        return RuleRef(str(name), name.line or 0, name.column or 0)

    def instance(self, children: list[Any]) -> Node:
        name, *arguments = children
        return Instance(str(name), name.line or 0, name.column or 0, tuple(arguments))

    def argument(self, children: list[Any]) -> RuleRef:
        first, *step = children
        if isinstance(first, Instance):
            return first
        name, line, column = str(first), first.line or 0, first.column or 0
        if not step:
            return RuleRef(name, line, column)
        if step[0] != "+" or (len(step) > 1 and not _BLANKS.fullmatch(step[1])):
            self._source.fail(step[0].start_pos, "bad level", f"write {name}+ for any deeper level, or {name}+2")
        return Deeper(name, line, column, int(step[1]) if len(step) > 1 else None)

    def token_ref(self, children: list[Token]) -> Node:
        token = children[0]
        negated = token.startswith("!")
        text = str(token)[negated:]
        match = _TOKEN_ID.fullmatch(text)
        if text.startswith("<[") and not match:
            self._source.fail(token.start_pos or 0, f"bad token element {text[:20]!r}", "write <[id]> with a number")
        return TokenRef(int(match[1]) if match else None, text, negated, token.line or 0, token.column or 0)

    def _bounds(self, token: Token) -> tuple[int, int | None]:
        simple: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        if token in simple:
            return simple[token]
        offset = token.start_pos or 0
        match = _RANGE.fullmatch(token)
        if not match:
            self._source.fail(offset, f"bad repetition {str(token)[:20]!r}", "write {m}, {m,} or {m,n}")
        digits, comma, last = match.groups()
        if max(len(digits), len(last or "")) > 9 or int(digits) > MAX_REPETITIONS:
            self._source.fail(
                offset, f"repetition {str(token)[:20]!r} is too large", f"at most {MAX_REPETITIONS} are allowed"
            )
        minimum = int(digits)
        maximum = minimum if comma is None else int(last) if last else None
        if maximum is not None and maximum < minimum:
            self._source.fail(offset, f"bad repetition {str(token)!r}", "the first number must not exceed the second")
        if maximum is not None and maximum > MAX_REPETITIONS:
            self._note(token, f"{str(token)!r} has no upper limit: it is more than {MAX_REPETITIONS}")
            maximum = None
        return minimum, maximum

    def _note(self, token: Token, text: str) -> None:
        if len(self.notes) < MAX_NOTES:
            self.notes.append(Note(token.line or 0, token.column or 0, text))

    def _check_name(self, name: Token) -> None:
        if self._strict and "_" in name:
            self._source.fail(
                name.start_pos or 0, f"'_' in the name {str(name)!r}", "llama.cpp refuses it: use '-' instead"
            )
