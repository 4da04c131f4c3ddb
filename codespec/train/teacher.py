"""A target in a GGUF file as the teacher of drafts: its likeliest tokens at every position of texts; and a vocabulary,
which makes lessons of the texts alone."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from codespec.completion.prompt.prompt import file_header
from codespec.llama.context import Context
from codespec.llama.model import Model
from codespec.models.fim import FimFormat, fim_format
from codespec.train import data
from codespec.train.progress_bar import ProgressBar

LIKELIEST = 16
"""Tokens whose probabilities are kept at each position: more than 97 % of all, on average over code."""

ROWS = 32
"""Of a lesson."""
READS = "the target reads"
"""What the bar says meanwhile."""

GoOn: TypeAlias = "Callable[[], bool]"


def _always() -> bool:
    return True


Row: TypeAlias = "tuple[list[int], list[bool]]"
"""Tokens, and whether each of all but the first is to be learnt."""

_CHUNK = 64  # rows of logits at a time: those of a large vocabulary take 600 kB each


@dataclass(frozen=True)
class Lesson:
    """Rows of text with the target's distribution at each position, cut to its likeliest tokens.

    Attributes:
        tokens: int32 [rows, length + 1].
        learnt: bool [rows, length]: whether the token after this position is to be learnt; where another sample begins
            is chance.
        ids: int32 [rows, length, kept], the likeliest first; ``LIKELIEST`` of a target in a GGUF file.
        shares: float16 of the same shape: their probabilities.
    """

    tokens: npt.NDArray[np.int32]
    learnt: npt.NDArray[np.bool_]
    ids: npt.NDArray[np.int32]
    shares: npt.NDArray[np.float16]

    def save(self, path: Path) -> None:
        """Write the lesson; an interrupted write leaves no file of this name."""
        temporary = path.with_name("writing.tmp.npz")  # no lesson's name
        np.savez(temporary, tokens=self.tokens, learnt=self.learnt, ids=self.ids, shares=self.shares)
        temporary.replace(path)

    @classmethod
    def load(cls, path: Path) -> Lesson:
        """The lesson that ``save`` wrote."""
        with np.load(path) as found:
            return cls(**{name: found[name] for name in ("tokens", "learnt", "ids", "shares")})


class TextTeacher:
    """A vocabulary whose texts say themselves what comes next; close it after use.

    Args:
        path: a GGUF file; of its weights nothing is loaded.
        length: of the rows.

    Raises:
        CodespecError: it cannot be loaded.
    """

    def __init__(self, path: Path, length: int, vocabulary_only: bool = True) -> None:
        self.model = Model(path, vocabulary_only=vocabulary_only)
        self.vocabulary = self.model.vocabulary
        self.layout = fim_format(self.model)
        self.length = length

    def lesson(self, rows: Sequence[Row], go_on: GoOn = _always) -> Lesson:
        """The lesson of ``rows``, each of ``length + 1`` tokens; of the first ones, where ``go_on`` says no."""
        said = [self._read(tokens) for number, (tokens, _) in enumerate(rows) if number == 0 or go_on()]
        return Lesson(
            np.asarray([tokens for tokens, _ in rows[: len(said)]], np.int32),
            np.asarray([learnt for _, learnt in rows[: len(said)]], np.bool_),
            np.stack([ids for ids, _ in said]),
            np.stack([shares for _, shares in said]),
        )

    def _read(self, tokens: Sequence[int]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float16]]:
        following = np.asarray(tokens[1:], np.int32)[:, None]
        return following, np.ones(following.shape, np.float16)

    def close(self) -> None:
        """Free the model."""
        self.model.close()

    def __enter__(self) -> TextTeacher:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Teacher(TextTeacher):
    """A target that reads rows of tokens; close it after use.

    Args:
        length: of the rows.

    Raises:
        CodespecError: it cannot be loaded.
    """

    def __init__(self, path: Path, length: int, threads: int = 0) -> None:
        super().__init__(path, length, vocabulary_only=False)
        self._context = Context(self.model, context_length=length + 1, threads=threads, batch=_CHUNK)
        self._sequence = self._context.sequence()

    def _read(self, tokens: Sequence[int]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float16]]:
        self._sequence.rollback(0)
        ids, shares = [], []
        for start in range(0, len(tokens) - 1, _CHUNK):
            logits = self._sequence.decode(tokens[start : min(start + _CHUNK, len(tokens) - 1)])
            best, share = likeliest(logits)
            ids.append(best)
            shares.append(share)
        return np.concatenate(ids), np.concatenate(shares)

    def close(self) -> None:
        """Free the model and its context."""
        self._context.close()
        super().close()


def teach(
    lesson: Callable[[int, GoOn], Lesson], folder: Path, until: float, most: int | None = None, step: str = READS
) -> list[Path]:
    """Files of lessons, one at least: of earlier runs, and new ones until the time ``until`` (of ``monotonic``).

    Args:
        lesson: makes one, the same for the same number, and asks between its rows whether to go on.
        most: how many are wanted, those of earlier runs included; None: as many as there is time for.
        step: the name of this on the screen.
    """
    folder.mkdir(parents=True, exist_ok=True)
    found = sorted(folder.glob("lesson-*.npz"))
    began = time.monotonic()
    with ProgressBar(step, until - began) as bar:

        def go_on() -> bool:
            bar.at(time.monotonic() - began)
            return time.monotonic() < until

        while not found or (time.monotonic() < until and (most is None or len(found) < most)):
            path = folder / f"lesson-{len(found):05d}.npz"
            made = lesson(len(found), go_on)
            made.save(path)
            found.append(path)
            bar.note(f"{len(found) * made.learnt.size / 1e6:.2f}M tokens")
    return found


def likeliest(logits: npt.NDArray[np.float32]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float16]]:
    """The ``LIKELIEST`` tokens of each row, the likeliest first, and their probabilities."""
    found = torch.from_numpy(logits)
    best, ids = found.topk(LIKELIEST)
    shares = (best - found.logsumexp(-1, keepdim=True)).exp()
    return ids.numpy().astype(np.int32), shares.numpy().astype(np.float16)


def packed(sample: Callable[[int], list[int]], length: int) -> Iterator[Row]:
    """Endless rows of ``length + 1`` tokens: samples end to end. Where one begins is chance, and not to be learnt.

    Args:
        sample: gives one; called with the room that is left, and what goes beyond it is cut off.
    """
    while True:
        tokens: list[int] = []
        learnt: list[bool] = []
        while len(tokens) <= length:
            found = sample(length + 1 - len(tokens))
            tokens += found
            learnt += [False, *[True] * (len(found) - 1)]
        yield tokens[: length + 1], learnt[1 : length + 1]


class SamplePacker:
    """Rows of samples end to end: half left to right, half with a middle taken out, in every order that the target was
    trained on."""

    def __init__(
        self, sampler: data.RowSampler, vocabulary: Any, layout: FimFormat | None, end: int, seed: int
    ) -> None:
        self._sampler, self._vocabulary, self._layout, self._end = sampler, vocabulary, layout, end
        self._random = random.Random(seed)

    def rows(self, length: int) -> Iterator[Row]:
        """Endless rows of ``length`` tokens, samples end to end; see ``packed``."""
        return packed(lambda room: self._sample(length), length)

    def _sample(self, length: int) -> list[int]:
        chooser, layout, vocabulary = self._random, self._layout, self._vocabulary
        document = self._sampler.document()
        characters = int(length * data.CHARACTERS_PER_TOKEN * chooser.uniform(0.3, 1.0))
        begin, finish = data.window(chooser, document.text, characters)
        body = document.text[begin:finish]
        header: list[int] = []
        if layout is not None and chooser.random() < data.PATH_RATE:
            header = file_header(vocabulary, layout, document.path)
        elif layout is not None and layout.file_separator is not None:
            header = [layout.file_separator]
        if layout is None or chooser.random() >= data.FIM_RATE or len(body) <= data.SHORTEST:
            beginning = [vocabulary.beginning] if vocabulary.beginning is not None else []
            ends = [self._end] if finish == len(document.text) else []
            return [*beginning, *header, *vocabulary.tokenize(body), *ends]
        prefix, middle, suffix = data.cut(chooser, body)
        arranged = replace(layout, order=chooser.choice(layout.family.orders))
        prompt = arranged.arrange(header, vocabulary.tokenize(prefix), vocabulary.tokenize(suffix))
        return [*prompt, *vocabulary.tokenize(middle), self._end]
