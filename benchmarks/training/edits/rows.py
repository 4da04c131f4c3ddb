"""Examples of edits as tokens, in shards on the disk, and batches of them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from pathlib import Path

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from codespec.edits.formats import WindowPrompt, as_text
from codespec.edits.formats.embedded import LABELS, Embedded, written
from codespec.edits.formats.marks import lines_of
from codespec.train import tokenizer as special
from codespec.train.rows import Batch, Row, batch_of

CHANGED = 3
"""The weight of a token that says what changes, against one that says that a line stays."""

LONGEST = 1000
"""Tokens of an example: the context of the embedded model is 1,024."""

POOL = 512
"""Examples that are sorted by length before they make batches."""


def row_of(prompt: WindowPrompt, updated: str, tokenizer: Tokenizer) -> Row | None:
    """The row of an example; None where it is too long."""
    old, new = lines_of(prompt.window), lines_of(updated)
    if len(old) >= len(LABELS):
        return None
    begin = tokenizer.encode(as_text(Embedded().prompt(prompt))).ids
    said = tokenizer.encode(written(old, new)).ids
    end = tokenizer.token_to_id(special.END_OF_TEXT)
    if len(begin) + len(said) >= LONGEST:
        return None
    tokens = np.asarray([*begin, *said, end], np.uint16)
    return Row(tokens, len(begin), weights_of(tokenizer.encode(written(old, old)).ids, said))


def weights_of(unchanged: Sequence[int], said: Sequence[int]) -> npt.NDArray[np.uint8]:
    """Of the tokens of an answer and its end: what changes counts more than that a line stays."""
    weights = np.ones(len(said) + 1, np.uint8)
    for tag, _, _, start, end in SequenceMatcher(None, unchanged, said, autojunk=False).get_opcodes():
        if tag != "equal":
            weights[start:end] = CHANGED
    return weights


def write_shard(path: Path, rows: Sequence[Row]) -> None:
    """Rows as one file; an interrupted write leaves none."""
    temporary = path.with_name(f"unfinished-{path.name}")  # which is no name of a shard
    np.savez(
        temporary,
        tokens=np.concatenate([row.tokens for row in rows]),
        lengths=np.asarray([len(row.tokens) for row in rows], np.int32),
        prompts=np.asarray([row.prompt for row in rows], np.int32),
        weights=np.concatenate([row.weights for row in rows]),
    )
    temporary.replace(path)


def read_shard(path: Path) -> list[Row]:
    """The rows of a shard."""
    with np.load(path) as data:
        tokens, lengths, prompts, weights = (data[name] for name in ("tokens", "lengths", "prompts", "weights"))
    ends, wanted = np.cumsum(lengths), np.cumsum(lengths - prompts)
    return [
        Row(tokens[end - length : end], int(prompt), weights[last - (length - prompt) : last])
        for end, last, length, prompt in zip(ends, wanted, lengths, prompts, strict=True)
    ]


class Batches:
    """An endless supply of batches of about ``size`` tokens from the shards in a folder, new ones as they come.

    Args:
        part, parts: which of the shards, where several processes share them.
    """

    def __init__(self, folder: Path, size: int, seed: int, part: int = 0, parts: int = 1) -> None:
        self._folder, self._size, self._random = folder, size, random.Random(seed)
        self._part, self._parts = part, parts
        self._read: dict[Path, int] = {}

    def __iter__(self) -> Iterator[Batch]:
        pool: list[Row] = []
        while True:
            while len(pool) < POOL:
                pool += read_shard(self._next())
            self._random.shuffle(pool)
            taken, pool = sorted(pool[:POOL], key=lambda row: len(row.tokens)), pool[POOL:]
            groups = list(self._groups(taken))
            self._random.shuffle(groups)
            yield from map(batch_of, groups)

    def _next(self) -> Path:
        """One of the shards that were read least."""
        shards = sorted(self._folder.glob("shard-*.npz"))
        found = shards[self._part :: self._parts] or shards
        if not found:
            raise FileNotFoundError(f"{self._folder}: no examples; `python -m benchmarks train-edit` makes them first")
        fewest = min(self._read.get(path, 0) for path in found)
        path = self._random.choice([path for path in found if self._read.get(path, 0) == fewest])
        self._read[path] = fewest + 1
        return path

    def _groups(self, rows: Sequence[Row]) -> Iterator[list[Row]]:
        group: list[Row] = []
        for row in rows:
            if group and (len(group) + 1) * len(row.tokens) > self._size:
                yield group
                group = []
            group.append(row)
        if group:
            yield group
