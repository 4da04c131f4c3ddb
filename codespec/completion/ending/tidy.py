"""Trims a generated text before it is shown: indentation, overlap with the suffix, duplicate lines, open brackets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property

from codespec.completion.ending.brackets import CLOSERS, OPENERS, closer_of, scan
from codespec.completion.ending.indent import Style, indented, style_of
from codespec.completion.ending.repetition import within
from codespec.completion.ending.stop_rule import READ, SHORT, StopRule, indentation
from codespec.languages import PLAIN, Language

# An overlap with what follows the cursor is trimmed as a repetition from this length on; shorter ones
# are so often chance that only brackets and quotes that are one too many go.
SURE_OVERLAP = 4
NEAR_LINES, NEAR = 3, 0.05
"""So many lines that differ from those after the cursor in so small a part are duplicates (Tabby's rule)."""
REPEATED_LINES, LONG_LINE = 2, 12
"""So many lines above, the farther ones from this length on, are not written again."""

_WORD = re.compile(r"\w+")
LARGEST = 40_000
"""Characters before and after the cursor that are searched for brackets."""


class Tidy:
    """Turns a generated text into the text to insert at the cursor.

    Args:
        rule: the stop rule at the cursor.
        lead: the end of ``prefix`` that the text repeats; results begin with it, too.

    Attributes:
        lead: the same.
        comment: what begins a comment of one line in the language; empty where nothing does.
    """

    def __init__(
        self, prefix: str, suffix: str, language: Language = PLAIN, rule: StopRule | None = None, lead: str = ""
    ) -> None:
        self._prefix, self._suffix, self._language = prefix, suffix, language
        self.lead, self.comment = lead, language.line_comment
        self._line = prefix.rsplit("\n", 1)[-1]
        self._rest = suffix.split("\n", 1)[0].strip()
        self._following = [line.strip() for line in suffix[:READ].split("\n")[1:] if line.strip()][:NEAR_LINES]
        self._code = rule is None or not rule.closer
        self._before_a_line = rule is not None and rule.before_a_line
        self._begins_in_code = self._code and (rule is None or rule.extent != "line" or rule.code)
        # Of a long text or comment that nothing closes, so that its completion does.
        self._closer = rule.closer if rule is not None and rule.extent == "text" and not rule.closed else ""
        above = [line.strip() for line in prefix[-READ:].split("\n")[:-1] if line.strip()] if self._code else []
        self._above = above[-REPEATED_LINES:] if not language.data else []
        self._word = _word(suffix) if _word(prefix[-1:]) else ""  # the rest of the one that the cursor is within
        self._balanced = self._code and rule is not None and balanced(prefix, suffix, language)

    @cached_property
    def _style(self) -> Style | None:
        return style_of(self._prefix, self._suffix)

    def variants(self, text: str) -> Sequence[str]:
        """The texts that may stand for ``text``, the preferred first; none if the document has all of it already."""
        if not text.startswith(self.lead) or len(text) == len(self.lead):
            return (text,)
        body = text[len(self.lead) :]
        if self.repeats_word(text + "\n") or self.repeats_line(text):
            return ()
        if self._code:
            body = self._without_trailing_blanks(indented(body, self._prefix, self._style, self._language))
        kept = (self._without_duplicates(each) for each in dict.fromkeys(self._trimmed(body)))
        closed = (self._with_closer(each) for each in kept if each is not None)
        placed = (each for body in closed for each in self._before_the_line(body))
        return [self.lead + each for each in placed if not self._swallows(each) and not self._closes_too_deep(each)]

    def _before_the_line(self, body: str) -> Sequence[str]:
        """``body``; before a whole line, also with a line break that keeps it apart from that line."""
        if not self._before_a_line or not body.strip():
            return (body,)
        line = body.rstrip("\n") + "\n" + self._line
        return (line,) if body.endswith("\n") else (body, line)

    def _swallows(self, body: str) -> bool:
        """Whether the text after the cursor becomes part of the last word, comment, string or line of ``body``."""
        before, after = (self._prefix[-1:] + body)[-1:], self._suffix[:1]
        if _is_word(before + after) and not _is_word(self._prefix[-1:] + after):
            return True
        if not self._begins_in_code:
            return False
        if not self._rest and body.rstrip(" \t").endswith("\\"):
            return True
        opened = scan(body, self._language).broken_off
        return bool(opened) and (bool(self._rest) or closer_of(opened, self._language) != "\n")

    def _closes_too_deep(self, body: str) -> bool:
        """Whether ``body`` begins with the end of a block, and the cursor stands deeper than the line that opens it."""
        if body[:1] != "}" or self._line.strip() or not self._begins_in_code or not self._language.quotes:
            return False
        before = self._prefix[-LARGEST:]
        opened = next(reversed(scan(before, self._language).open), -1)
        return opened >= 0 and indentation(self._line) > indentation(before[before.rfind("\n", 0, opened) + 1 :])

    def _with_closer(self, body: str) -> str:
        if not self._closer or self._closer in body or not body.strip():
            return body
        return body.rstrip() + (self._closer if self._closer in self._language.long_quotes else f" {self._closer}")

    def may_fit(self, text: str) -> bool:
        """Whether brackets may match once ``text`` is inserted: a cheap test before a parser is asked."""
        if not self._balanced:
            return True
        read = scan(text.removeprefix(self.lead), self._language)
        return not read.open and not read.unmatched

    def closed_by(self, text: str) -> int:
        """How many brackets that other text opens ``text`` closes."""
        return len(scan(text.removeprefix(self.lead), self._language).unmatched) if self._begins_in_code else 0

    def new(self, text: str) -> int:
        """The length of ``text`` up to where it begins to repeat the text around the cursor."""
        if self.repeats_word(text + "\n") or self.repeats_line(text):
            return len(self.lead)
        if not text.startswith(self.lead) or not self._following or not _is_telling(self._following[0]):
            return len(text)
        after, place = self._following[0], len(self.lead)
        lines = text[place:].split("\n")
        for index, line in enumerate(lines):
            said = {line.strip(), (self._line + line).strip() if index == 0 else ""} - {""}
            last = index == len(lines) - 1 and len(line.strip()) > SHORT
            if after in said or any(near(each, [after]) or (last and after.startswith(each)) for each in said):
                return len(text[:place].rstrip("\n")) if index else len(self.lead)
            place += len(line) + 1
        return len(text)

    def repeats_word(self, text: str) -> bool:
        """Whether ``text`` begins with the rest of the word that the cursor is within, and with more than that."""
        body = text.removeprefix(self.lead)
        return self._word != "" and len(body) > len(self._word) and _word(body) == self._word

    def repeats_line(self, text: str) -> bool:
        """Whether the first line of ``text`` is the one above it, or a long one that stands right above that: of lines
        that people write one in 2,000 and one in 700 are, of those that small models do some 30 and 8 times as many."""
        if not self._above or not text.startswith(self.lead):
            return False
        first, _, rest = text[len(self.lead) :].partition("\n")
        line, above = (self._line + first).strip(), self._above
        if not first.strip():
            above = [*above, line][-REPEATED_LINES:] if line else above
            line = next((each.strip() for each in rest.split("\n") if each.strip()), "")
        elif self._rest and not rest:
            line += self._rest
        if not _is_telling(line):
            return False
        return line == above[-1] or (len(line) > LONG_LINE and line in above)

    def closing(self, text: str) -> str:
        """The signs that close the brackets and quotes that ``text`` and the cursor's line before it leave open; on a
        line of their own where what they close ended a line."""
        if not self._code or not text.startswith(self.lead):
            return ""
        line = self._line if self._begins_in_code and not self._rest else ""
        body = line + text[len(self.lead) :]
        read = scan(body, self._language)
        closing = (closer_of(read.broken_off, self._language) if read.broken_off else "").strip()
        for at in reversed(read.open):
            opens_a_block = body[at + 1 :].lstrip(" \t").startswith("\n")
            begin = body.rfind("\n", 0, at) + 1
            closing += f"\n{_blanks(body[begin:])}" if opens_a_block else ""
            closing += OPENERS[body[at]]
        return closing

    def quote(self, text: str) -> str:
        """The quote that closes the string of one line that ``text`` breaks off in; empty where it does not."""
        if not self._begins_in_code or not text.startswith(self.lead):
            return ""
        opened = scan(text[len(self.lead) :], self._language).broken_off
        closer = closer_of(opened, self._language) if opened else ""
        return closer if closer in self._language.quotes else ""

    def first(self, text: str) -> str:
        """The preferred variant of ``text``, with the brackets closed that its last line leaves open; empty without
        one."""
        variants = self.variants(text)
        return self._closed(variants[0]) if variants else ""

    def _without_trailing_blanks(self, body: str) -> str:
        if not any(quote in body for quote in self._language.long_quotes):
            *lines, last = body.split("\n")
            body = "\n".join([*(line.rstrip(" \t") for line in lines), last])
        return body if self._rest else body.rstrip()

    def _trimmed(self, body: str) -> Iterator[str]:
        trimmed = trim_suffix_overlap(body, self._suffix)
        yield trimmed
        if self._code and self._rest and trimmed == body:
            # The cursor's line goes on with a bracket that the text closes as well before it says more.
            at = next(iter(scan(body, self._language).unmatched), -1)
            if at >= 0 and self._rest.startswith(body[at]):
                yield body[:at]
        yield body

    def _without_duplicates(self, body: str) -> str | None:
        """``body`` without last lines that the document has after the cursor; None if it begins with them."""
        after, rest = (line if _is_telling(line) else None for line in (*(self._following[:1] or [""]), self._rest))
        while body.strip():
            lines = (self._line + body).split("\n")
            said = [line.strip() for line in lines if line.strip()]
            own = [line.strip() for line in body.split("\n") if line.strip()]
            if after in (said[0], own[0], (lines[-1] + self._rest).strip()) or rest == own[0]:
                return None
            if self._code and len(said) <= NEAR_LINES and near("\n".join(said), self._following[: len(said)]):
                return None
            again = 1 if own[-1] in (after, rest) else self._nearly_again(own)
            if not again:
                break
            kept = body.split("\n")
            while again:
                again -= bool(kept.pop().strip())
            body = "\n".join(kept).rstrip()
        return body

    def _nearly_again(self, own: Sequence[str]) -> int:
        """How many of the last lines are nearly those after the cursor."""
        counts = range(min(NEAR_LINES, len(own)), 0, -1)
        return next((n for n in counts if near("\n".join(own[-n:]), self._following[:n])), 0)

    def _closed(self, text: str) -> str:
        """Without a gate nothing else looks at brackets: those that the last line leaves open are closed."""
        open_ = scan(text, self._language).open if self._code else ()
        if not open_ or "\n" in text[open_[0] :] or self._rest[:1] in CLOSERS or text[-1:] in OPENERS:
            return text
        return text + "".join(OPENERS[text[at]] for at in reversed(open_))


def _blanks(line: str) -> str:
    """The indentation of a line, as it is."""
    return line[: len(line) - len(line.lstrip(" \t"))]


def _is_telling(line: str) -> bool:
    """Whether a line that comes again is a repetition: ``/**`` and ``},`` begin and end many things."""
    return len(line) > SHORT and _WORD.search(line) is not None


def _word(text: str) -> str:
    """The word that ``text`` begins with; empty where it begins with none."""
    return re.split(r"\W", text, maxsplit=1)[0]


def _is_word(joined: str) -> bool:
    """Whether two characters belong to one word."""
    return re.fullmatch(r"\w\w", joined) is not None


def balanced(prefix: str, suffix: str, language: Language) -> bool:
    """Whether every bracket around the cursor has its counterpart, as far as that can be told without a parser."""
    if language.brackets != "always" or len(prefix) > LARGEST or len(suffix) > LARGEST:
        return False
    before, behind = scan(prefix, language), scan(suffix, language)
    if before.unmatched or behind.open or before.broken_off or len(before.open) != len(behind.unmatched):
        return False
    pairs = zip(reversed(before.open), behind.unmatched, strict=True)
    return all(OPENERS[prefix[opened]] == suffix[closed] for opened, closed in pairs)


def near(text: str, lines: Sequence[str]) -> bool:
    """Whether ``text`` says the same as ``lines``, but for a small part. Where a word stands in place of another
    throughout, it says something else: ``if fget is None:`` is no repetition of ``if fset is None:``."""
    other = "\n".join(lines)
    if len(text) * NEAR < 1 or not within(text, other, int(max(len(text), len(other)) * NEAR)):
        return False
    own, others = set(_WORD.findall(text)), set(_WORD.findall(other))
    return own <= others or others <= own


def trim_suffix_overlap(text: str, suffix: str) -> str:
    """``text`` without the end that the text after the cursor begins with.

    ``foo(|)`` and ``a, b)`` give ``a, b``; ``foo(|)`` and ``bar()`` stay ``bar()``.
    """
    # White space at the cursor may or may not have been generated again.
    for following in dict.fromkeys((suffix, suffix.lstrip(" \t"))):
        for size in range(min(len(text), len(following)), 0, -1):
            if following[size - 1] != text[-1]:
                continue
            overlap = following[:size]
            if text.endswith(overlap) and _is_repetition(text, overlap):
                return text[:-size]
    return text


def _is_repetition(text: str, overlap: str) -> bool:
    return len(overlap.strip()) >= SURE_OVERLAP or "\n" in overlap.rstrip() or _is_one_too_many(text, overlap)


def _is_one_too_many(text: str, overlap: str) -> bool:
    if any(c not in ")]}\"'`;,: " for c in overlap):
        return False
    if any(c in CLOSERS for c in overlap):
        return unmatched_closers(text) >= sum(c in CLOSERS for c in overlap)
    mark = overlap.strip()[:1]
    if mark in ('"', "'", "`"):
        return text.count(mark) % 2 == 1
    return mark != ""


def unmatched_closers(text: str) -> int:
    """How many closing brackets in ``text`` close nothing that it opened, wherever they stand: ``scan`` reads code."""
    open_brackets: list[str] = []
    unmatched = 0
    for character in text:
        if character in "([{":
            open_brackets.append(character)
        elif character in CLOSERS:
            if open_brackets and open_brackets[-1] == CLOSERS[character]:
                open_brackets.pop()
            else:
                unmatched += 1
    return unmatched
