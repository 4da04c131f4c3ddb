"""A prompt from a document and a position, within a budget of tokens."""

from __future__ import annotations

from pathlib import PurePath

from codespec.models.fim import FimFormat
from codespec.protocols import CodespecError, Vocabulary

PREFIX_SHARE = 0.7
# A token is seldom longer; text beyond budget * this many characters cannot fit and is not tokenized at all.
CHARACTERS_PER_TOKEN = 12


def fim_prompt(
    vocabulary: Vocabulary, layout: FimFormat, prefix: str, suffix: str, path: str, budget: int
) -> list[int]:
    """Token ids that ask for what stands between ``prefix`` and ``suffix``; at most ``budget`` of them.

    Whole lines are left out, those farthest from the cursor first. What the suffix does not need of
    its share the prefix gets.

    Raises:
        CodespecError: the budget is too small for any prompt.
    """
    header = file_header(vocabulary, layout, path)
    room = budget - len(header) - 4
    if room < 16:
        header, room = [], budget - 4
    if room < 16:
        raise CodespecError(f"a budget of {budget} tokens is too small for a prompt; raise `context`")
    suffix_tokens = head(vocabulary, suffix, int(room * (1 - PREFIX_SHARE)))
    prefix_tokens = tail(vocabulary, prefix, room - len(suffix_tokens))
    return layout.arrange(header, prefix_tokens, suffix_tokens)


def file_header(vocabulary: Vocabulary, layout: FimFormat, path: str) -> list[int]:
    """The separator and the file's name, for models that were trained with them."""
    if layout.file_separator is None:
        return []
    name = PurePath(path).name
    return [layout.file_separator, *(vocabulary.tokenize(name + "\n") if name else [])]


def tail(vocabulary: Vocabulary, text: str, budget: int) -> list[int]:
    """Tokens of the last lines of ``text`` that fit; of the last part of a line that alone does not."""
    text = text[-budget * CHARACTERS_PER_TOKEN :] if budget > 0 else ""
    kept = len(text)
    used = 0
    for line in reversed(text.splitlines(keepends=True)):
        used += len(vocabulary.tokenize(line))
        if used > budget:
            break
        kept -= len(line)
    tokens = vocabulary.tokenize(text[kept:] or text)
    return tokens[-budget:] if budget > 0 else []


def head(vocabulary: Vocabulary, text: str, budget: int) -> list[int]:
    """Tokens of the first lines of ``text`` that fit; of the first part of a line that alone does not."""
    text = text[: budget * CHARACTERS_PER_TOKEN]
    kept = 0
    used = 0
    for line in text.splitlines(keepends=True):
        used += len(vocabulary.tokenize(line))
        if used > budget:
            break
        kept += len(line)
    return vocabulary.tokenize(text[:kept] or text)[:budget]
