"""How many tokens of a prompt are prefilled at a time: a request that comes meanwhile must not wait long."""

from __future__ import annotations

from codespec.draft.costs import LONGEST, RunningCosts
from codespec.llama.context import BATCH, EXACT_CHUNK

PREFILL_STEP_MS = 50.0
"""About how long the first step of a prefill takes, and so the wait of a request that comes meanwhile."""
LONGEST_STEP_MS = 500.0
"""The same of the last step: steps get longer, because many tokens at a time are decoded faster."""
PREFILL_ROWS = 64
"""Tokens of a prompt that are decoded at a time at most on a CPU: more are no faster."""


def prefill_steps(running: RunningCosts, padded: bool, on_gpu: bool) -> tuple[int, int, int]:
    """Tokens of the first step, and of a step at most: the longer no request comes, the less likely one is. And tokens
    at the end, at most, that need no step of their own: padded passes have steps of their own.

    Args:
        running: the costs of target calls.
    """
    if padded:
        return EXACT_CHUNK, EXACT_CHUNK, 1
    costs = running.kept(0)

    def within(ms: float) -> int:
        return max((n for n in range(1, LONGEST) if costs[n] <= ms), default=1)

    if within(PREFILL_STEP_MS) == LONGEST - 1:
        return PREFILL_ROWS, BATCH if on_gpu else PREFILL_ROWS, PREFILL_ROWS
    first = max(4, within(PREFILL_STEP_MS))
    most = PREFILL_ROWS if costs[LONGEST - 1] <= LONGEST_STEP_MS / 2 else max(first, within(LONGEST_STEP_MS))
    return first, most, first
