"""What requests to an engine elsewhere cost: the way there and back, and its work."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from codespec.draft.costs import LONGEST, CostCurve, Measurement, RunningCosts
from codespec.draft.storage.profiles import Profiles, Setup
from codespec.draft.wrapped_target import WrappedTarget
from codespec.protocols import Aborted, Cancel, CodespecError, Logits, Target
from codespec.remote.errors import Away

SIZES = (1, 2, 4, 8, 16, 32)
"""Tokens of the requests that are measured, each twice at every context."""
RUN = 16
"""Tokens of which the first one opens a stream."""
LEAST_MS = 1.0
"""Between two tokens of a stream that was not seen yet."""
SHARE = 0.1
"""Of the latest token in the mean of those of a stream."""
FAR = 480
"""Tokens before those of the second context: what an engine reads anew with every request shows there."""

_log = logging.getLogger(__name__)


class _Reader(WrappedTarget):
    """A target that goes on with a text of its own, whatever tokens it is given; it does what ``Measurement`` needs."""

    def __init__(self, target: Target, text: Sequence[int]) -> None:
        super().__init__(target)
        self._text = text

    def decode(self, tokens: Sequence[int], last: int | None = None) -> Logits:
        place = self.n_past
        return self._target.decode(self._text[place : place + len(tokens)], last)


class FollowedCosts(RunningCosts):
    """Costs of an engine that writes on by itself while nothing is proposed: a token that follows a single one is there
    sooner than a request could be, and one that comes first opens the stream for those behind it.

    Args:
        curve: of requests.
        way_ms: milliseconds of the way there and back.
        follows: whether it writes on now; where it does not, every token is a request.
    """

    def __init__(self, curve: CostCurve | None, way_ms: float, follows: Callable[[], bool]) -> None:
        self._way_ms, self._follows = way_ms, follows
        self._token_ms = 0.0  # between two tokens of a stream; 0: none was seen
        super().__init__(curve)

    def kept(self, context: int) -> list[float]:
        """``Costs`` of the next pass, after one over ``last`` tokens."""
        costs = super().kept(context)
        token_ms = self._token_ms or max(LEAST_MS, costs[1] - self._way_ms)
        opening = costs[1] - token_ms
        if opening <= 0 or self.fixed or not self.measured or not self._follows():
            return costs
        if self.last != 1:
            return [*costs[:1], token_ms + opening / RUN, *costs[2:]]
        # Who leaves a stream opens another one, sooner or later.
        return [*costs[:1], token_ms, *(cost + opening for cost in costs[2:])]

    def observe(self, n: int, context: int, ms: float, rejected: bool = False) -> None:
        """As ``RunningCosts.observe``."""
        if n == self.last == 1 and self.measured and not self.fixed and self._follows():
            before = self.kept(context)[1]
            self._token_ms = before + (ms - before) * SHARE
        else:
            super().observe(n, context, ms, rejected)


class RequestCosts:
    """T(n) of requests for n tokens: from an earlier run, else measured in idle time; see ``ModelCosts``.

    Args:
        text: tokens that are asked about, as the engine would make them of a text.
        vocabulary: the file that stands for the model.
        engine: what tells this engine and model from others; it is kept as a hash alone.
        target: makes a target of its own for measuring, whose requests a flag stops.
        length: tokens of the engine's context.
        way_ms: of the way there and back.
        follows: see ``FollowedCosts``.

    Attributes:
        running: the costs, updated by every request of a generation.
    """

    def __init__(
        self,
        text: Sequence[int],
        vocabulary: Path,
        engine: str,
        target: Callable[[Cancel], Target],
        length: int,
        way_ms: float,
        follows: Callable[[], bool],
        profiles: Profiles,
    ) -> None:
        self._text = text
        self._path, self._target, self._profiles = vocabulary, target, profiles
        self._setup = Setup(key_of(engine), (), 0, 0, "", "", False, 0)
        self.running = FollowedCosts(profiles.curve(vocabulary, self._setup), way_ms, follows)
        self._done = self.running.measured
        far = min(FAR, length - LONGEST - 2, len(text) - LONGEST)
        self._measurement = Measurement((0, max(0, far)), SIZES, repeats=1)

    def measure(self, go_on: Callable[[], bool], cancellation: Cancel) -> bool:
        """Measure and store, unless that was done; False where it was stopped, to go on at the next call.

        Args:
            go_on: asked before every request.
            cancellation: stops a request that waits.
        """
        if self._done:
            return True
        try:
            curve = self._measurement.run(_Reader(self._target(cancellation), self._text), lambda _: go_on())
        except (Aborted, Away):
            return False
        except CodespecError as error:  # costs are learnt from decoding anyway
            _log.debug("not measured: %s", error)
            self._done = True
            return True
        if curve is None:
            return False
        # That a request has another size than the one before costs an engine nothing.
        curve = replace(curve, switch_ms=0.0)
        self._profiles.keep_curve(self._path, self._setup, curve)
        self.running.replace(curve)
        self._done = True
        return True


def key_of(engine: str) -> str:
    """A hash that tells engines apart, and does not tell where they are."""
    return "remote " + hashlib.sha256(engine.encode()).hexdigest()[:24]
