"""Accept or reject what a draft proposed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from codespec.protocols import CodespecError, FinishReason, GrammarState, Logits

Choose = Callable[[npt.NDArray[np.float32], Sequence[int], GrammarState | None], int | None]
"""Like ``Sampler.pick``, without the confidence: (logits [V], tokens, grammar) to a token or None."""


@dataclass(frozen=True)
class Verdict:
    """What the target made of a proposal.

    Attributes:
        tokens: what the text grows by: the accepted tokens, then the target's own; without an end token.
        accepted: how many proposed tokens the target chose too, an end token counted.
        finish_reason: why the text ends here, or None.
    """

    tokens: tuple[int, ...]
    accepted: int
    finish_reason: FinishReason | None


def verify_coupled(
    target_logits: Logits,
    proposal: Sequence[int],
    tokens: list[int],
    grammar: GrammarState | None,
    choose: Choose,
    end_tokens: frozenset[int],
    room: int,
) -> Verdict:
    """Choose the target's own tokens one after the other, for as long as the proposal foresaw them.

    The greedy case of Leviathan, Kalman, Matias (arXiv 2211.17192, section 2.3), and with Gumbel noise the
    coupled one (arXiv 2408.07978): every token is the one that the target alone would have chosen, and the
    proposal decides only how many rows of ``target_logits`` can be used.

    Args:
        target_logits: float32 [1 + len(proposal), V]; row i follows ``tokens`` and ``proposal[:i]``.
        proposal: the draft's tokens.
        tokens: the text so far, prompt included; grows by the verdict's tokens.
        grammar: the target's; advances over the verdict's tokens.
        choose: ``LogitSampler.choose`` of the sampler that the draft used.
        end_tokens: tokens that end the text and are not part of it.
        room: how many tokens the text may still grow by, at least 1.

    Raises:
        CodespecError: the logits are not numbers, or the grammar contradicted itself.
    """
    before = len(tokens)
    accepted = 0
    reason: FinishReason | None = None
    while True:
        token = choose(target_logits[accepted], tokens, grammar)
        if token is None:
            reason = "grammar"
            break
        agreed = accepted < len(proposal) and proposal[accepted] == token
        accepted += agreed
        if token in end_tokens:
            reason = "stop"
            break
        tokens.append(token)
        if grammar is not None:
            if grammar.accept((token,)) != 1:
                raise CodespecError(f"the grammar allowed token {token} and then refused it; please report this")
            if grammar.finished:
                reason = "stop"
                break
        if len(tokens) - before == room:
            reason = "length"
            break
        if not agreed:
            break
    return Verdict(tuple(tokens[before:]), accepted, reason)
