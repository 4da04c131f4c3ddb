"""Between text and tokens: a text is tokenized as a model would have met it, after the tokens before it."""

from __future__ import annotations

from collections.abc import Sequence

from codespec.protocols import Vocabulary

TAIL = 4
"""Tokens before a text that are tokenized along with it."""


def tokenize_after(vocabulary: Vocabulary, tail: Sequence[int], data: bytes) -> list[int]:
    """Tokens of ``data`` as it is tokenized after ``tail``; on its own where the two would merge.

    Empty where ``data`` is not UTF-8, begun in ``tail`` or not, or the vocabulary does not give it back.
    """
    for start in range(len(tail)):
        before = [vocabulary.token_bytes(token) for token in tail[start:]]
        if not all(before):
            continue  # control tokens are not text
        try:
            text = (b"".join(before) + data).decode()
        except UnicodeDecodeError:
            continue  # begins inside a character
        ids = exact_tokens(vocabulary, text)
        if ids[: len(before)] == list(tail[start:]):
            return ids[len(before) :]
        break
    try:
        return exact_tokens(vocabulary, data.decode())
    except UnicodeDecodeError:
        return []


def exact_tokens(vocabulary: Vocabulary, text: str) -> list[int]:
    """Tokens whose bytes are those of ``text``; empty where the vocabulary changes texts (to lower case, say)."""
    data = text.encode()
    ids = vocabulary.tokenize(text)
    if spelled(vocabulary, ids) == data:
        return ids
    # SentencePiece puts a blank before every text: tokenize it on a line of its own and cut the line's end off.
    ids = vocabulary.tokenize("\n" + text)
    for count in (1, 2):
        if spelled(vocabulary, ids[:count]).lstrip(b" ") == b"\n" and spelled(vocabulary, ids[count:]) == data:
            return ids[count:]
    return []


def spelled(vocabulary: Vocabulary, ids: Sequence[int]) -> bytes:
    """The bytes of several tokens."""
    return b"".join(map(vocabulary.token_bytes, ids))


def whole_characters(data: bytes) -> str:
    """The text of ``data`` without a character that is cut off at its end; empty where it is not UTF-8."""
    for end in range(len(data), max(len(data) - 4, -1), -1):
        try:
            return data[:end].decode()
        except UnicodeDecodeError:
            continue
    return ""
