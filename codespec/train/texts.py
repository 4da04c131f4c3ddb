"""What a draft learns from and what it is judged by, made of files."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from codespec.train import data
from codespec.train.corpus import CorpusDocument
from codespec.train.judge import InfillingExample, line_ends
from codespec.train.teacher import Row, SamplePacker, Teacher

HELD_OUT = 0.1
"""Of the files of a corpus that is a single package; of others whole packages are held out."""


@dataclass(frozen=True)
class DraftTexts:
    """What a draft learns from, and what it is judged by.

    Attributes:
        train, held_out: rows of their tokens for a target, endless and drawn by a seed.
        places: in what is held out.
        files: to learn from, where they are files.
        tokens: that are worth reading, None for no limit.
        passes: over what was read that are worth learning, None for no limit.
    """

    train: Callable[[Teacher, int], Iterator[Row]]
    held_out: Callable[[Teacher, int], Iterator[Row]]
    places: Sequence[InfillingExample]
    files: Sequence[CorpusDocument] = ()
    tokens: int | None = None
    passes: int | None = None


def of_files(train: Sequence[CorpusDocument], held_out: Sequence[CorpusDocument]) -> DraftTexts:
    """Rows drawn from files."""

    def rows(documents: Sequence[CorpusDocument]) -> Callable[[Teacher, int], Iterator[Row]]:
        return lambda teacher, seed: _packer(teacher, documents, seed).rows(teacher.length)

    return DraftTexts(rows(train), rows(held_out), line_ends(held_out), train)


def split(documents: Sequence[CorpusDocument]) -> tuple[list[CorpusDocument], list[CorpusDocument]]:
    """Texts to learn from, and others to judge by: whole packages, or files where there are few packages."""
    train, held_out = data.split(documents)
    if held_out and len({each.package for each in documents}) >= 1 / HELD_OUT:
        return train, held_out
    order = sorted(documents, key=lambda each: random.Random(each.path).random())
    count = max(1, round(HELD_OUT * len(order)))
    return order[count:], order[:count]


def _packer(teacher: Teacher, documents: Sequence[CorpusDocument], seed: int) -> SamplePacker:
    languages = {each.language: 1.0 for each in documents}
    end = min(teacher.vocabulary.end_tokens)
    return SamplePacker(data.RowSampler(documents, languages, seed), teacher.vocabulary, teacher.layout, end, seed)
