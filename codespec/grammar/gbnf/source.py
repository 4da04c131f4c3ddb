"""The text of a GBNF grammar, which turns offsets into positions and errors at them into messages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NoReturn

from lark import Token

from codespec.grammar.errors import GrammarError

_HEX_DIGITS = {"x": 2, "u": 4, "U": 8}
_ESCAPES = {"t": 9, "r": 13, "n": 10, "\\": 92, '"': 34, "[": 91, "]": 93, "-": 45}
_HEX = re.compile(r"[0-9a-fA-F]+")
_UNCLOSED = {
    '"': ("unterminated string", "close it with '\"'; inside it, write '\\\"'"),
    "[": ("unterminated character class", "close it with ']'; inside it, write '\\]'"),
    "{": ("unterminated repetition", "close it with '}'"),
    "<": ("unterminated token element", "close it with '>'"),
    "!": ("'!' without a token", "write !<[id]> or !<text>"),
    ":": ("':' where a rule was expected", "a rule is written: name ::= ..."),
    "=": ("'=' without '::'", "a rule is written: name ::= ..."),
    "'": ('unexpected character "\'"', "strings take double quotes"),
    "\\": ("unexpected character '\\'", 'escapes stand in "..." and [...]; outside there is only \\b'),
}


class GbnfSource:
    """A grammar's text.

    Attributes:
        remedy: what to do about an extension where none is allowed.
    """

    def __init__(self, text: str, name: str, extensions: bool = False, strict: bool = False) -> None:
        self.text, self.name, self.extensions = text, name, extensions
        self.remedy = (
            "llama.cpp refuses it, and so does strict mode"
            if strict
            else "pass --extensions (in Python: extensions=True)"
        )

    def error(self, offset: int, cause: str, remedy: str = "") -> GrammarError:
        """An error at ``offset``."""
        line = self.text.count("\n", 0, offset) + 1
        column = offset - self.text.rfind("\n", 0, offset)
        return GrammarError(self.name, cause, remedy, line, column)

    def fail(self, offset: int, cause: str, remedy: str = "") -> NoReturn:
        """Raises an error at ``offset``."""
        raise self.error(offset, cause, remedy)

    def fail_at_character(self, offset: int) -> NoReturn:
        """Raises the error of a lexer that found nothing which starts at ``offset``."""
        character = self.text[offset]
        if self.text.startswith("\\b", offset) and not self.extensions:
            self.fail(offset, "'\\b' is an extension of GBNF", self.remedy)
        cause, remedy = _UNCLOSED.get(character, (f"unexpected character {character!r}", 'quote text: "..."'))
        self.fail(offset, cause, remedy)

    def fail_at_token(self, token: Token, expected: set[str]) -> NoReturn:
        """Raises the error of a parser that cannot go on with ``token``."""
        kind, offset = token.type, token.start_pos
        if kind == "$END" or offset is None:
            end = len(self.text.rstrip())
            missing = "')'" if "_CLOSE" in expected else "'>'" if "_GREATER" in expected else "'::='"
            self.fail(end, f"unexpected end of the grammar: {missing} is missing", "complete the last rule")
        if "_GREATER" in expected or self.text[:offset].rstrip().endswith(("<", ",")):
            self.fail(offset, f"unexpected {shown(token)} between '<' and '>'", "list names: name<first, second>")
        if "_ASSIGN" in expected:
            if kind == "TOKEN" and not self.extensions:
                self.fail(offset, "parameters of a rule are an extension of GBNF", self.remedy)
            self.fail(offset, f"'::=' expected, found {shown(token)}", "a rule is written on one line: name ::= ...")
        cause, remedy = {
            "REPEAT": (f"nothing to repeat before {shown(token)}", "write it after a literal, class, name or group"),
            "_ASSIGN": ("unexpected '::='", "start each rule on a new line, and close every '(' of the one before"),
            "_BAR": ("a line starts with '|'", "end the line before with '|', or put the alternatives in ( )"),
            "_CLOSE": ("unexpected ')'", "remove it, or add the '(' that it closes"),
            "_MINUS": ("unexpected '-'", "it stands between two items; to subtract more than one, write a - (b | c)"),
        }.get(kind, (f"unexpected {shown(token)}", "a rule is written: name ::= ..."))
        self.fail(offset, cause, remedy)


def shown(token: Token) -> str:
    """A token as it stands in messages."""
    return "the end of the line" if token.type == "_NL" else repr(str(token)[:20])


def unescape(text: str, offset: int, source: GbnfSource) -> Iterator[tuple[int, bool]]:
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
