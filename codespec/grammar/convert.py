"""``codespec grammar convert``: converts grammars from one notation into another."""

from __future__ import annotations

import functools
import importlib
import re
import sys
import unicodedata
from typing import Any

from codespec.files import StrPath
from codespec.grammar.errors import GrammarError
from codespec.grammar.grammar import Grammar, GrammarText
from codespec.grammar.json.engine import compile_schema
from codespec.grammar.lark.expand import Expanded, expand, string_value
from codespec.grammar.lark.source import LarkDefinition, LarkToken, is_terminal
from codespec.grammar.lower.lower import lower
from codespec.protocols import CodespecError

# Python's own parser of regular expressions: public until 3.10, renamed since.
_sre: Any = importlib.import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")

_ESCAPES = {"\n": "n", "\r": "r", "\t": "t", '"': '"', "\\": "\\", "[": "[", "]": "]", "-": "-"}
_WORD = "0-9A-Za-z_\\U00000080-\\U0010FFFF"
_FLAGS = {"i": re.IGNORECASE, "s": re.DOTALL, "x": re.VERBOSE}
_CATEGORIES = {"CATEGORY_WORD": _WORD, "CATEGORY_NOT_WORD": "\\x00-/:-@\\[-^`{-\\x7F"}
_SPACE = ((9, 13), (32, 32), (0x85, 0x85), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029),
          (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000))  # fmt: skip
# What else the letters of ASCII stand for where case does not count.
_FOLDED = {"k": "\u212a", "s": "\u017f"}


def convert(name_or_path: StrPath | GrammarText, to: str, lenient: bool = False) -> tuple[str, list[str]]:
    """A grammar in the notation ``to``, and warnings of possible differences.

    Args:
        name_or_path: as for ``Grammar.load``.
        to: ``gbnf`` or ``lark``.
        lenient: of a JSON Schema, ignore what cannot be enforced.

    Raises:
        CodespecError: there is no such grammar, it cannot be read, or there is no way from its notation to that one.
        GrammarError: with the position of what has no equal.
    """
    source = GrammarText.find(name_or_path)
    if (source.notation, to) not in (("gbnf", "lark"), ("lark", "gbnf"), ("lark", "lark"), ("json", "lark")):
        ways = "GBNF to lark, Lark to gbnf, Lark to lark (expanded), JSON Schema to lark"
        raise CodespecError(f"{source.name}: no conversion from .{source.notation} to {to}; there are: {ways}")
    if source.notation == "gbnf":
        rules = Grammar.load(source, extensions=True).rules
        assert rules is not None
        return lower(rules), []
    if source.notation == "json":
        return compile_schema(source.text, source.name, lenient)[:2]
    expanded = expand(source.text, source.name, source.folder)
    return (expanded.text, expanded.warnings) if to == "lark" else lark_to_gbnf(expanded)


def lark_to_gbnf(grammar: Expanded) -> tuple[str, list[str]]:
    """An expanded Lark grammar as GBNF, and warnings of possible differences.

    Raises:
        GrammarError: it uses what GBNF does not have; with the position.
    """
    return _Writer(grammar).run()


class _Writer:
    def __init__(self, grammar: Expanded) -> None:
        self.grammar = grammar
        self.names: dict[str, str] = {}
        for name in grammar.definitions:
            self.names[name] = "root" if name == "start" else self._free_name(name)
        self.ignored = "ignored" if grammar.ignored else ""
        while self.ignored in self.names.values():
            self.ignored += "-x"

    def _free_name(self, name: str) -> str:
        made = re.sub("[^A-Za-z0-9]+", "-", name).strip("-") or "rule"
        while made in (*self.names.values(), "root"):
            made += "-x"
        return made

    def run(self) -> tuple[str, list[str]]:
        lines = []
        for definition in self.grammar.definitions.values():
            body = self._body(definition)
            if definition.name == "start" and self.ignored:
                body = f"{self.ignored} ({body})"
            lines.append(f"{self.names[definition.name]} ::= {body}")
        lines.sort(key=lambda line: not line.startswith("root ::="))
        if self.ignored:
            bodies = (self._tokens(body, terminal=True) for body in self.grammar.ignored)
            lines.append(f"{self.ignored} ::= ({' | '.join(bodies)})*")
        return "\n".join(lines) + "\n", self._warnings()

    def _warnings(self) -> list[str]:
        found = ["in Lark a terminal matches as much as it can, in GBNF also less: the language may be larger"]
        if self.ignored:
            found.append("%ignore became optional text at the start and after every terminal")
        regexes = [t.text for item in self.grammar.definitions.values() for t in item.body if t.kind == "regex"]
        if any(re.search(r"\\[wW]", text) for text in regexes):
            found.append("\\w became every letter and digit of ASCII, _, and every character beyond ASCII")
        unused = not any(item.terminal for item in self.grammar.definitions.values())
        return self.grammar.warnings + (found[1:] if unused else found)

    def _body(self, definition: LarkDefinition) -> str:
        for token in definition.attributes:
            raise token.error(f"GBNF has nothing like {token.text!r}", "leave it out")
        return self._tokens(definition.body, definition.terminal)

    def _tokens(self, tokens: list[LarkToken], terminal: bool) -> str:
        out: list[str] = []
        at = 0
        while at < len(tokens):
            token, following = tokens[at], tokens[at + 1].text if at + 1 < len(tokens) else ""
            if token.text == "[":
                out.append("(")
            elif token.text == "]":
                out.append(")?")
            elif token.text in ("(", ")", "|", "*", "+", "?"):
                out.append(token.text)
            elif (
                token.text in ("{", "~") and at and tokens[at + 1 : at + 2] and following.isdigit() | (following == ",")
            ):
                bounds, at = _bounds(tokens, at)
                out.append(bounds)
            elif following == "..":
                out.append(self._lexeme(_range(token, tokens[at + 2]), terminal))
                at += 2
            else:
                out.append(self._item(token, terminal))
            at += 1
        return _joined(out) or '""'

    def _item(self, token: LarkToken, terminal: bool) -> str:
        if token.kind == "name":
            name = token.text.lstrip("!?")
            return self._lexeme(self.names[name], terminal) if is_terminal(name) else self.names[name]
        if token.kind == "string":
            return self._lexeme(_literal(*string_value(token), token), terminal)
        if token.kind == "regex":
            return self._lexeme(_regex(token), terminal)
        if token.kind == "special":
            return token.text
        raise token.error(f"GBNF has nothing like {token.text[:20]!r}", "write it in other terms first")

    def _lexeme(self, text: str, terminal: bool) -> str:
        """Inside a rule, what is ignored may follow each terminal."""
        return f"({text} {self.ignored})" if self.ignored and not terminal else text


def _joined(parts: list[str]) -> str:
    """Quantifiers stand directly behind what they repeat."""
    text = ""
    for part in parts:
        text += part if part in ("*", "+", "?") or part.startswith("{") or part == ")?" else f" {part}"
    return text.replace("( ", "(").strip()


def _bounds(tokens: list[LarkToken], at: int) -> tuple[str, int]:
    """``~ n``, ``~ n..m`` and ``{n,m}`` in GBNF, and the index of their last token."""
    if tokens[at].text == "~":
        low = high = tokens[at + 1].text
        at += 1
        if [token.text for token in tokens[at + 1 : at + 2]] == [".."]:
            high, at = tokens[at + 2].text, at + 2
        return f"{{{low},{high}}}", at
    end = next(index for index in range(at, len(tokens)) if tokens[index].text == "}")
    inner = "".join(token.text for token in tokens[at + 1 : end])
    return "{" + ("0" + inner if inner.startswith(",") else inner) + "}", end


def _range(low: LarkToken, high: LarkToken) -> str:
    return f"[{_char(ord(string_value(low)[0]))}-{_char(ord(string_value(high)[0]))}]"


def _literal(text: str, blind: bool, token: LarkToken) -> str:
    if blind:
        return " ".join(f"[{_cases(ord(char), True, token)}]" for char in text) or '""'
    return '"' + "".join(char if char in "-[]" else _char(ord(char)) for char in text) + '"'


def _char(code: int) -> str:
    char = chr(code)
    if char in _ESCAPES:
        return "\\" + _ESCAPES[char]
    if char.isalnum() or char in " !#$%&'()*+,./:;<=>?@_`{|}~":
        return char if code < 128 else f"\\U{code:08X}"
    return f"\\x{code:02X}" if code < 256 else f"\\U{code:08X}"


def _regex(token: LarkToken) -> str:
    body, _, flags = token.text[1:].rpartition("/")
    try:
        parsed = _sre.parse(body.replace("\\/", "/"), sum(_FLAGS[flag] for flag in flags if flag in _FLAGS))
    except (re.error, RecursionError, OverflowError) as error:
        remedy = "write it in Python's syntax, without [[:…:]] and set operators"
        raise token.error(f"this regular expression cannot be converted: {error}", remedy) from None
    found = parsed.state.flags  # those at the beginning of the expression as well
    return f"({_sequence(parsed, token, bool(found & re.IGNORECASE), bool(found & re.DOTALL))})"


def _sequence(items: Any, token: LarkToken, blind: bool, dotall: bool) -> str:
    return " ".join(_part(str(kind), value, token, blind, dotall) for kind, value in items) or '""'


def _part(kind: str, value: Any, token: LarkToken, blind: bool, dotall: bool) -> str:
    if kind == "LITERAL":
        return _literal(chr(value), blind and chr(value).lower() != chr(value).upper(), token)
    if kind == "NOT_LITERAL":
        return f"[^{_cases(value, blind, token)}]"
    if kind == "ANY":
        return "." if dotall else "[^\\n]"
    if kind == "IN":
        return _class(value, token, blind)
    if kind == "BRANCH":
        return "(" + " | ".join(_sequence(option, token, blind, dotall) for option in value[1]) + ")"
    if kind == "SUBPATTERN":
        if value[1] or value[2]:
            raise token.error("flags inside the expression cannot be converted", "write them behind it, as in /a/i")
        return f"({_sequence(value[3], token, blind, dotall)})"
    if kind in ("MAX_REPEAT", "MIN_REPEAT"):
        low, high, inner = value
        bound = f"{{{low},}}" if str(high) == "MAXREPEAT" else f"{{{low},{high}}}"
        short = {"{0,}": "*", "{1,}": "+", "{0,1}": "?"}.get(bound, bound)
        return f"({_sequence(inner, token, blind, dotall)}){short}"
    if kind == "AT" and str(value) in ("AT_BEGINNING", "AT_END", "AT_BEGINNING_STRING", "AT_END_STRING"):
        return '""'
    raise token.error(f"GBNF has nothing like {kind.lower().replace('_', ' ')}", "write it with classes and groups")


def _cases(code: int, blind: bool, token: LarkToken) -> str:
    char = chr(code)
    if not blind or char.lower() == char.upper():
        return _char(code)
    if code > 127:
        remedy = "write both cases, as in [éÉ], without the flag i"
        raise token.error(f"the cases of {char!r} cannot be converted", remedy)
    return "".join(_char(ord(each)) for each in (char.lower(), char.upper(), *_FOLDED.get(char.lower(), "")))


def _class(members: Any, token: LarkToken, blind: bool) -> str:
    out, negated = "", ""
    for kind, value in members:
        if str(kind) == "NEGATE":
            negated = "^"
        elif str(kind) == "LITERAL":
            out += _cases(value, blind, token)
        elif str(kind) == "RANGE":
            out += _ranges(value[0], value[1], blind, token)
        elif str(kind) == "CATEGORY" and str(value).endswith(("DIGIT", "SPACE")):
            out += _category(str(value))
        elif str(kind) == "CATEGORY" and str(value) in _CATEGORIES:
            out += _CATEGORIES[str(value)]
        else:
            raise token.error("this class cannot be converted", "list its characters")
    return f"[{negated}{out}]"


@functools.cache
def _category(name: str) -> str:
    """The members of a class for decimal digits or white space, of all scripts."""
    ranges = _digits() if name.endswith("DIGIT") else _SPACE
    if "_NOT_" in name:
        ends = [-1, *(high for _, high in ranges)]
        starts = [*(low for low, _ in ranges), sys.maxunicode + 1]
        ranges = tuple((end + 1, start - 1) for end, start in zip(ends, starts, strict=True) if end + 1 < start)
    return "".join(_char(low) if low == high else f"{_char(low)}-{_char(high)}" for low, high in ranges)


def _digits() -> tuple[tuple[int, int], ...]:
    zeros = [code for code in range(sys.maxunicode + 1) if unicodedata.decimal(chr(code), -1) == 0]
    return tuple((zero, zero + 9) for zero in zeros)  # Unicode keeps the ten of a script together


def _ranges(low: int, high: int, blind: bool, token: LarkToken) -> str:
    text = f"{_char(low)}-{_char(high)}"
    if not blind:
        return text
    if high > 127:
        raise token.error("a range beyond ASCII cannot be converted with the flag i", "write both cases without it")
    lower, upper = (max(low, 65), min(high, 90)), (max(low, 97), min(high, 122))
    text += f"{_char(lower[0] + 32)}-{_char(lower[1] + 32)}" if lower[0] <= lower[1] else ""
    text += "".join(
        also for letter, also in _FOLDED.items() if low <= ord(letter) <= high or low <= ord(letter) - 32 <= high
    )
    return text + (f"{_char(upper[0] - 32)}-{_char(upper[1] - 32)}" if upper[0] <= upper[1] else "")


__all__ = ["GrammarError", "convert", "lark_to_gbnf"]
