"""Training and held-out texts of a draft, drawn from files."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from codespec.train import data
from codespec.train.corpus import CorpusDocument
from codespec.train.judge import InfillingExample, line_ends
from codespec.train.teacher import Row, SamplePacker, TextTeacher

HELD_OUT = 0.1
"""Of the files of a corpus that is a single package; of others whole packages are held out."""


@dataclass(frozen=True)
class DraftTexts:
    """The training and held-out texts of a draft.

    Attributes:
        train, held_out: endless rows of tokens for a target, drawn by a seed.
        places: positions in held-out texts at which the draft is judged.
        files: the training texts.
    """

    train: Callable[[TextTeacher, int], Iterator[Row]]
    held_out: Callable[[TextTeacher, int], Iterator[Row]]
    places: Sequence[InfillingExample]
    files: Sequence[CorpusDocument]


def of_files(
    train: Sequence[CorpusDocument], held_out: Sequence[CorpusDocument], shares: Mapping[str, float]
) -> DraftTexts:
    """The texts of files, from which rows are drawn by length and by the ``shares`` of their languages."""

    def rows(documents: Sequence[CorpusDocument]) -> Callable[[TextTeacher, int], Iterator[Row]]:
        return lambda teacher, seed: _packer(teacher, documents, shares, seed).rows(teacher.length)

    return DraftTexts(rows(train), rows(held_out), line_ends(held_out), train)


def split(documents: Sequence[CorpusDocument]) -> tuple[list[CorpusDocument], list[CorpusDocument]]:
    """Training and held-out documents: whole packages are held out, or files where there are few packages."""
    train, held_out = data.split(documents)
    if held_out and len({each.package for each in documents}) >= 1 / HELD_OUT:
        return train, held_out
    order = sorted(documents, key=lambda each: random.Random(each.path).random())
    count = max(1, round(HELD_OUT * len(order)))
    return order[count:], order[:count]


def _packer(
    teacher: TextTeacher, documents: Sequence[CorpusDocument], shares: Mapping[str, float], seed: int
) -> SamplePacker:
    sampler = data.RowSampler(documents, dict(shares), seed)
    return SamplePacker(sampler, teacher.vocabulary, teacher.layout, min(teacher.vocabulary.end_tokens), seed)
