"""What an engine learns about its models: the costs of forward passes, and the drafts' acceptance rates."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from time import get_clock_info, process_time

from codespec.draft.acceptance import Acceptance
from codespec.draft.costs import LONGEST, Measurement, RunningCosts, plan
from codespec.draft.storage.profiles import Profiles, Setup
from codespec.llama.context import Context
from codespec.llama.runtime import Cancellation
from codespec.protocols import Aborted, CodespecError

MEASURE_S = 3.0
"""About how many seconds a model is measured; a slow one takes longer."""
FAR = 512
"""Tokens in the KV cache of the forward passes that are measured besides those with an empty one."""

_log = logging.getLogger(__name__)


def busy_clock(setup: Setup) -> Callable[[], float] | None:
    """``Measurement``'s ``busy`` for a model; None where the time that it computes cannot be told."""
    one_thread = setup.threads == 1 and setup.gpu_layers == 0
    return process_time if one_thread and get_clock_info("process_time").resolution < 1e-5 else None


class ModelCosts:
    """The costs of one model's forward passes in one context: from an earlier run, else measured in idle time.

    Args:
        context: the model's; measuring takes another one like it, of at most 546 tokens.
        rows: of logits that a forward pass returns; None is all.

    Attributes:
        running: the costs, updated by every forward pass.
    """

    def __init__(self, context: Context, rows: int | None, profiles: Profiles) -> None:
        self._context, self._rows, self._profiles = context, rows, profiles
        self._path = context.model.path
        self._setup = Setup.of(context, rows)
        self.running = RunningCosts(profiles.curve(self._path, self._setup), context.model.size, context.first_threads)
        self.running.replays = context.model.recurrent
        context.on_threads = self.running.use
        self._done = self.running.measured
        self._far = max(0, min(FAR, context.length - LONGEST - 1))
        self._measurement: Measurement | None = None

    def measure(self, go_on: Callable[[], bool], cancellation: Cancellation) -> bool:
        """Measure and store, unless that was done; False where it was stopped, to go on at the next call, or where
        other programs need the CPUs: that would be slow, and its figures wrong.

        Args:
            go_on: asked before every forward pass.
            cancellation: stops a forward pass that runs.
        """
        if self._done or self._context.padded:  # whose passes have so few rows that there is no curve
            return True
        if not go_on() or self._context.crowded:
            return False
        try:
            alike = self._context.alike(self._far + LONGEST + 1, follow=False)
            with alike as context, context.cancellable(cancellation):
                self._done = self._measure(context, go_on)
        except Aborted:
            return False
        except CodespecError as error:  # no memory for another context, say: costs are learnt from decoding anyway
            _log.debug("%s: not measured: %s", self._path, error)
            self._done = True
        return self._done

    def _measure(self, context: Context, go_on: Callable[[], bool]) -> bool:
        target = context.sequence()
        if self._measurement is None:
            found = plan(target, MEASURE_S, self._far, lambda _: go_on())
            if found is None:
                return False
            self._measurement = Measurement(*found, self._rows, busy=busy_clock(self._setup))
        curve = self._measurement.run(target, lambda _: go_on())
        if curve is None:
            return False
        if not self._measurement.disturbed:  # else it serves for now, on a machine as busy as it is
            self._profiles.keep_curve(self._path, self._setup, curve)
        self.running.replace(curve)
        _log.debug(
            "%s: measured, a pass over 1 token takes %.2f ms, over %d %.2f",
            self._path.name, curve.ms[0][0], curve.tokens[-1], curve.ms[0][-1],
        )  # fmt: skip
        return True


class Calibration:
    """Acceptance rates of one draft model and of the n-grams beside it, by kind of text.

    Args:
        adapters: keys of the target's and the draft's LoRA adapter.
    """

    def __init__(
        self, target: Path, draft: Path | None, profiles: Profiles, adapters: tuple[str, str] = ("", "")
    ) -> None:
        self._target, self._draft, self._profiles, self._adapters = target, draft, profiles, adapters
        self._kinds = profiles.acceptance(target, draft, adapters)
        self._stored = {kind: found.as_json() for kind, found in self._kinds.items()}

    def of(self, kind: str) -> Acceptance:
        """The acceptance rates of a kind of text; updated while drafting."""
        return self._kinds.setdefault(kind, Acceptance())

    def save(self) -> None:
        """Store the rates that have changed since the last time."""
        changed = {kind: found for kind, found in self._kinds.items() if found.as_json() != self._stored.get(kind, [])}
        if changed:
            self._profiles.keep_acceptance(self._target, self._draft, changed, self._adapters)
            self._stored |= {kind: found.as_json() for kind, found in changed.items()}
