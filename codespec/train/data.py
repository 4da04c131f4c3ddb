"""Training rows from documents: half left to right, half fill-in-the-middle in both orders.

FIM follows Bavarian et al., "Efficient Training of Language Models to Fill in the Middle"
(arXiv 2207.14255): cuts at characters, and both of its orders, prefix-suffix-middle and the second
form of suffix-prefix-middle (``<PRE><SUF>suffix<MID>prefix middle``).
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
from tokenizers import Tokenizer

from codespec.train import tokenizer as special
from codespec.train.corpus import CorpusDocument, is_held_out

FIM_RATE = 0.5
PATH_RATE = 0.5
CHARACTERS_PER_TOKEN = 3.4
SHORTEST = 20
"""Characters of a text of which a middle may be taken out, and one more."""


class RowSampler:
    """Draws documents with a cap on how much one large package or one language can weigh.

    Args:
        weights: the share of each language; languages without documents are left out.
    """

    def __init__(self, documents: Sequence[CorpusDocument], weights: dict[str, float], seed: int) -> None:
        self._random = random.Random(seed)
        self._documents = list(documents)
        size: dict[tuple[str, str], int] = {}
        for d in documents:
            size[d.language, d.package] = size.get((d.language, d.package), 0) + len(d.text)
        total: dict[str, float] = {}
        for (language, _), n in size.items():
            total[language] = total.get(language, 0.0) + n**0.6
        # Inside a package by length, packages by length^0.6, languages as asked for.
        cumulative = 0.0
        self._cumulative = []
        for d in documents:
            n = size[d.language, d.package]
            share = n**0.6 / total[d.language] * weights.get(d.language, 0.0)
            cumulative += share * len(d.text) / n
            self._cumulative.append(cumulative)

    def document(self) -> CorpusDocument:
        """A document, drawn at random by its weight."""
        return self._random.choices(self._documents, cum_weights=self._cumulative)[0]

    def sample(self, max_tokens: int) -> tuple[list[str], bool]:
        """One training sample in pieces to be tokenized apart, and whether it ends where its document does."""
        rnd = self._random
        document = self.document()
        length = int(max_tokens * CHARACTERS_PER_TOKEN * rnd.uniform(0.3, 1.0))
        start, end = window(rnd, document.text, length)
        body = document.text[start:end]
        header = special.FILE_SEPARATOR
        if rnd.random() < PATH_RATE:
            header += document.path + "\n"
            if rnd.random() < 0.2:
                header = special.REPO_NAME + document.package + "\n" + header
        if rnd.random() < FIM_RATE and len(body) > SHORTEST:
            return [header, *fim(rnd, body)], True
        return [header, body], end == len(document.text)


def window(rnd: random.Random, text: str, length: int) -> tuple[int, int]:
    """A stretch of about ``length`` characters that starts at a line's start."""
    if len(text) <= length:
        return 0, len(text)
    start = rnd.randrange(-length // 4, len(text) - length // 2)
    start = 0 if start <= 0 else text.find("\n", start) + 1
    return start, min(start + length, len(text))


def fim(rnd: random.Random, text: str) -> list[str]:
    """``text`` with a middle taken out, in one of the two orders; ends where the middle ends.

    The middle is a piece of its own in both: a prompt ends at the cursor, so no token spans it.
    """
    prefix, middle, suffix = cut(rnd, text)
    if rnd.random() < 0.5:
        return [special.FIM_PREFIX + prefix + special.FIM_SUFFIX + suffix + special.FIM_MIDDLE, middle]
    return [special.FIM_PREFIX + special.FIM_SUFFIX + suffix + special.FIM_MIDDLE + prefix, middle]


def cut(rnd: random.Random, text: str) -> tuple[str, str, str]:
    """A beginning of ``text``, a middle that a person might ask for, and the rest."""
    # The rest of a line, a few lines, now and then a random stretch.
    kind = rnd.random()
    begin = rnd.randrange(len(text))
    if kind < 0.4:
        finish = text.find("\n", begin)
    elif kind < 0.8:
        finish = begin
        for _ in range(rnd.randint(1, 8)):
            finish = text.find("\n", finish + 1)
            if finish < 0:
                break
    else:
        finish = min(len(text), begin + rnd.randrange(1, 200))
    if finish < 0:
        finish = len(text)
    return text[:begin], text[begin:finish], text[finish:]


class TrainingRows:
    """An endless supply of packed rows of token ids."""

    def __init__(self, sampler: RowSampler, tokenizer: Tokenizer, length: int) -> None:
        self._sampler = sampler
        self._tokenizer = tokenizer
        self._length = length
        self._end = tokenizer.token_to_id(special.END_OF_TEXT)
        self._pending: list[int] = []

    def batch(self, rows: int) -> np.ndarray:
        """int64 [rows, length + 1]: inputs are ``[:, :-1]``, labels ``[:, 1:]``."""
        need = rows * (self._length + 1)
        while len(self._pending) < need:
            pieces, ends = self._sampler.sample(self._length)
            for piece in pieces:
                self._pending += self._tokenizer.encode(piece).ids
            if ends:
                self._pending.append(self._end)
        taken, self._pending = self._pending[:need], self._pending[need:]
        return np.asarray(taken, dtype=np.int64).reshape(rows, self._length + 1)


def split(documents: Sequence[CorpusDocument]) -> tuple[list[CorpusDocument], list[CorpusDocument]]:
    """Training and held-out documents; a package is wholly in one of the two."""
    train = [d for d in documents if not is_held_out(d.package)]
    held_out = [d for d in documents if is_held_out(d.package)]
    return train, held_out
