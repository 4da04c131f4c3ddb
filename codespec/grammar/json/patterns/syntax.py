"""A parser for the regular expressions of JSON Schemas: ECMA-262's, read by characters (flag ``u``), with the
leniency of its annex B and named groups as Python writes them.

Which group matched does not matter, so groups leave no trace, and a lazy quantifier is a greedy one.
"""

from __future__ import annotations

import functools
import re

from codespec.grammar.json.patterns import characters
from codespec.grammar.json.patterns.characters import ANY, CLASSES, Characters, folded, union
from codespec.grammar.json.patterns.nodes import EMPTY, Anchor, Look, Node, either, repeat, sequence
from codespec.grammar.regex import MAX_NESTING, MAX_REGEX, RegexError

_LOOK = re.compile(r"\(\?(<?)([=!])")
_GROUP = re.compile(r"\(\?(?:P?<[A-Za-z_$][\w$]*>|([a-zA-Z]*)(?:-([a-zA-Z]+))?([:)]))|\((?!\?)")
_QUANTIFIER = re.compile(r"(?:[*+?]|\{(\d+)(?:(,)(\d*))?\})")
_PYTHONS_QUANTIFIER = re.compile(r"\{,\d*\}")
_CODE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|[ux]\{([0-9A-Fa-f]{1,6})\})")
_PROPERTY = re.compile(r"\\([pP])\{([A-Za-z_]+(?:=[A-Za-z_0-9]+)?)\}")
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v", "0": "\0"}
_MAX_COUNT = 100_000


@functools.lru_cache(512)
def parse(pattern: str) -> Node:
    """The syntax tree of a pattern.

    Raises:
        RegexError: it is no regular expression, or has something that is not supported, such as a back-reference.
    """
    if len(pattern) > MAX_REGEX:
        raise RegexError(0, "the regular expression is too long", f"at most {MAX_REGEX} characters are allowed")
    return _Parser(pattern).whole()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text, self.at, self.depth = text, 0, 0
        self.any_case = self.dot_all = False

    def whole(self) -> Node:
        node = self.alternatives()
        if self.at < len(self.text):
            raise RegexError(self.at, "')' without '('", "write \\) for the character")
        return node

    def alternatives(self) -> Node:
        flags = self.any_case, self.dot_all
        options = [self.sequence()]
        while self.text.startswith("|", self.at):
            self.at += 1
            options.append(self.sequence())
        self.any_case, self.dot_all = flags
        return either(*options)

    def sequence(self) -> Node:
        parts: list[Node] = []
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            start = self.at
            node = self.atom()
            if node is not None:
                parts.append(self.quantified(node, start))
        return sequence(*parts)

    def atom(self) -> Node | None:
        char = self.text[self.at]
        if char == "(":
            return self.group()
        if char == "[":
            return self.cased(self.class_())
        if char == "\\":
            return self.escape_outside()
        if char in "*+?" or (char == "{" and _QUANTIFIER.match(self.text, self.at)):
            raise RegexError(self.at, f"nothing before {char} to repeat", f"write \\{char} for the character")
        if char == "{" and _PYTHONS_QUANTIFIER.match(self.text, self.at):
            remedy = "write {0,n}, or \\{ for the character"
            raise RegexError(self.at, "'{,' is a repetition in Python, and text in JavaScript", remedy)
        self.at += 1
        if char in "^$":
            return Anchor(char == "^")
        if char == ".":
            return ANY if self.dot_all else Characters(characters.LINE_ENDS, (), True)
        return self.cased(Characters(characters.of_text(char)))

    def cased(self, found: Characters) -> Characters:
        if not self.any_case:
            return found
        if found.named:
            raise RegexError(self.at, "\\p under flag i is not supported", "write the characters out")
        return found._replace(ranges=folded(found.ranges))

    def quantified(self, node: Node, start: int) -> Node:
        match = _QUANTIFIER.match(self.text, self.at)
        if match is None:
            if _PYTHONS_QUANTIFIER.match(self.text, self.at):
                return self.atom() or EMPTY  # complains
            return node
        if isinstance(node, Anchor) or (isinstance(node, Look) and not node.ahead):
            raise RegexError(start, f"{match[0]} repeats an assertion", "leave it out")
        self.at = match.end()
        low, high = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(match[0], (0, None))
        if match[1]:
            low = int(match[1])
            high = int(match[3]) if match[3] else None if match[2] else low
            if high is not None and low > high:
                raise RegexError(match.start(), f"{match[0]} ends before it begins", "")
            if max(low, high or 0) > _MAX_COUNT:
                raise RegexError(match.start(), f"{match[0]} is too many", f"at most {_MAX_COUNT}")
        if self.text.startswith("+", self.at):
            raise RegexError(self.at, f"possessive {match[0]}+ is not supported", f"write {match[0]}")
        self.at += self.text.startswith("?", self.at)
        if _QUANTIFIER.match(self.text, self.at):
            raise RegexError(self.at, "nothing to repeat", f"write \\{self.text[self.at]} for the character")
        return repeat(node, low, high)

    def group(self) -> Node | None:
        start = self.at
        if self.text.startswith(("(?P=", "(?P>"), start):
            raise RegexError(start, "a back-reference is not supported", "write the group again")
        if self.text.startswith("(?#", start):
            end = self.text.find(")", start)
            if end < 0:
                raise RegexError(start, "the group is not closed", "add )")
            self.at = end + 1
            return None
        look, match = _LOOK.match(self.text, start), _GROUP.match(self.text, start)
        if look is None and match is None:
            raise RegexError(start, f"unknown group {self.text[start : start + 4]!r}", "use (…) or (?:…)")
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise RegexError(start, "groups are nested too deeply", f"at most {MAX_NESTING} levels are allowed")
        flags = self.any_case, self.dot_all
        self.at = (look or match or re.match("", "")).end()  # type: ignore[union-attr]
        if match is not None and look is None and match[3]:
            self.set_flags(match)
            if match[3] == ")":  # until the end of what it stands in
                self.depth -= 1
                return None
        node = self.alternatives()
        self.any_case, self.dot_all = flags
        self.depth -= 1
        if not self.text.startswith(")", self.at):
            raise RegexError(start, "the group is not closed", "add )")
        self.at += 1
        return node if look is None else Look(node, not look[1], look[2] == "!")

    def set_flags(self, match: re.Match[str]) -> None:
        for flag in (match[1] or "") + (match[2] or ""):
            if flag not in "isu":
                raise RegexError(match.start(), f"flag {flag!r} is not supported", "write the expression out")
        for flags, value in ((match[1] or "", True), (match[2] or "", False)):
            self.any_case = value if "i" in flags else self.any_case
            self.dot_all = value if "s" in flags else self.dot_all

    def escape_outside(self) -> Node:
        following = self.text[self.at + 1 : self.at + 2]
        if following in ("b", "B"):
            remedy = "leave it out: write what may stand beside"
            raise RegexError(self.at, f"word boundary \\{following} is not supported", remedy)
        if following == "k" or (following.isdigit() and following != "0"):
            cause = "a back-reference" if following == "k" else f"back-reference \\{following}"
            raise RegexError(self.at, f"{cause} is not supported", "write the group again")
        return self.cased(_characters(self.escape()))

    def escape(self) -> Characters | int:
        """The characters of the escape at the cursor, or the code of one; the cursor moves behind it."""
        start = self.at
        if start + 1 >= len(self.text):
            raise RegexError(start, "the expression ends in \\", "write \\\\ for the character")
        char = self.text[start + 1]
        code = _CODE.match(self.text, start)
        if code:
            return self.code_point(code)
        named = _PROPERTY.match(self.text, start)
        if named:
            self.at = named.end()
            return Characters((), (named[0],))
        self.at += 2
        if char.lower() in CLASSES and char.isascii():
            return Characters(CLASSES[char.lower()], (), char.isupper())
        if char == "0" and self.text[self.at : self.at + 1].isdigit():
            raise RegexError(start, "an octal escape is not supported", "write \\xHH")
        if char in _CONTROLS:
            return ord(_CONTROLS[char])
        letter = self.text[self.at : self.at + 1]
        if char == "c" and letter.isascii() and letter.isalpha():
            self.at += 1
            return ord(letter) & 31
        if char.isascii() and char.isalnum():
            raise RegexError(start, f"unknown escape \\{char}", f"write {char} for the character")
        return ord(char)

    def code_point(self, code: re.Match[str]) -> int:
        value = int(next(group for group in code.groups() if group), 16)
        self.at = code.end()
        low = _CODE.match(self.text, self.at)
        if 0xD800 <= value < 0xDC00 and code[2] and low and low[2] and 0xDC00 <= int(low[2], 16) < 0xE000:
            self.at = low.end()
            value = 0x10000 + ((value - 0xD800) << 10) + int(low[2], 16) - 0xDC00
        if value > characters.LAST:
            raise RegexError(code.start(), f"{code[0]} is no character", "give a code point")
        return value

    def class_(self) -> Characters:
        start = self.at
        self.at += 1
        negated = self.text.startswith("^", self.at)
        self.at += negated
        ranges: list[tuple[int, int]] = []
        named: list[str] = []
        while not self.text.startswith("]", self.at):
            at, first = self.at, self.member(start)
            if isinstance(first, int):
                last: Characters | int = first
                if self.text.startswith("-", self.at) and not self.text.startswith("-]", self.at):
                    self.at += 1
                    last = self.member(start)
                if not isinstance(last, int):
                    raise RegexError(at, "a range that ends in a class", "write \\- for the character")
                if last < first:
                    raise RegexError(at, "a range that ends before it begins", "")
                ranges.append((first, last))
            elif first.named:
                named += first.named
            else:
                ranges += first.plain()
        self.at += 1
        return Characters(union(ranges), tuple(dict.fromkeys(named)), negated)

    def member(self, start: int) -> Characters | int:
        """One character or class escape inside a class."""
        if self.at >= len(self.text):
            raise RegexError(start, "the class is not closed", "add ]")
        char = self.text[self.at]
        if char != "\\":
            self.at += 1
            return ord(char)
        following = self.text[self.at + 1 : self.at + 2]
        if following == "b":
            self.at += 2
            return 8
        if following.isdigit() and following != "0":
            raise RegexError(self.at, "an octal escape is not supported", "write \\xHH")
        return self.escape()


def _characters(found: Characters | int) -> Characters:
    return Characters(union([(found, found)])) if isinstance(found, int) else found
