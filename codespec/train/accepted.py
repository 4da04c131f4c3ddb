"""Training and held-out texts of a draft, made of the completions that the user accepted."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from codespec.completion.lead import lead_of
from codespec.completion.prompt.prompt import Prompts
from codespec.draft.storage.accepted_texts import AcceptedText, load, training_folder
from codespec.models.fim import FimFormat
from codespec.paths import hold, keep_private
from codespec.protocols import CodespecError
from codespec.train import data
from codespec.train.judge import TOKENS, InfillingExample
from codespec.train.teacher import Row, TextTeacher, packed
from codespec.train.texts import DraftTexts

LEAST = 40
"""Completions that a training needs at least."""

LATEST = 0.2
"""The share of them, the latest, that is held out: what will be accepted is most like what was accepted last."""

PLACES = 36
"""Held-out completions that a draft is judged by, at most."""

SHORTEST = 8
"""Tokens of a continuation that it is judged by, at least."""

READINGS = 3
"""How often each text is read by the target, in another order or cut another way each time."""

PASSES = 30
"""Over what was read: a small draft does not get better by more of them."""

_LEAST_PROMPT = 64  # tokens


def accepted_texts(languages: Sequence[str]) -> DraftTexts:
    """The texts of the completions that were kept of some languages.

    Raises:
        CodespecError: there are too few of them.
    """
    records = load(languages)
    if len(records) < LEAST:
        count = f"only {len(records)}" if records else "no"
        raise CodespecError(
            f"{count} accepted completions of {', '.join(languages)} are kept, and {LEAST} are needed: with "
            "`keep_accepted = true` in your own settings what you accept is kept from then on (docs/settings.md)"
        )
    latest = round(LATEST * len(records))
    train, held_out = records[:-latest], records[-latest:]
    characters = sum(len(each.prefix) + len(each.text) + len(each.suffix) for each in train)
    tokens = READINGS * int(characters / data.CHARACTERS_PER_TOKEN)
    return DraftTexts(_rows(train), _rows(held_out), _places(held_out), tokens=tokens, passes=PASSES)


class AcceptedPacker:
    """Rows of completions end to end, each after the prompt that asks the target for it, in every order that the
    target was trained on."""

    def __init__(
        self, records: Sequence[AcceptedText], vocabulary: Any, layout: FimFormat | None, end: int, seed: int
    ) -> None:
        layouts = [replace(layout, order=order) for order in layout.family.orders] if layout is not None else [None]
        self._prompts = [Prompts(vocabulary, each) for each in layouts]
        starts = layout is None and vocabulary.beginning is not None
        self._beginning = [vocabulary.beginning] if starts else []
        self._records, self._end = records, end
        self._random = random.Random(seed)

    def rows(self, length: int) -> Iterator[Row]:
        """See ``packed``."""
        return packed(lambda room: self._sample(length, room), length)

    def _sample(self, length: int, room: int) -> list[int]:
        chooser = self._random
        place, prompts = _place(chooser.choice(self._records)), chooser.choice(self._prompts)
        middle = prompts.tokens(place.text)
        budget = min(room, int(length * chooser.uniform(0.3, 1.0))) - len(middle) - 2
        prompt = prompts.prompt(place.prefix, place.suffix, place.path, max(budget, _LEAST_PROMPT))
        return [*self._beginning, *prompt, *middle, self._end]


def _rows(records: Sequence[AcceptedText]) -> Callable[[TextTeacher, int], Iterator[Row]]:
    def rows(teacher: TextTeacher, seed: int) -> Iterator[Row]:
        end = min(teacher.vocabulary.end_tokens)
        return AcceptedPacker(records, teacher.vocabulary, teacher.layout, end, seed).rows(teacher.length)

    return rows


def _places(records: Sequence[AcceptedText]) -> list[InfillingExample]:
    """As many as are judged by, spread over all."""
    step = max(1.0, len(records) / PLACES)
    return [_place(records[int(index * step)]) for index in range(min(PLACES, len(records)))]


def _place(record: AcceptedText) -> InfillingExample:
    """With a word that was being typed as a part of the text: the target writes all of it."""
    lead = lead_of(record.prefix)
    text = lead + record.text
    tokens = min(TOKENS, max(SHORTEST, round(len(text) / data.CHARACTERS_PER_TOKEN)))
    return InfillingExample(record.path, record.prefix[: len(record.prefix) - len(lead)], text, record.suffix, tokens)


@contextlib.contextmanager
def run_folder() -> Iterator[Path]:
    """An empty folder for one run, which is deleted after it: it holds texts of the user's.

    Raises:
        CodespecError: another run is at it, or it cannot be made.
    """
    folder = training_folder()
    try:
        keep_private(folder.parent)
        lock = hold(folder.with_suffix(".lock"))
    except OSError as error:
        raise CodespecError(f"{folder}: cannot be made ({error.strerror or error})") from error
    if lock is None:
        raise CodespecError("a draft is being trained on accepted completions already")
    try:
        shutil.rmtree(folder, ignore_errors=True)  # of a run that was interrupted
        keep_private(folder)
        yield folder
    except (OSError, RuntimeError) as error:
        if folder.exists():
            raise
        raise CodespecError("what was accepted has been deleted meanwhile, and the training ended") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)
