"""A scanner that tells code, comments and strings of a piece of source apart, and pairs its brackets.

The piece may break off anywhere, and what was said of its beginning stays true when it grows.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from codespec.languages import Language

OPENERS = {"(": ")", "[": "]", "{": "}"}
CLOSERS = {closer: opener for opener, closer in OPENERS.items()}


@dataclass(frozen=True)
class Scan:
    """The brackets and line ends in the code of a piece of source; positions are offsets in it.

    Attributes:
        unmatched: closing brackets that close nothing in the piece.
        open: opening brackets that are not closed in it.
        closed: for each pair of brackets that no other one encloses, where the two stand.
        newlines: where line ends stand that are neither in a comment or text nor between brackets.
        between: where those stand that are between brackets.
        broken_off: the comment or text that the piece ends in, from its start; empty where it ends in code.
    """

    unmatched: Sequence[int]
    open: Sequence[int]
    closed: Sequence[tuple[int, int]]
    newlines: Sequence[int]
    between: Sequence[int]
    broken_off: str


@functools.lru_cache(maxsize=64)
def scan(text: str, language: Language) -> Scan:
    """Look through ``text``, which begins in code. Of a text that grows much is asked more than once."""
    unmatched: list[int] = []
    waiting: list[int] = []
    closed: list[tuple[int, int]] = []
    newlines: list[int] = []
    between: list[int] = []
    broken_off = ""
    for match in tokens(language).finditer(text):
        token, at = match.group(), match.start()
        if token in OPENERS:
            waiting.append(at)
        elif token in CLOSERS:
            if waiting and text[waiting[-1]] == CLOSERS[token]:
                opened = waiting.pop()
                if not waiting:
                    closed.append((opened, at))
            else:
                unmatched.append(at)
        elif token == "\n":
            (between if waiting else newlines).append(at)
        elif match.end() == len(text) and match.lastgroup and not is_closed(token, language):
            broken_off = token
    return Scan(unmatched, waiting, closed, newlines, between, broken_off)


def closer_of(opened: str, language: Language) -> str:
    """What ends the comment or text that begins with ``opened``; a line end where its line does."""
    if language.block_comment and opened.startswith(language.block_comment[0]):
        return language.block_comment[1]
    if language.line_comment and opened.startswith(language.line_comment):
        return "\n"
    body = opened.lstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ#@$")  # Python's rb"", Rust's r#""#
    for quote in (*language.long_quotes, *language.quotes, '"', "'", "`"):
        if body.startswith(quote):
            return quote
    return "\n"


def end_of(closer: str, text: str) -> int:
    """Where ``closer`` first stands in ``text`` with no backslash before it; -1 where it does not."""
    if closer in ("*/", "-->", "\n"):
        return text.find(closer)
    match = re.match(rf"(?:\\.|(?!{re.escape(closer)}).)*", text, re.DOTALL)
    assert match is not None
    return match.end() if text.startswith(closer, match.end()) else -1


def is_closed(token: str, language: Language) -> bool:
    """Whether a comment or text is complete."""
    closer = closer_of(token, language)
    if closer == "\n":
        return False
    start = token.find(closer) + len(closer) if closer in ('"', "'", "`", '"""', "'''") else 2
    return end_of(closer, token[start:]) >= 0


@functools.cache
def tokens(language: Language) -> re.Pattern[str]:
    """What matches a comment or text, also one that breaks off, a bracket in code, or a line end."""
    texts = []
    if language.block_comment:
        start, end = map(re.escape, language.block_comment)
        texts.append(rf"{start}(?:(?!{end}).)*(?:{end}|\Z)")
    if language.line_comment:
        texts.append(rf"{re.escape(language.line_comment)}[^\n]*")
    for quote in map(re.escape, language.long_quotes):
        texts.append(rf"{quote}(?:\\.|(?!{quote}).)*(?:{quote}|\\?\Z)")
    for quote in map(re.escape, language.quotes):
        texts.append(rf"{quote}(?:\\.|[^\\\n{quote}])*(?:{quote}|(?=\n)|\\?\Z)")
    if "'" not in language.quotes:
        texts.append(r"'(?:\\.[^'\n]{0,8}'|[^\\\n']'|\\?.?\Z)")  # one character; elsewhere a name of Rust's
    group = f"(?P<text>{'|'.join(texts)})|" if texts else ""
    brackets = r"()\[\]{}" if language.quotes and language.brackets != "never" else ""
    return re.compile(group + rf"[{brackets}\n]", re.DOTALL)
