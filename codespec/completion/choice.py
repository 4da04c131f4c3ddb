"""Chooses among candidates by what follows the cursor, for models that were not trained to fill in.

Such a model writes on from the text before the cursor and does not see the text after it. But it can say how likely
that text is once a candidate stands before it: of several candidates the one is taken after which candidate and
following lines together are most likely. This is Bayes' rule, with the model as the prior of the candidates.
"""

from __future__ import annotations

from collections.abc import Sequence

from codespec.engine.engine import Generating
from codespec.protocols import Limits, Statistics

LINES, LONGEST = 3, 240
"""Lines after the cursor that are looked at, blank ones not counted, and characters of them at most."""
OTHERS = 2
"""Candidates that are sampled beside the text that the settings ask for."""
WITHIN = 0.75
"""The part of the time budget within which choosing must end."""
LONGER = 16
"""Tokens that a candidate may have beyond twice those of the first one."""
TOGETHER = 1.7
"""What a pass over one token of each of the others takes, in passes over one token."""


def following_lines(suffix: str) -> str:
    """The beginning of the text after the cursor that candidates are judged by: ``LINES`` lines that are not blank."""
    end = found = 0
    while found < LINES and end < min(len(suffix), LONGEST):
        newline = suffix.find("\n", end, LONGEST)
        next_end = newline + 1 if newline >= 0 else min(len(suffix), LONGEST)
        found += bool(suffix[end:next_end].strip())
        end = next_end
    return suffix[:end] if found else ""


def time_for_others(
    engine: Generating, prompt: int, first: Statistics, following: str, limits: Limits
) -> Limits | None:
    """The limits of the other candidates; None where sampling and judging them would take too long.

    Args:
        prompt: tokens of the prompt.
        first: what the first candidate took.
    """
    longest = min(limits.max_tokens, 2 * first.tokens + LONGER)
    if not limits.time_budget_ms:
        return Limits(longest)
    left = WITHIN * limits.time_budget_ms - first.total_ms
    judged = (1 + OTHERS) * (first.tokens + len(engine.vocabulary.tokenize(following)))
    judging = engine.reading_ms(judged)
    expected = TOGETHER * max(4, first.tokens) * engine.pass_ms(prompt) + judging
    return Limits(longest, left - judging) if expected <= left else None


def most_likely(chances: Sequence[float]) -> int:
    """The index of the greatest chance, the first of several."""
    return max(range(len(chances)), key=chances.__getitem__)
