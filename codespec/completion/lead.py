"""The lead: the end of the text before the cursor that a completion generates again (token healing).

A model reads text in tokens, and a token may reach over the cursor: ``\\n`` and the indentation after it are one token
to many vocabularies, and so are ``("`` or the rest of a word. A prompt that ends within such a token is one that the
model has never seen, so the prompt ends before it, and the text begins with what the document has there.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import accumulate
from typing import Protocol

LONGEST_LEAD = 32
"""Characters of a lead at most, white space at its beginning not counted."""
LONGEST_BLANKS = 96
"""Characters of white space that a lead begins with, at most."""
_READ = (64, 2 * (LONGEST_LEAD + LONGEST_BLANKS))
"""Characters before the cursor that are looked at: first few, which are enough nearly always."""

_WINDOW = LONGEST_LEAD + 2  # characters in which what is being typed is sought
_SIGN = r"[!-/:-@\[-^`{-~]"
_TYPED = re.compile(rf" ?(?:(?<!{_SIGN}){_SIGN}{{1,8}})?\w{{0,{_WINDOW}}}\Z")
_ALL_SIGNS = re.compile(rf" ?(?:(?<!{_SIGN}){_SIGN}{{1,{LONGEST_LEAD}}})?\w{{0,{_WINDOW}}}\Z")
_BLANKS = (" a", "  a", 8 * " " + "a", 24 * " " + "a", "\ta", "\n", "\n\n", "\n    a")
_FOLLOWING = ("a", *_BLANKS, "1", "(", "):\n", '"', "s ", "=", ",", "_")
"""What may follow the cursor, one text for each way in which tokenizers go on: their first rule cuts a text into words,
signs, numbers and white space, and what follows decides where the last piece before it ends."""


class Tokens(Protocol):
    """The part of a vocabulary that is needed here."""

    def tokenize(self, text: str, special: bool = False) -> list[int]: ...
    def token_bytes(self, token: int) -> bytes: ...
    def __hash__(self) -> int: ...


def lead_of(prefix: str, vocabulary: Tokens | None = None) -> str:
    """The lead of a cursor behind ``prefix``; empty where it would be too long, or cannot be spelled.

    It begins with the word that is being typed, the signs before it and the space before those, and further to the
    left where a token of ``vocabulary`` would reach over its beginning: the tokens of the text before the lead are then
    the first ones of the whole text, whatever follows the cursor.
    """
    form = _TYPED if vocabulary is None else _ALL_SIGNS
    typed = form.search(prefix, max(0, len(prefix) - _WINDOW))
    if typed is None or len(typed[0].lstrip(" ")) > LONGEST_LEAD:
        return ""  # only the whole word would do
    shortest = typed[0]
    if vocabulary is None or not prefix:
        return shortest
    for size in _READ:
        end = _end_of(prefix, size)
        lead = _healed(vocabulary, end, len(shortest), 0 if len(end) == len(prefix) else 1)
        if lead is not None or len(prefix) <= size:
            break
    # None: no border is one whatever follows, as in long rulers. What is typed now is healed at least.
    return shortest if lead is None else lead


def _end_of(text: str, size: int) -> str:
    """The last ``size`` characters or fewer, from the beginning of a line or word where there is one."""
    if len(text) <= size:
        return text
    end = text[-size:]
    start = re.search(r"\n(?=\S)|\s(?=\S)", end[: size // 2])
    return end[start.end() :] if start is not None else end


@lru_cache(maxsize=256)
def _healed(vocabulary: Tokens, text: str, shortest: int, first: int) -> str | None:
    """The lead of the cursor behind ``text``, of ``shortest`` characters at least, which begins no sooner than after
    ``first`` bytes; None where there is none."""
    data = text.encode("utf-8", "replace")
    variants = [_borders(vocabulary, text + following) for following in _FOLLOWING]
    common = frozenset(range(len(data) + 1)).intersection(*variants)
    size = len(data) - len(text[len(text) - shortest :].encode("utf-8", "replace"))
    for border in sorted((each for each in common if first <= each <= size), reverse=True):
        lead = data[border:].decode("utf-8", "replace")
        if len(lead) > LONGEST_LEAD + LONGEST_BLANKS or len(lead.lstrip()) > LONGEST_LEAD:
            break
        if data[border:] != lead.encode("utf-8", "replace"):
            continue  # within a character
        before = _borders(vocabulary, text[: len(text) - len(lead)])
        if all(before == [each for each in borders if each <= border] for borders in variants):
            return lead
    return None


def _borders(vocabulary: Tokens, text: str) -> list[int]:
    """Where the tokens of ``text`` begin and end, in bytes."""
    return list(accumulate((len(vocabulary.token_bytes(token)) for token in vocabulary.tokenize(text)), initial=0))
