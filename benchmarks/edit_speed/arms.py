"""What writes the windows: the target alone, all drafts, those without the window, and one that knows the text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter, process_time

import numpy as np

from benchmarks.decode.decode import Oracle, best_length
from benchmarks.decode.replay import TimedTarget
from benchmarks.edit_speed.cases import Tokens
from benchmarks.edit_speed.replay_model import ReplayModel
from codespec.draft.costs import LONGEST, CostCurve
from codespec.engine.local import LocalEngine
from codespec.engine.prompt_cache import PromptCacheSettings
from codespec.languages import by_path
from codespec.protocols import CodespecError, Draft, Limits, Logits, Sampling, Target

ARMS = ("target", "all", "without window", "oracle")

TARGET_TOKENS = 48
"""Of each text that the target alone writes: every pass of it takes the same."""

_MEASUREMENTS = 3
_NO_CACHE = PromptCacheSettings(memory=0)


@dataclass(frozen=True)
class Sample:
    """One text: milliseconds for a token after the first pass, the rows of each pass, and tokens by source.

    Attributes:
        by_source: (drafted, accepted).
    """

    ms_per_token: float
    passes: tuple[int, ...]
    by_source: dict[str, tuple[int, int]]


class AnyPromptTarget(TimedTarget):
    """Takes whatever is in the KV cache for the prompt, where there is as much: what it says does not depend on it.

    Reading the prompt is not measured, and with the longest prompt first only that one is read.
    """

    _held = 0

    @property
    def n_past(self) -> int:
        return self._held

    def decode(self, tokens: Sequence[int], last: int | None = None) -> Logits:
        end = self._held + len(tokens)
        if last == 0 and end <= self._target.n_past:
            self._held = end
            return np.empty((0, 0), np.float32)
        if self._held < self._target.n_past:
            self._target.rollback(self._held)
        logits = super().decode(tokens, last)
        self._held = end
        return logits

    def rollback(self, n_past: int) -> None:
        self._held = min(self._held, n_past)


class Bench:
    """An engine over a ``ReplayModel``.

    Args:
        curve: the target's time is taken from these costs; None: measured and by the clock.
    """

    def __init__(self, model: ReplayModel, curve: CostCurve | None, threads: int = 0) -> None:
        self._model, self.modelled = model, curve is not None
        self._clock = process_time if self.modelled else perf_counter
        self._targets: list[TimedTarget] = []
        self.engine = LocalEngine(
            model.path, threads=threads, wrap=self._wrap, clock=self._clock, prompt_cache=_NO_CACHE
        )
        try:
            for _ in range(1 if self.modelled else _MEASUREMENTS):
                if self.engine.measure(lambda: True):
                    break
            self.curve = curve or self.engine.costs.curve
            if curve is not None:
                self.engine.costs.replace(curve)
                self.engine.costs.fixed = True
        except BaseException:
            self.engine.close()
            raise

    def _wrap(self, sequence: Target, role: str) -> Target:
        self._targets.append((AnyPromptTarget if role == "target" else TimedTarget)(sequence, self._clock))
        return self._targets[-1]

    def prepare(self, case: Tokens) -> None:
        """Turn to a case: its text, its language's draft, its prompt."""
        self._model.say([*case.prompt, *case.written])
        self.engine.drafts.choose(self.engine.drafts.find("auto", by_path(case.case.path)))
        self._run(case, False, Limits(1))

    def run(self, case: Tokens, arm: str) -> Sample:
        """Write a case's text, which is prepared.

        Raises:
            CodespecError: something else was written.
        """
        limits = Limits(min(TARGET_TOKENS, len(case.written)) if arm == "target" else len(case.written))
        before = [timed.ms for timed in self._targets]
        began = self._clock()
        passes, written = self._run(case, self._draft(case, arm), limits, with_window=arm != "without window")
        statistics = self.engine.statistics
        ms = (self._clock() - began) * 1e3 - statistics.prefill_ms
        if written != case.written[: limits.max_tokens]:
            raise CodespecError(f"{self._model.path}: another text was written than it says; is it mapped into memory?")
        drafts = sum(timed.ms - earlier for timed, earlier in zip(self._targets[1:], before[1:], strict=False))
        if self.modelled:
            ms += self.passes_ms(passes) - (self._targets[0].ms - before[0])
        if arm == "oracle":
            ms -= drafts
        sources = {name: (count.drafted, count.accepted) for name, count in statistics.by_source.items()}
        return Sample(ms / len(written), tuple(passes), sources)

    def passes_ms(self, passes: Sequence[int]) -> float:
        """The milliseconds of passes over so many rows each, at the costs of the curve."""
        costs = self.curve.at(0)
        switches = sum(one != other for one, other in zip([0, *passes], passes, strict=False))
        ms = sum(costs[rows] if rows <= LONGEST else costs[LONGEST] * rows / LONGEST for rows in passes)
        return ms + switches * self.curve.switch_ms

    def _run(
        self, case: Tokens, draft: bool | Draft, limits: Limits, with_window: bool = False
    ) -> tuple[list[int], list[int]]:
        sampling = Sampling(temperature=0.0, logit_bias=dict.fromkeys(self.engine.vocabulary.end_tokens, float("-inf")))
        chunks = self.engine.generate(
            case.prompt,
            None,
            sampling,
            limits,
            speculate=draft,
            language=by_path(case.case.path).id,
            window=case.window if with_window else (),
            changes=case.changes if with_window else (),
            document=case.document if with_window else (),
        )
        rounds = [chunk.round for chunk in chunks if chunk.round is not None]
        return [1 + len(each.proposed) for each in rounds], [token for each in rounds for token in each.tokens]

    def _draft(self, case: Tokens, arm: str) -> bool | Draft:
        if arm == "oracle":
            return Oracle([*case.prompt, *case.written], best_length(self.engine.costs.kept(len(case.prompt))))
        return arm != "target"

    def close(self) -> None:
        """Free the models."""
        self.engine.close()
