"""GBNF text to rules, as llama.cpp's own parser reads it, with a position and a remedy in every error."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from lark import Lark, Token
from lark.exceptions import UnexpectedCharacters, UnexpectedToken, VisitError
from lark.visitors import Transformer_NonRecursive

from codespec.grammar.errors import GrammarError, did_you_mean
from codespec.grammar.rules import (
    EMPTY,
    CharClass,
    Choice,
    Literal,
    Node,
    Repeat,
    Rule,
    RuleRef,
    Rules,
    Sequence,
    TokenRef,
    references,
)

MAX_SOURCE = 256 * 1024
"""Characters of one grammar."""
MAX_RULES = 2000
"""Rules of one grammar; engines recurse along chains of rules."""
MAX_NESTING = 64
"""Parentheses within parentheses and repetitions of repetitions, together."""
MAX_REPETITIONS = 2000
"""llama.cpp's bound: a larger minimum is an error, a larger maximum is no maximum."""

_HEX_DIGITS = {"x": 2, "u": 4, "U": 8}
_ESCAPES = {"t": 9, "r": 13, "n": 10, "\\": 92, '"': 34, "[": 91, "]": 93, "-": 45}
_HEX = re.compile(r"[0-9a-fA-F]+")
_RANGE = re.compile(r"\{\s*(\d+)\s*(?:(,)\s*(\d*)\s*)?\}", re.ASCII)
_TOKEN_ID = re.compile(r"<\[(\d{1,9})\]>", re.ASCII)


def parse(text: str, name: str = "grammar", strict: bool = False) -> Rules:
    """The rules of a GBNF ``text``; ``name`` stands in messages.

    ``strict`` refuses what llama.cpp documents and its code refuses: ``_`` in the name of a rule.
    Of several rules with one name the last wins. A rule may refer to itself in any position.

    Raises:
        GrammarError: the text is no grammar, refers to a rule that is not there, or is too large.
    """
    source = _Source(text, name)
    if len(text) > MAX_SOURCE:
        raise GrammarError(name, f"the grammar has {len(text)} characters, at most {MAX_SOURCE} fit", "split it")
    try:
        tree = _parser().parse(text)
    except UnexpectedCharacters as error:
        source.fail_at_character(error.pos_in_stream or 0)
    except UnexpectedToken as error:
        source.fail_at_token(error.token, error.accepts or error.expected)
    except _TooDeep as error:
        source.fail(error.offset, f"more than {MAX_NESTING} levels of nesting", "move inner groups to rules")
    try:
        found: list[Rule] = _Builder(source, strict).transform(tree)
    except VisitError as error:
        raise error.orig_exc from None
    rules = {rule.name: rule for rule in found}
    _check_rules(rules, source)
    return Rules(name, rules, shadowed=tuple(rule for rule in found if rules[rule.name] is not rule))


def unescape(text: str, offset: int, source: _Source) -> Iterator[tuple[int, bool]]:
    """Code points of the inside of a literal or class, each with whether it was written as an escape."""
    at = 0
    while at < len(text):
        if text[at] != "\\":
            yield ord(text[at]), False
            at += 1
            continue
        kind = text[at + 1]
        if kind in _ESCAPES:
            yield _ESCAPES[kind], True
            at += 2
        elif kind in _HEX_DIGITS:
            digits = text[at + 2 : at + 2 + _HEX_DIGITS[kind]]
            if not (len(digits) == _HEX_DIGITS[kind] and _HEX.fullmatch(digits)):
                source.fail(
                    offset + at, f"bad escape '\\{kind}{digits}'", f"'\\{kind}' takes {_HEX_DIGITS[kind]} hex digits"
                )
            yield int(digits, 16), True
            at += 2 + len(digits)
        else:
            source.fail(
                offset + at,
                f"unknown escape '\\{kind}'",
                r"""the escapes are \x41 \u0041 \U00000041 \t \r \n \\ \" \[ \] \-""",
            )


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
                if len(inner) == 1 and previous not in ("_NL", "_ASSIGN", "_BAR"):
                    pending = pending or token
                continue
            if pending is not None:
                yield pending
                pending, previous = None, "_NL"
            if token.type == "_OPEN":
                inner.append(0)
                item = 0
            elif token.type == "_CLOSE" and len(inner) > 1:
                item = inner.pop() + 1
            else:
                item = item + 1 if token.type == "REPEAT" else 0
            inner[-1] = max(inner[-1], item)
            if len(inner) - 1 > MAX_NESTING or inner[-1] > MAX_NESTING:
                raise _TooDeep(token.start_pos or 0)
            previous = token.type
            yield token


@functools.cache
def _parser() -> Lark:
    text = Path(__file__).with_name("gbnf.lark").read_text(encoding="utf-8")
    return Lark(text, parser="lalr", lexer="basic", postlex=_Newlines(), maybe_placeholders=False)


class _Source:
    """The text, to turn offsets into positions and positions into errors."""

    def __init__(self, text: str, name: str) -> None:
        self.text, self.name = text, name

    def fail(self, offset: int, cause: str, remedy: str = "") -> NoReturn:
        line = self.text.count("\n", 0, offset) + 1
        column = offset - self.text.rfind("\n", 0, offset)
        raise GrammarError(self.name, cause, remedy, line, column)

    def fail_at_character(self, offset: int) -> NoReturn:
        """The lexer found nothing that starts here."""
        character = self.text[offset]
        unclosed = {
            '"': ("unterminated string", "close it with '\"'; inside it, write '\\\"'"),
            "[": ("unterminated character class", "close it with ']'; inside it, write '\\]'"),
            "{": ("unterminated repetition", "close it with '}'"),
            "<": ("unterminated token element", "close it with '>'"),
            "!": ("'!' without a token", "write !<[id]> or !<text>"),
            ":": ("':' where a rule was expected", "a rule is written: name ::= ..."),
            "=": ("'=' without '::'", "a rule is written: name ::= ..."),
            "'": ('unexpected character "\'"', "strings take double quotes"),
        }
        cause, remedy = unclosed.get(character, (f"unexpected character {character!r}", 'quote text: "..."'))
        self.fail(offset, cause, remedy)

    def fail_at_token(self, token: Token, expected: set[str]) -> NoReturn:
        """The parser could not go on with ``token``."""
        kind, offset = token.type, token.start_pos
        if kind == "$END" or offset is None:
            end = len(self.text.rstrip())
            missing = "')'" if "_CLOSE" in expected else "'::='"
            self.fail(end, f"unexpected end of the grammar: {missing} is missing", "complete the last rule")
        if expected == {"_ASSIGN"} or "_ASSIGN" in expected:
            self.fail(offset, f"'::=' expected, found {_shown(token)}", "a rule is written on one line: name ::= ...")
        if kind == "REPEAT":
            self.fail(
                offset, f"nothing to repeat before {_shown(token)}", "write it after a literal, class, name or group"
            )
        if kind == "_ASSIGN":
            self.fail(
                offset, "unexpected '::='", "start each rule on a new line, and close every '(' of the one before"
            )
        if kind == "_BAR":
            self.fail(offset, "a line starts with '|'", "end the line before with '|', or put the alternatives in ( )")
        if kind == "_CLOSE":
            self.fail(offset, "unexpected ')'", "remove it, or add the '(' that it closes")
        self.fail(offset, f"unexpected {_shown(token)}", "a rule is written: name ::= ...")


def _shown(token: Token) -> str:
    return "the end of the line" if token.type == "_NL" else repr(str(token)[:20])


class _Builder(Transformer_NonRecursive[Token, Any]):
    """Parse tree to rules, from the leaves up."""

    def __init__(self, source: _Source, strict: bool) -> None:
        super().__init__()
        self._source, self._strict, self._count = source, strict, 0

    def start(self, rules: list[Rule]) -> list[Rule]:
        return rules

    def rule(self, children: list[Any]) -> Rule:
        name, body = children
        self._count += 1
        if self._count > MAX_RULES:
            self._source.fail(name.start_pos, f"more than {MAX_RULES} rules", "merge or split the grammar")
        self._check_name(name)
        return Rule(str(name), body, name.line, name.column)

    def choice(self, options: list[Node]) -> Node:
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def sequence(self, items: list[Node]) -> Node:
        if not items:
            return EMPTY
        return items[0] if len(items) == 1 else Sequence(tuple(items))

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
        return CharClass(tuple(ranges), negated)

    def any_char(self, _: list[Token]) -> Node:
        return CharClass((), negated=True)

    def rule_ref(self, children: list[Token]) -> Node:
        name = children[0]
        self._check_name(name)
        return RuleRef(str(name), name.line or 0, name.column or 0)

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
        return minimum, None if maximum is not None and maximum > MAX_REPETITIONS else maximum

    def _check_name(self, name: Token) -> None:
        if self._strict and "_" in name:
            self._source.fail(
                name.start_pos or 0, f"'_' in the name {str(name)!r}", "llama.cpp refuses it: use '-' instead"
            )


def _check_rules(rules: dict[str, Rule], source: _Source) -> None:
    if "root" not in rules:
        raise GrammarError(source.name, "there is no rule 'root'", did_you_mean("root", rules) or "add: root ::= ...")
    for rule in rules.values():
        for ref in references(rule.body):
            if ref.name not in rules:
                raise GrammarError(
                    source.name,
                    f"rule {ref.name!r} is not defined",
                    did_you_mean(ref.name, rules) or f"add: {ref.name} ::= ...",
                    ref.line,
                    ref.column,
                )
