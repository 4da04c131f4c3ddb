"""Examples of filling in as tokens, cut out of source files.

The layout is suffix-prefix-middle (Bavarian et al., arXiv 2207.14255, section 3, in the order of Codestral):
``<suffix>…<prefix>…middle<end>``. The middle goes on from the prefix as in any text, which the model can do before it
has learnt anything; and a key changes the prompt's end only.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from codespec.llama.model import LlamaVocabulary
from codespec.train.corpus import CorpusDocument
from codespec.train.data import RowSampler
from codespec.train.rows import Batch, Row, batch_of

BEFORE, AFTER = (48, 320), (16, 160)
"""Tokens of the text before and after a middle, at least and at most."""

CONTEXT_SHARE, CONTEXT_WEIGHT = 0.2, 0.5
"""How many of the tokens before the middle are learnt as well, and their weight: they teach the language, and the use
of what follows. A step over all of them would take half as long again, for the output matrix."""

LONGEST_MIDDLE = 96
"""Tokens."""

CHARACTERS = 12
"""Of a token, at most: what is farther from the middle than that cannot be in an example."""

MOST_LINES = 8
LONGEST_SPAN = 160
"""Characters of a random span."""

POOL = 128
"""Examples that are sorted by length before they make batches."""


@dataclass(frozen=True)
class Markers:
    """The tokens of the layout; ``end`` is one that ends any text."""

    prefix: int
    suffix: int
    end: int


def cut(rnd: random.Random, text: str) -> tuple[int, int] | None:
    """Where a middle begins and ends that a person might ask for; None where this line offers none."""
    start = text.rfind("\n", 0, rnd.randrange(len(text))) + 1
    end = _line_end(text, start)
    line = text[start:end]
    if not line.strip():
        return None
    kind = rnd.random()
    if kind < 0.25:  # a random span
        begin = rnd.randrange(start, end)
        finish = min(len(text), begin + rnd.randint(1, LONGEST_SPAN))
        return (begin, finish) if text[begin:finish].strip() else None
    indentation = len(line) - len(line.lstrip())
    place = rnd.random()
    begin = start if place < 0.35 else start + indentation
    if place > 0.7:
        begin = rnd.randrange(start + indentation, end)
    if kind < 0.55:  # lines, as far as the block goes
        for _ in range(rnd.randint(1, MOST_LINES)):
            following = text[end + 1 : _line_end(text, end + 1)]
            if following.strip() and len(following) - len(following.lstrip()) < indentation:
                break
            end = min(len(text), end + 1 + len(following))
    return (begin, end) if text[begin:end].strip() else None


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start)
    return len(text) if end < 0 else end


def example(
    rnd: random.Random, text: str, begin: int, end: int, vocabulary: LlamaVocabulary, markers: Markers
) -> Row | None:
    """The row for the middle from ``begin`` to ``end``; None where it is too long."""
    before, after = rnd.randint(*BEFORE), rnd.randint(*AFTER)
    head = text[max(0, begin - before * CHARACTERS) : begin]
    known = vocabulary.tokenize(head)[-before:]
    kept = len(b"".join(map(vocabulary.token_bytes, known)).decode("utf-8", "ignore"))
    cut_at = len(head) - kept
    if kept < begin:  # whole lines, where there is more than one
        cut_at = head.find("\n", cut_at) + 1 or cut_at
    head = head[cut_at:]
    # As the author's text is cut into tokens: the prompt ends where one of them does, before the cursor.
    tokens = vocabulary.tokenize(head + text[begin:end])
    sizes = np.cumsum([len(vocabulary.token_bytes(token)) for token in tokens])
    first = int(np.searchsorted(sizes, len(head.encode()), side="right"))
    if not 0 < len(tokens) - first <= LONGEST_MIDDLE:
        return None
    follows = _first_lines(text[end : end + after * CHARACTERS], after, vocabulary)
    prompt = [markers.suffix, *follows, markers.prefix]
    weights = np.zeros(len(tokens) + 1, np.float32)
    weights[[place for place in range(first) if rnd.random() < CONTEXT_SHARE]] = CONTEXT_WEIGHT
    weights[first:] = 1
    return Row(np.asarray([*prompt, *tokens, markers.end], np.int32), len(prompt), weights)


def _first_lines(text: str, most: int, vocabulary: LlamaVocabulary) -> list[int]:
    tokens = vocabulary.tokenize(text)
    if len(tokens) <= most:
        return tokens
    kept = b"".join(map(vocabulary.token_bytes, tokens[:most])).decode("utf-8", "ignore")
    whole = kept[: kept.rfind("\n") + 1]
    return vocabulary.tokenize(whole) if whole else tokens[:most]


class Examples:
    """An endless supply of batches of about ``size`` tokens.

    Args:
        weights: the share of each language.
    """

    def __init__(
        self,
        documents: Sequence[CorpusDocument],
        weights: dict[str, float],
        vocabulary: LlamaVocabulary,
        markers: Markers,
        size: int,
        seed: int,
    ) -> None:
        self._random = random.Random(seed)
        self._sampler = RowSampler(documents, weights, seed)
        self._vocabulary, self._markers, self._size = vocabulary, markers, size

    def row(self) -> Row:
        """Tokens of a file with a middle taken out, from a place drawn at random, each with the weight of its loss."""
        while True:
            text = self._sampler.document().text
            place = cut(self._random, text)
            found = example(self._random, text, *place, self._vocabulary, self._markers) if place else None
            if found is not None:
                return found

    def __iter__(self) -> Iterator[Batch]:
        while True:
            pool = sorted((self.row() for _ in range(POOL)), key=lambda row: len(row.tokens))
            groups: list[list[Row]] = [[]]
            for row in pool:
                if groups[-1] and (len(groups[-1]) + 1) * len(row.tokens) > self._size:
                    groups.append([])
                groups[-1].append(row)
            self._random.shuffle(groups)
            yield from map(batch_of, groups)
