"""Cells of IPython: lines that are no Python, such as ``%matplotlib inline``, ``!ls`` and ``name?``, and cells that
begin with ``%%``, which may be of another language."""

from __future__ import annotations

import re

from codespec.languages import LANGUAGES, by_id

_LANGUAGES = {magic: each.id for each in LANGUAGES.values() for magic in each.magics}
_CELL = re.compile(r"\s*%%(\w+)")
# Comments, texts of one line or more, brackets, line ends that go on or end a statement.
_TOKEN = re.compile(
    r'#[^\n]*|"""(?:[^"\\]|\\.|"(?!""))*(?:"""|\\?\Z)'
    r"|'''(?:[^'\\]|\\.|'(?!''))*(?:'''|\\?\Z)"
    r'|"(?:[^"\\\n]|\\.)*["\n]?'
    r"|'(?:[^'\\\n]|\\.)*['\n]?"
    r"|[\[({]|[\])}]|\\\r?\n|\n",
    re.DOTALL,
)
_LINE = re.compile(r"([ \t]*)([^\r\n]*)")
_MAGIC = re.compile(r"%{1,2}[A-Za-z_]|!|\?")
_TARGETS = re.compile(r"[\w.,\[\] \t]+")


def language_of(text: str) -> str | None:
    """The language of a cell that is said to be of Python; None where it is not known."""
    magic = _CELL.match(text)
    return _LANGUAGES.get(magic[1]) if magic is not None else "python"


def without_magics(text: str) -> str:
    """The text of a cell with comments or numbers in place of what is not of its language; as many characters."""
    language = language_of(text)
    if language is None:
        return text
    parts, at = [], 0
    magic = _CELL.match(text)
    if magic is not None:
        start, end = magic.start(1) - 2, _line_end(text, magic.end())
        sign = by_id(language).line_comment
        parts.append(text[:start] + (sign + text[start + len(sign) : end])[: end - start])
        at = end
    if language == "python":
        parts += _python_without_magics(text, at)
    else:
        parts.append(text[at:])
    return "".join(parts)


def is_magic(text: str, offset: int) -> bool:
    """Whether what stands around an offset of a cell is not of its language."""
    start, end = text.rfind("\n", 0, offset) + 1, _line_end(text, offset)
    return text[start:end] != without_magics(text)[start:end]


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start)
    return end if end >= 0 else len(text)


def _python_without_magics(text: str, at: int) -> list[str]:
    parts, written, depth, begins = [], at, 0, True
    while at < len(text):
        if begins and not depth:
            line = _LINE.match(text, at)
            assert line is not None
            masked = _masked(line[1], line[2])
            if masked != line[2]:
                parts += [text[written : line.start(2)], masked]
                written = at = line.end()
        token = _TOKEN.search(text, at)
        if token is None:
            break
        sign, at = token[0], token.end()
        begins = sign == "\n" or (sign[-1] == "\n" and sign[0] in "\"'")
        depth = max(0, depth + (sign in "([{") - (sign in ")]}"))
    return [*parts, text[written:]]


def _masked(indentation: str, line: str) -> str:
    """A line as Python reads it: all of it or its right side may be of IPython."""
    if _MAGIC.match(line) or (line.rstrip().endswith("?") and "#" not in line):
        # In a block it may be the only statement.
        return ("0#" if indentation else "#") + line[2 if indentation else 1 :] if len(line) > 1 else "0"
    targets, sign, value = line.partition("=")
    if sign and re.match(r"[ \t]*(?:![^=]|%{1,2}[A-Za-z_])", value) and _TARGETS.fullmatch(targets):
        start = len(value) - len(value.lstrip())
        return targets + sign + value[:start] + "0#" + value[start + 2 :]
    return line
