"""Where a completion ends: with its line, its block, or the comment or text that the cursor is in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from codespec.completion.ending.brackets import CLOSERS, OPENERS, Scan, closer_of, end_of, scan
from codespec.languages import PLAIN, Language
from codespec.syntax.tree import SyntaxContext

Extent = Literal["line", "block", "text"]
"""How far a completion goes; ``text`` is that between quotes or the marks of a comment."""

BLANK_LINES_END_BLOCK = 2
SHORT = 2
"""Lines of so few characters, such as ``},``, may well come twice in a row."""
READ = 20_000
"""Characters on either side of the cursor that are scanned for brackets."""

UNDECIDED = 12
"""Characters at the end of a text whose role may still depend on what follows: a quote, or a lifetime of Rust's."""
_DECIDES_NOTHING = re.compile(r"[\w .,:;=+<>!&|%^~?@$(\[{-]*")

# What may follow the cursor on its line without being in the way (Copilot's rule).
CLOSING_REST = re.compile(r"\s*(?:[)>}\]\"'`]+\s*)?(?:[:{;,]\s*)?")
_DEFINITION = re.compile(
    r"\s*(?:(?:export|default|public|private|protected|static|final|abstract|async|pub(?:\([a-z]+\))?|unsafe|const|"
    r"extern|inline|virtual|declare)\s+)*(?:def|class|function|func|fn|struct|enum|union|interface|trait|impl|mod|"
    r"namespace|type|record|object)\b"
)
_CONTROL = re.compile(
    r"\s*(?:\}\s*)?(?:if|else|for|foreach|while|do|switch|match|try|catch|finally|with|loop|return|select)\b"
)
# Lines whose indentation says nothing between braces: directives, labels, calls in a chain. Brackets are counted.
_LABEL = re.compile(r"#|.*:\s*$|\s*[.)\]}]")
_CLASS = re.compile(r"\s*class\b")


def indentation(line: str) -> int:
    """Columns of white space at the start of a line, a tab up to the next multiple of 4."""
    stripped = line.lstrip(" \t")
    return len(line[: len(line) - len(stripped)].expandtabs(4))


def next_line(suffix: str) -> str:
    """The first line after the cursor's own that is not blank."""
    return next((text.rstrip() for text in suffix[:READ].split("\n")[1:] if text.strip()), "")


def previous_line(prefix: str) -> str:
    """The last line before the cursor's own that is not blank."""
    return next((text for text in reversed(prefix[-READ:].split("\n")[:-1]) if text.strip()), "")


def opens_block(line: str, language: Language) -> bool:
    """Whether a block begins with the next line."""
    code = line.rstrip()
    ends = (*OPENERS, ":") if language.indented else tuple(OPENERS)
    return code.endswith(ends) and not scan(code, language).broken_off


def extent(prefix: str, suffix: str, language: Language) -> Extent:
    """Whether to complete the line or the block, in code: a block where one begins or where the line is still empty."""
    rest = suffix.split("\n", 1)[0].strip()
    before = prefix.rsplit("\n", 1)[-1].rstrip()
    if rest:
        # Between the two braces that the editor wrote at once.
        between = before.endswith("{") and rest.startswith("}") and CLOSING_REST.fullmatch(rest)
        return "block" if between else "line"
    return "block" if not before or opens_block(before, language) else "line"


def goes_on(prefix: str, suffix: str, language: Language) -> bool:
    """Whether the block of the cursor's line, or the one that it opens, goes on after the cursor."""
    line, following = prefix.rsplit("\n", 1)[-1], next_line(suffix)
    if not following or following.lstrip()[:1] in CLOSERS:
        return False
    above = line if line.strip() else previous_line(prefix)
    if opens_block(above, language):
        return indentation(following) > indentation(above)
    return indentation(following) >= indentation(line if line else above)


def syntax_context(prefix: str, suffix: str, language: Language, found: SyntaxContext | None) -> SyntaxContext:
    """The syntax around the cursor: as the parser found it, else by the signs before the cursor."""
    if found is not None and found.kind != "unknown":
        return found
    text = prefix if len(prefix) <= READ else prefix.rsplit("\n", 1)[-1]
    opened = scan(text, language).broken_off
    definitions = found is not None and found.definitions
    if not opened:
        line = prefix.rsplit("\n", 1)[-1]
        before = previous_line(prefix)
        outside = _CLASS.match(before) is not None or (indentation(line) == 0 and not opens_block(before, language))
        return SyntaxContext("code", definitions=definitions or outside)
    comment = (language.line_comment, *language.block_comment[:1])
    kind: Literal["comment", "string"] = "comment" if opened.startswith(tuple(filter(None, comment))) else "string"
    closer = closer_of(opened, language)
    rest = suffix if closer in language.long_quotes or closer in language.block_comment else suffix.split("\n", 1)[0]
    end = end_of(closer, rest)
    return SyntaxContext(kind, opened, rest[: end + len(closer)] if end >= 0 else "")


@dataclass(frozen=True)
class StopRule:
    """Decides, from the generated text alone, where to cut it.

    The answer for a text never changes when more is appended, so it does not depend on how many tokens
    a round of generation brings.

    Attributes:
        base_indentation: columns; a line with less ends a block.
        next_line: the first line after the cursor's that is not blank.
        line: what stands on the cursor's line before it.
        middle: whether something follows the cursor on its line.
        closer: what ends the comment or text that the cursor is in; empty in code.
        closed: whether what follows the cursor has that already; in a block, whether it has the closing bracket.
        definitions: whether a definition that is complete ends a block.
        one_line: whether a comment or text is completed no further than its line.
        code: whether a line is one of code.
        opens: whether the text begins with the line that opens the block.
        lead: characters at the end of ``line`` that texts begin with again.
    """

    extent: Extent
    base_indentation: int = 0
    next_line: str = ""
    language: Language = PLAIN
    line: str = ""
    middle: bool = False
    closer: str = ""
    closed: bool = True
    definitions: bool = False
    one_line: bool = False
    code: bool = False
    opens: bool = False
    lead: int = 0

    @classmethod
    def at(
        cls,
        prefix: str,
        suffix: str,
        language: Language,
        found: SyntaxContext | None = None,
        lead: str = "",
        unseen: bool = False,
    ) -> StopRule:
        """The rule for a cursor between ``prefix`` and ``suffix``.

        Args:
            found: the parser's answer for the position.
            lead: the end of ``prefix`` that texts begin with again.
            unseen: whether the model does not see the suffix, and so cannot know how much is missing before it: where
                the block goes on after the cursor, texts end with their first statement.
        """
        rule = cls._at(prefix, suffix, language, found)
        if unseen and rule.extent == "block" and goes_on(prefix, suffix, language):
            line = prefix.rsplit("\n", 1)[-1]
            rule = cls("line", next_line=rule.next_line, language=language, line=line, middle=rule.middle, code=True)
        return replace(rule, lead=len(lead))

    @classmethod
    def _at(cls, prefix: str, suffix: str, language: Language, found: SyntaxContext | None) -> StopRule:
        around = syntax_context(prefix, suffix, language, found)
        line = prefix.rsplit("\n", 1)[-1]
        rest = suffix.split("\n", 1)[0]
        following, middle = next_line(suffix), bool(rest.strip())
        if around.kind in ("comment", "string"):
            closer = closer_of(around.before, language)
            closed = end_of(closer, around.after) >= 0 if closer != "\n" else True
            if closer == "\n" or (not closed and closer not in (*language.long_quotes, *language.block_comment)):
                return cls("line", next_line=following, language=language, line=line, middle=middle)
            # On to its end, if nothing is there yet; else no further than the line.
            long = closer in (*language.long_quotes, *language.block_comment)
            more = around.after.removesuffix(closer).strip(" \t\n*")
            return cls("text", 0, following, language, line, middle, closer, closed, one_line=not long or bool(more))
        kind = extent(prefix, suffix, language)
        if kind == "line":
            return cls(kind, next_line=following, language=language, line=line, middle=middle, code=True)
        base = indentation(prefix.rsplit("\n", 1)[-1])
        if line.strip():
            base += 1  # what is in the block is deeper than the line that opens it
        elif language.indented and opens_block(previous_line(prefix), language):
            base = max(base, indentation(previous_line(prefix)) + 1)
        closed = len(scan(suffix[:READ], language).unmatched) >= len(scan(prefix[-READ:], language).open)
        definitions = _CLASS.match(line) is not None if line.strip() else around.definitions
        return cls(kind, base, following, language, line, middle, "", closed, definitions)

    @property
    def before_a_line(self) -> bool:
        """Whether the cursor stands before a whole line: texts that end with their line then bring a line break."""
        return self.extent != "block" and self.middle and not self.line.strip()

    @property
    def line_seems_complete(self) -> bool:
        """Whether the cursor is at the end of a line that looks complete."""
        return self.extent == "line" and not self.middle and self.line.rstrip().endswith((";", ",", "}", ")", "]"))

    def cut(self, text: str) -> int | None:
        """Length to cut ``text`` to, None where it is to go on."""
        if len(text) < self.lead:
            return None
        length = self._cut(text[self.lead :])
        return None if length is None else self.lead + length

    def _cut(self, text: str) -> int | None:
        if self.extent == "line":
            return self._end_of_line(text)
        return self._end_of_text(text) if self.extent == "text" else self._end_of_block(text)

    def may_end(self, text: str, seen: int) -> bool:
        """Whether ``cut`` may answer otherwise for ``text`` than for its first ``seen`` characters."""
        text, seen = text[self.lead :], max(0, seen - self.lead)
        start = max(0, seen - UNDECIDED)
        if not text[text.rfind("\n", 0, seen) + 1 : seen].strip():
            return True  # where a line begins
        return not _DECIDES_NOTHING.fullmatch(text, start)

    def cuts(self, text: str, after: int = -1) -> Iterator[int]:
        """Every length beyond ``after`` that ``text`` may be cut to: the one of ``cut``, then the end of each line.

        The later ones are for when the text after the cursor does not fit after the first.
        """
        first = self.cut(text)
        if first is None:
            return
        if first > after:
            yield first
        last = max(first, after)
        newline = text.find("\n", first)
        while newline >= 0:
            length = newline + 1 if self.before_a_line else len(text[:newline].rstrip())
            if length > last:
                last = length
                yield length
            newline = text.find("\n", newline + 1)

    def _end_of_line(self, text: str) -> int | None:
        newline = self._newline(text)
        if newline < 0:
            return None
        return self._end_of_opened(text) if self._opens_block(text[:newline]) else newline + self.before_a_line

    def _opens_block(self, text: str) -> bool:
        """Whether the line that ``text`` completes opens a block by its colon, whose lines are not there yet."""
        line = self.line + text
        if not self.code or self.middle or not self.language.indented or not line.rstrip().endswith(":"):
            return False
        read = scan(text, self.language)
        inside = read.open or read.unmatched or read.broken_off or read.newlines
        return not inside and indentation(self.next_line) <= indentation(line)

    def _end_of_opened(self, text: str) -> int | None:
        opened = replace(self, extent="block", base_indentation=indentation(self.line + text) + 1, opens=True)
        return opened._end_of_block(text)

    def _newline(self, text: str) -> int:
        """Where the line ends, which may be the one after the cursor's if nothing is added to that; -1 if nowhere.

        Behind a word that is being typed nothing comes on another line: it is hardly ever the last one already.
        """
        typing = self.lead > 0 and re.match(r"\w", self.line[-1:]) is not None
        return text.find("\n", 0 if self.middle or typing else len(text) - len(text.lstrip()))

    def _end_of_text(self, text: str) -> int | None:
        end = end_of(self.closer, text)
        newline = self._newline(text) if self.one_line else _blank_lines(text)
        if newline >= 0 and (end < 0 or newline < end):
            return newline + 1 if self.before_a_line else len(text[:newline].rstrip())
        if end < 0:
            return None
        return (
            len(text[:end].rstrip(" \t\n"))
            if self.closed and not self.middle
            else end + (0 if self.closed else len(self.closer))
        )

    def _end_of_block(self, text: str) -> int | None:
        read = scan(text, self.language)
        ends = [self._end_by_lines(text, read), self._end_by_closer(text, read)]
        if self.definitions and not self.language.indented:
            ends.append(self._end_by_definition(text, read))
        found = [end for end in ends if end is not None]
        return min(found)[1] if found else None

    def _end_by_closer(self, text: str, read: Scan) -> tuple[int, int] | None:
        """Length up to a bracket that closes one from before the cursor: before it, or after its line."""
        if not read.unmatched:
            return None
        at = read.unmatched[0]
        if self.closed:
            # Where it stands on the cursor's line it keeps the line that the text gives it.
            return at, at if self.middle else len(text[:at].rstrip())
        newline = text.find("\n", at)
        return (newline, newline) if newline >= 0 else None

    def _end_by_lines(self, text: str, read: Scan) -> tuple[int, int] | None:
        """Before a line that has less indentation, begins the next definition or is there already, or blank ones.

        Returns:
            Where that shows, and the length to cut to.
        """
        blank = 0
        level = self._level(text)
        definitions = self.definitions and self.language.indented
        defined = definitions and not self.line.strip() and _is_definition(text.split("\n", 1)[0])
        for start in read.newlines:
            end = text.find("\n", start + 1)
            line = text[start + 1 : end if end >= 0 else len(text)]
            cut = len(text[:start].rstrip())
            if not line.strip():
                blank += 1
                if end >= 0 and blank >= BLANK_LINES_END_BLOCK and cut:
                    return end, cut
                continue
            blank = 0
            shown = start + 1 + len(line) - len(line.lstrip())
            columns = indentation(line)
            if columns < level and (self.language.indented or not _LABEL.match(line)):
                return shown, cut
            if defined and columns <= level:
                return shown, cut
            defined = defined or (definitions and columns == level and end >= 0 and _is_definition(line))
            if end >= 0 and len(self.next_line.strip()) > SHORT and line.rstrip() == self.next_line:
                return end, cut
        return None

    def _level(self, text: str) -> int:
        """Columns at which the statements of the block stand: those of its first line, where indentation counts."""
        first = first_line_of_block(self.line, text, self.opens)
        if first is None:
            return self.base_indentation
        columns = indentation(first)
        if not self.language.indented:
            return self.base_indentation or columns
        # A body that is not indented is indented afterwards.
        return columns if columns >= self.base_indentation or may_be_indented(text, first) else self.base_indentation

    def _end_by_definition(self, text: str, read: Scan) -> tuple[int, int] | None:
        """Behind the line on which a definition between braces ends."""
        for opened, closed in read.closed:
            newline = text.find("\n", closed)
            if text[opened] != "{" or newline < 0:
                continue
            head = (self.line + text[:opened]).rstrip().rsplit("\n", 1)[-1]
            if _is_definition(head) or (head.rstrip().endswith(")") and not _CONTROL.match(head)):
                return newline, newline
        return None


def first_line_of_block(line: str, text: str, opens: bool = False) -> str | None:
    """The first line of ``text``, which follows ``line``, that is not blank and does not open the block."""
    lines = (line + text).split("\n")
    return next((each for each in (lines[1:] if opens or line.strip() else lines) if each.strip()), None)


def may_be_indented(text: str, first: str) -> bool:
    """Whether ``first``, the first line of ``text`` after one that opens a block, may belong to it though it is not
    indented."""
    blank = text.count("\n", 0, text.find(first.strip())) > 1
    return not blank and not _is_definition(first) and not first.lstrip().startswith(("@", "import ", "from ", "#"))


def _is_definition(line: str) -> bool:
    return _DEFINITION.match(line) is not None


def _blank_lines(text: str) -> int:
    """Where two blank lines begin; -1 where none do."""
    match = re.search(r"(?<=\S)[ \t]*\n[ \t]*\n[ \t]*\n", text)
    return match.start() if match else -1
