"""Accept or reject what a draft proposed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from codespec.protocols import CodespecError, Distribution, FinishReason, GrammarState, Logits
from codespec.speculative.noise import Purpose
from codespec.speculative.sampling import LogitSampler, certain

Choose = Callable[[npt.NDArray[np.float32], Sequence[int], GrammarState | None], int | None]
"""Like ``Sampler.pick``, without the confidence: (logits [V], tokens, grammar) to a token or None."""

OnlyChoice = Callable[[npt.NDArray[np.float32]], int | None]
"""What a ``Choose`` gives from logits [V] wherever the grammar allows it, or None: not known without it."""


@dataclass(frozen=True)
class Verdict:
    """What the target made of a proposal.

    Attributes:
        tokens: what the text grows by: the accepted tokens, then the target's own; without an end token.
        accepted: how many proposed tokens the target agreed to, an end token counted.
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
    only_choice: OnlyChoice | None = None,
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
        choose: ``LogitSampler.choose`` of the sampler that the draft used; with ``only_choice``, its
            ``choose_closely``.
        end_tokens: tokens that end the text and are not part of it.
        room: how many tokens the text may still grow by, at least 1.
        only_choice: of the same sampler; the grammar is then asked for many tokens at once.

    Raises:
        CodespecError: the logits are not numbers, or the grammar contradicted itself.
    """

    def next_token(row: int) -> tuple[int | None, bool]:
        token = choose(target_logits[row], tokens, grammar)
        return token, row < len(proposal) and proposal[row] == token

    def glance(row: int) -> tuple[list[int], bool]:
        assert only_choice is not None
        likely: list[int] = []
        for place in range(row, min(len(proposal) + 1, room)):
            token = only_choice(target_logits[place])
            if token is None or token in end_tokens:
                break
            likely.append(token)
            if place == len(proposal) or token != proposal[place]:
                return likely, False
        return likely, True

    return _grow(next_token, tokens, grammar, end_tokens, room, None if only_choice is None else glance)


def verify_rejection(
    target_logits: Logits,
    proposal: Sequence[int],
    probabilities: Sequence[Distribution | None] | None,
    tokens: list[int],
    grammar: GrammarState | None,
    sampler: LogitSampler,
    end_tokens: frozenset[int],
    room: int,
) -> Verdict:
    """Accept each proposed token with the probability that leaves the target's law as it is.

    Speculative sampling (Leviathan, Kalman, Matias, arXiv 2211.17192, algorithm 1; Chen et al., arXiv 2302.01318,
    algorithm 2): the text follows the law of ``sampler.distribution`` whatever the draft proposes, provided that each
    token was drawn from its entry of ``probabilities``. The first rejection gives a token from the residual; a
    proposal accepted to its end is followed by one of the target's own.

    Args:
        target_logits, proposal, tokens, grammar, end_tokens, room: as in ``verify_coupled``.
        probabilities: ``Proposal.probabilities``; a token without is certain to be proposed: its distribution is 1
            there and 0 elsewhere.
        sampler: the one that the draft used; filters and grammar apply before any ratio is taken.

    Raises:
        CodespecError: as ``verify_coupled``, or a proposed token has probability 0 in its own entry.
    """

    def next_token(row: int) -> tuple[int | None, bool]:
        target_probs = sampler.distribution(target_logits[row], tokens, grammar)
        if target_probs is None:
            return None, False
        if row == len(proposal):
            return sampler.draw(target_probs, tokens, Purpose.TARGET), False
        draft_probs = None if probabilities is None else probabilities[row]
        accept, residual = acceptance(target_probs, draft_probs or certain(proposal[row]), proposal[row])
        if sampler.accepts(accept, tokens):
            return proposal[row], True
        return sampler.draw(residual, tokens, Purpose.TARGET), False

    return _grow(next_token, tokens, grammar, end_tokens, room)


def acceptance(target_probs: Distribution, draft_probs: Distribution, token: int) -> tuple[float, Distribution]:
    """With what probability to accept ``token``, drawn from ``draft_probs``, and what to draw from otherwise.

    ``min(1, p(token) / q(token))`` and ``norm(max(0, p - q))``, with ``p`` the target's law and ``q`` the draft's.

    Raises:
        CodespecError: ``q(token)`` is 0.
    """
    drawn_with = _probability(draft_probs, token)
    if not drawn_with > 0:
        raise CodespecError(f"the draft proposed token {token}, to which it gives no probability; please report this")
    accept = min(1.0, _probability(target_probs, token) / drawn_with)
    ids, target = target_probs
    # Both lists are in orders of their own: token by token, not place by place.
    draft = np.zeros(1 + max(ids.max(), draft_probs[0].max()))
    draft[draft_probs[0]] = draft_probs[1]
    # Where only the draft has probability nothing is left, so the target's ids suffice.
    left = np.maximum(target - draft[ids], 0)
    total = left.sum()
    # Nothing at all is left only where the two are equal but for rounding, and a rejection next to impossible.
    return accept, (ids, left / total) if total > 0 else target_probs


def _probability(distribution: Distribution, token: int) -> float:
    ids, probs = distribution
    return float(probs[ids == token].sum())


def _grow(
    next_token: Callable[[int], tuple[int | None, bool]],
    tokens: list[int],
    grammar: GrammarState | None,
    end_tokens: frozenset[int],
    room: int,
    glance: Callable[[int], tuple[list[int], bool]] | None = None,
) -> Verdict:
    """Let ``tokens`` grow for as long as ``next_token(row)`` says that its token is the proposed one.

    ``glance(row)`` gives the tokens from there on where the grammar allows them, as far as that is easily told, and
    whether all of them were proposed.
    """
    before = len(tokens)
    accepted = 0
    reason: FinishReason | None = None

    def over() -> FinishReason | None:
        if grammar is not None and grammar.finished:
            return "stop"
        return "length" if len(tokens) - before == room else None

    while True:
        if glance is not None:
            likely, agreed = glance(accepted)
            taken = grammar.accept(likely) if likely and grammar is not None else len(likely)
            tokens += likely[:taken]
            agreed = agreed or taken < len(likely)
            accepted += taken if agreed else taken - 1
            reason = over() if taken else None
            if reason is not None or not agreed:
                break
        token, agreed = next_token(accepted)
        if token is None:
            reason = "grammar"
            break
        accepted += agreed
        if token in end_tokens:
            reason = "stop"
            break
        tokens.append(token)
        if grammar is not None and grammar.accept((token,)) != 1:
            raise CodespecError(f"the grammar allowed token {token} and then refused it; please report this")
        reason = over()
        if reason is not None or not agreed:
            break
    return Verdict(tuple(tokens[before:]), accepted, reason)
