"""Regular expressions of two dialects as the one that llguidance reads: Rust's, without look-around.

Only which texts match as a whole counts, so groups become plain ones and a lazy quantifier (``a*?``) means what the
greedy one means. What has no equal is refused with its position: look-around, back-references, word boundaries, anchors
in the middle.
"""

from __future__ import annotations

import re
from typing import Literal

Dialect = Literal["rust", "python"]

MAX_REGEX = 64 * 1024
"""Characters of a regular expression."""
MAX_NESTING = 100
"""Groups within groups; also classes within classes in Rust's syntax."""

_LOOK = {
    "(?=": "look-ahead",
    "(?!": "negative look-ahead",
    "(?<=": "look-behind",
    "(?<!": "negative look-behind",
}
_GROUP = re.compile(r"\(\?(?:P?<([^>=!][^>]*)>|(:)|([a-zA-Z]*(?:-[a-zA-Z]+)?)([:)]))|\(\?#[^)]*\)|\(")
_QUANTIFIER = re.compile(r"(?:[*+?]|\{(\d*)(?:(,)(\d*))?\})")
_HEX = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|[xu]\{([0-9A-Fa-f]{1,6})\})")
_PROPERTY = re.compile(r"\{[^}]+\}|[A-Z]")
_CONTROLS = {"n": "\\n", "r": "\\r", "t": "\\t", "f": "\\f", "v": "\\x0B", "0": "\\x00"}
_FLAGS = {"rust": "imsRUux", "python": "aimsux"}
_REMEDY = {
    "look-ahead": "write what may come as classes and alternatives",
    "negative look-ahead": "write what may come as classes and alternatives, or in Lark: A & ~B",
    "look-behind": "write what may stand before as part of the expression",
    "negative look-behind": "write what may stand before as part of the expression",
}


class RegexError(ValueError):
    """A regular expression that cannot be used.

    Attributes:
        position: offset of the first wrong character.
        cause, remedy: one line each.
    """

    def __init__(self, position: int, cause: str, remedy: str = "") -> None:
        super().__init__(cause)
        self.position, self.cause, self.remedy = position, cause, remedy


def translate(pattern: str, dialect: Dialect = "rust", whole: bool = True, lazy: bool = True) -> str:
    """``pattern`` in Rust's syntax.

    Args:
        pattern: without delimiters.
        dialect: ``python``: Python's ``re``.
        whole: the expression must match a whole text, so ``^`` at its start and ``$`` at its end say nothing and are
            dropped, and anchors elsewhere are errors. Otherwise anchors stay.
        lazy: lazy quantifiers are allowed, as they are where only a whole match counts.

    Raises:
        RegexError: it uses something that has no equal.
    """
    if len(pattern) > MAX_REGEX:
        raise RegexError(0, "the regular expression is too long", f"at most {MAX_REGEX} characters are allowed")
    return _Translator(pattern, dialect, whole, lazy).run()


class _Translator:
    def __init__(self, pattern: str, dialect: Dialect, whole: bool, lazy: bool) -> None:
        self.text, self.dialect, self.whole, self.lazy = pattern, dialect, whole, lazy
        self.at = 0
        self.out: list[str] = []
        self.open: list[int] = []
        self.verbose = [False]  # whether comments are skipped, of each open group
        self.repeatable = False  # whether a quantifier may follow
        self.fresh = True  # nothing but flags and anchors since the start, or since a bar outside groups

    def run(self) -> str:
        while self.at < len(self.text):
            self._step()
        if self.open:
            raise RegexError(self.open[-1], "the group is not closed", "add )")
        return "".join(self.out)

    def _step(self) -> None:
        char = self.text[self.at]
        if char == "\\":
            self._escape_outside()
        elif char == "[":
            self._emit(self._class(), 0)
        elif char == "(":
            self._group()
        elif char == ")":
            self._close()
        elif char in "^$":
            self._anchor(char, start=char == "^")
        elif char in "*+?{":
            self._quantifier()
        elif char == "|":
            self._emit("|", 1, repeatable=False)
        elif char == "#" and self.verbose[-1]:
            # Left out: the engine is given line breaks as escapes, which would not end it.
            end = self.text.find("\n", self.at) + 1 or len(self.text)
            self._emit("", end - self.at, self.repeatable)
        elif char in "}]":
            self._emit("\\" + char, 1)
        else:
            self._emit(char, 1)

    def _emit(self, text: str, consumed: int, repeatable: bool = True) -> None:
        self.out.append(text)
        self.at += consumed
        self.repeatable = repeatable
        self.fresh = text == "|" and not self.open

    def _skip(self, text: str, consumed: int) -> None:
        """Flags or a dropped anchor: nothing that an anchor could follow only in vain."""
        fresh = self.fresh
        self._emit(text, consumed, repeatable=False)
        self.fresh = fresh

    def _group(self) -> None:
        for start, name in sorted(_LOOK.items(), key=lambda pair: -len(pair[0])):
            if self.text.startswith(start, self.at):
                raise RegexError(self.at, f"{name} {start}…) is not supported", _REMEDY[name])
        if self.text.startswith("(?P=", self.at):
            raise RegexError(self.at, "a back-reference is not supported", "write the group again")
        match = _GROUP.match(self.text, self.at)
        if match is None or (match[0] == "(" and self.text.startswith("(?", self.at)):
            raise RegexError(self.at, f"unknown group {self.text[self.at : self.at + 4]!r}", "use (…) or (?:…)")
        if match[0].startswith("(?#"):
            self._emit("", len(match[0]), self.repeatable)
            return
        flags = match[3] or ""
        self._check_flags(flags)
        on, _, off = flags.partition("-")
        verbose = "x" in on or (self.verbose[-1] and "x" not in off)
        if match[4] == ")":
            self.verbose[-1] = verbose
            self._skip(match[0], len(match[0]))
            return
        self.open.append(self.at)
        self.verbose.append(verbose)
        if len(self.open) > MAX_NESTING:
            raise RegexError(self.at, "groups are nested too deeply", f"at most {MAX_NESTING} levels are allowed")
        self._emit(f"(?{flags}:", len(match[0]), repeatable=False)

    def _check_flags(self, flags: str) -> None:
        for flag in flags.replace("-", ""):
            if flag not in _FLAGS[self.dialect] or (flag == "a" and self.dialect == "python"):
                raise RegexError(self.at, f"flag {flag!r} is not supported", "write the classes out, such as [0-9]")

    def _close(self) -> None:
        if not self.open:
            raise RegexError(self.at, "')' without '('", "write \\) for the character")
        self.open.pop()
        self.verbose.pop()
        self._emit(")", 1)

    def _anchor(self, written: str, start: bool) -> None:
        """``^``, ``$`` and their spelled-out forms: at the ends of a whole match they say nothing."""
        end = self.at + len(written)
        if not self.whole:
            self._emit("^" if start else "$", len(written), repeatable=False)
        elif not self.open and (self.fresh if start else self.text[end : end + 1] in ("", "|")):
            self._skip("", len(written))
        else:
            remedy = "the expression matches as a whole anyway: leave it out, or write \\ before it for the character"
            raise RegexError(self.at, f"anchor {written} inside the expression", remedy)

    def _quantifier(self) -> None:
        match = _QUANTIFIER.match(self.text, self.at)
        literal = match is None or match[0] == "{}" or match[0] == "{,}"
        if literal or match is None:
            if self.dialect == "rust":
                raise RegexError(self.at, "'{' that begins no repetition", "write \\{ for the character")
            self._emit("\\{", 1)
            return
        if not self.repeatable:
            raise RegexError(self.at, f"nothing before {match[0]} to repeat", f"write \\{match[0]} for the character")
        written = "{0," + match[3] + "}" if match[2] == "," and not match[1] else match[0]
        after = self.text[match.end() : match.end() + 1]
        if after == "+" and self.dialect != "rust":
            raise RegexError(self.at, f"possessive {match[0]}+ is not supported", f"write {match[0]}")
        if after == "?" and not self.lazy:
            remedy = "say what the text may hold, such as [^\"]* in place of .*?, or use llguidance's rule[lazy]"
            raise RegexError(self.at, f"lazy {match[0]}? is not supported in a terminal", remedy)
        self._emit(written, len(match[0]) + (after == "?"), repeatable=self.dialect == "rust")

    def _escape_outside(self) -> None:
        following = self.text[self.at + 1 : self.at + 2]
        if following in ("b", "B"):
            remedy = "leave it out: write what may stand beside"
            raise RegexError(self.at, f"word boundary \\{following} is not supported", remedy)
        if following in ("A", "Z", "z", "G"):
            self._anchor("\\" + following, start=following in "AG")
            return
        if following.isdigit() and following != "0":
            raise RegexError(self.at, f"back-reference \\{following} is not supported", "write the group again")
        if following == "k":
            raise RegexError(self.at, "a back-reference is not supported", "write the group again")
        self._emit(self._escape(), 0)

    def _escape(self) -> str:
        """The escape at the cursor, in Rust's syntax; the cursor moves behind it."""
        start = self.at
        if start + 1 >= len(self.text):
            raise RegexError(start, "the expression ends in \\", "write \\\\ for the character")
        char = self.text[start + 1]
        code = _HEX.match(self.text, start)
        if code:
            return self._code_point(code)
        self.at += 2
        if char in "pP":
            return self._property(start)
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char == "a":
            return "\\x07"
        if char in "dDwWsS":
            return "\\" + char
        if char.isascii() and char.isalnum():
            raise RegexError(start, f"unknown escape \\{char}", f"write {char} for the character")
        return re.escape(char) if char not in "/\"'" else char

    def _code_point(self, code: re.Match[str]) -> str:
        value = int(next(group for group in code.groups() if group), 16)
        self.at = code.end()
        low = _HEX.match(self.text, self.at)
        if 0xD800 <= value < 0xDC00 and low and low[2] and 0xDC00 <= int(low[2], 16) < 0xE000:
            self.at = low.end()
            value = 0x10000 + ((value - 0xD800) << 10) + int(low[2], 16) - 0xDC00
        if value > 0x10FFFF or 0xD800 <= value < 0xE000:
            raise RegexError(code.start(), f"{code[0]} is no character", "give a code point")
        return f"\\x{{{value:X}}}"

    def _property(self, start: int) -> str:
        match = _PROPERTY.match(self.text, self.at)
        if match is None:
            raise RegexError(start, "unknown escape \\p", "write the characters out as a class")
        self.at = match.end()
        return self.text[start : self.at]

    def _class(self) -> str:
        if self.dialect == "rust":
            return self._rust_class()
        start = self.at
        self.at += 1
        negated = self.text.startswith("^", self.at)
        self.at += negated
        body: list[str] = []
        if self.text.startswith("]", self.at):
            body.append("\\]")
            self.at += 1
        while not self.text.startswith("]", self.at):
            if self.at >= len(self.text):
                raise RegexError(start, "the class is not closed", "add ]")
            item = self._member(start)
            if self.text.startswith("-", self.at) and self.text[self.at + 1 : self.at + 2] not in ("]", ""):
                if _is_set(item):
                    item += "\\-"
                    self.at += 1
                else:
                    self.at += 1
                    item = f"{item}-{self._range_end(start)}"
            body.append(item)
        self.at += 1
        return f"[{'^' if negated else ''}{''.join(body)}]"

    def _range_end(self, start: int) -> str:
        at = self.at
        item = self._member(start)
        if _is_set(item):
            raise RegexError(at, "a range that ends in a class", "write \\- for the character")
        return item

    def _member(self, start: int) -> str:
        """One character or class escape inside a class."""
        if self.at >= len(self.text):
            raise RegexError(start, "the class is not closed", "add ]")
        char = self.text[self.at]
        if char != "\\":
            self.at += 1
            # Rust gives [ && -- ~~ a meaning inside a class.
            return "\\" + char if char in "[&~-^" else char
        following = self.text[self.at + 1 : self.at + 2]
        if following == "b":
            self.at += 2
            return "\\x08"
        return self._escape()

    def _rust_class(self) -> str:
        """The class as it is; only its end must be found."""
        start, depth, first = self.at, 0, False
        while self.at < len(self.text):
            char = self.text[self.at]
            self.at += 2 if char == "\\" else 1
            if char == "[":
                depth, first = depth + 1, True
                self.at += self.text.startswith("^", self.at)
                if depth > MAX_NESTING:
                    raise RegexError(start, "the class is nested too deeply", "write it flat")
                continue
            if char == "]" and not first:
                depth -= 1
                if depth == 0:
                    return self.text[start : self.at]
            first = False
        raise RegexError(start, "the class is not closed", "add ]")


def _is_set(member: str) -> bool:
    """Whether a member of a class stands for many characters."""
    return member[:2] in ("\\d", "\\D", "\\w", "\\W", "\\s", "\\S", "\\p", "\\P")
