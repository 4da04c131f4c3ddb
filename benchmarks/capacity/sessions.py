"""Typing sessions: when developers press keys, and what each key asks of an engine.

The pause before a key is drawn from a log-normal distribution (median ``KEY_MS``, sigma ``KEY_SIGMA``); behind a line
or a bracket a typist stops to think in one of ``1 / THINKS`` cases, for ``THINKS_MS``. ``python -m benchmarks latency``
types real texts in this way (``Pauses``); a simulation draws the keys of thousands of typists at once (``draw``).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

KEY_MS, KEY_SIGMA = 130.0, 0.45
THINKS, THINKS_MS = 0.25, (300.0, 1_500.0)
OPENING = "\n([{:"
"""Characters behind which a typist may stop to think."""
SHORTEST, LONGEST = 40, 400  # characters of an insertion
LAST_WAIT_S = 2.0
BETWEEN_S = 1.0  # from one document to the next

OPENING_SHARE = 0.157
"""Of all keys, those behind one of these; over 150 insertions of codespec's own history, as the next figures are."""
KEYS = (20, 200)
"""Keys of an insertion are drawn between these: 110 on average, as there (an indentation is no key)."""
_PHASE_S = 60.0  # typed before the simulation begins, so that not everybody opens a document at once


class Pauses:
    """The pauses of one typist."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def before(self, last: str) -> float:
        """Milliseconds before the key behind ``last``."""
        if last in OPENING and self._random.random() < THINKS:
            return self._random.uniform(*THINKS_MS)
        return self._random.lognormvariate(0, KEY_SIGMA) * KEY_MS


@dataclass(frozen=True)
class Work:
    """What developers do, and what their completions are like.

    Attributes:
        prompt: tokens of a prompt that no cache holds anything of, as of a document that was just opened.
        reread: tokens of a cached prompt that a key makes the engine read anew: about two where the prefix stands last,
            the whole suffix where it does.
        answer: tokens of a completion, on average, at least 1; their numbers are geometrically distributed.
        memory: the share of keys that go on as the completion that is shown; those are answered from memory.
        debounce_ms: from a key to the editor's request.
        prefill: whether the engine reads what was typed at the key, before the request.
    """

    prompt: int = 1500
    reread: int = 2
    answer: float = 20.0
    memory: float = 0.5
    debounce_ms: float = 75.0
    prefill: bool = True


class Keys(NamedTuple):
    """Keys of several developers, in order of time; arrays of one length.

    Attributes:
        at: seconds.
        who: the developer, from 0 on.
        until: when the same developer presses the next one, in seconds; infinite behind the last.
        opens: whether it is the first one in a document.
        luck: from 0 to 1: below ``Work.memory`` the key goes on as the completion that is shown, if one is.
        answer: tokens of the completion that a request behind this key gets.
    """

    at: NDArray[np.float64]
    who: NDArray[np.int64]
    until: NDArray[np.float64]
    opens: NDArray[np.bool_]
    luck: NDArray[np.float64]
    answer: NDArray[np.int64]

    def where(self, places: NDArray[Any]) -> Keys:
        """Some of them: a mask, or numbers in the order that is wanted."""
        at, who, until, opens, luck, answer = self
        return Keys(at[places], who[places], until[places], opens[places], luck[places], answer[places])

    @classmethod
    def joined(cls, parts: Sequence[Keys]) -> Keys:
        """Those of several developers, who are numbered in order from 0 on."""
        who = np.repeat(np.arange(len(parts)), [len(each.at) for each in parts])
        return cls(
            np.concatenate([each.at for each in parts]),
            who,
            np.concatenate([each.until for each in parts]),
            np.concatenate([each.opens for each in parts]),
            np.concatenate([each.luck for each in parts]),
            np.concatenate([each.answer for each in parts]),
        ).where(np.argsort(np.concatenate([each.at for each in parts]), kind="stable"))


def draw(developers: int | range, seconds: float, work: Work, seed: int) -> Keys:
    """What developers type in ``seconds``; whoever has the same number and seed types the same, whoever else types.

    Args:
        developers: how many, or which.
    """
    numbers = range(developers) if isinstance(developers, int) else developers
    return Keys.joined([_typed(np.random.default_rng([seed, number]), seconds, work) for number in numbers])


def _typed(rng: np.random.Generator, seconds: float, work: Work) -> Keys:
    """The keys of one developer, who is number 0."""
    count = int((seconds + _PHASE_S) / KEY_MS * 1e3) + 2 * KEYS[1]  # more than fit: the mean pause is above the median
    pauses = rng.lognormal(0.0, KEY_SIGMA, count) * KEY_MS
    thinks = rng.random(count) < OPENING_SHARE * THINKS
    pauses[thinks] = rng.uniform(*THINKS_MS, int(thinks.sum()))
    opens = np.zeros(count, bool)
    starts = np.cumsum(rng.integers(KEYS[0], KEYS[1] + 1, count // KEYS[0] + 1))
    opens[starts[starts < count]] = True
    pauses[opens] += (LAST_WAIT_S + BETWEEN_S) * 1e3
    at = np.cumsum(pauses) / 1e3 - rng.uniform(0.0, _PHASE_S)
    until = np.append(at[1:], np.inf)
    answer = rng.geometric(1.0 / max(1.0, work.answer), count)
    keys = Keys(at, np.zeros(count, np.int64), until, opens, rng.random(count), answer)
    return keys.where((at >= 0) & (at < seconds))
