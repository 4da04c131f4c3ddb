"""Accept or reject what a draft proposed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from codespec.protocols import CodespecError, Distribution, FinishReason, GrammarState, Logits, Proposal
from codespec.speculative.noise import Purpose
from codespec.speculative.sampling import LogitSampler, certain


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


Verify = Callable[[Logits, Proposal, "list[int]", "GrammarState | None", LogitSampler, "frozenset[int]", int], Verdict]
"""``verify_coupled`` or ``verify_rejection``."""


def verification(sampler: LogitSampler) -> Verify:
    """How the proposals of a sampler are verified."""
    return verify_rejection if sampler.rejection else verify_coupled


def verify_coupled(
    target_logits: Logits,
    proposal: Proposal,
    tokens: list[int],
    grammar: GrammarState | None,
    sampler: LogitSampler,
    end_tokens: frozenset[int],
    room: int,
) -> Verdict:
    """Choose the target's own tokens one after the other, for as long as the proposal foresaw them.

    The greedy case of Leviathan, Kalman, Matias (arXiv 2211.17192, section 2.3), and with Gumbel noise the
    coupled one (arXiv 2408.07978): every token is the one that the target alone would have chosen, and the
    proposal decides only how many rows of ``target_logits`` can be used.

    Args:
        target_logits: float32 [1 + proposed, V]; row i follows ``tokens`` and the first i proposed ones.
        tokens: the text so far, prompt included; grows by the verdict's tokens.
        grammar: the target's; advances over the verdict's tokens, over many at once where the sampler has only one
            choice of each.
        sampler: the one that the draft used.
        end_tokens: tokens that end the text and are not part of it.
        room: how many tokens the text may still grow by, at least 1.

    Raises:
        CodespecError: the logits are not numbers, or the grammar contradicted itself.
    """
    proposed, before, accepted = proposal.tokens, len(tokens), 0
    end = before + room
    reason: FinishReason | None = None
    while True:
        likely: list[int] = []
        agreed = True
        for place in range(accepted, min(len(proposed) + 1, room)):
            only = sampler.only_choice(target_logits[place])
            if only is None or only in end_tokens:
                break
            likely.append(only)
            if place == len(proposed) or only != proposed[place]:
                agreed = False
                break
        if likely:
            taken = len(likely) if grammar is None else grammar.accept(likely)
            tokens += likely[:taken]
            agreed = agreed or taken < len(likely)
            accepted += taken if agreed else taken - 1
            reason = _over(tokens, grammar, end) if taken else None
            if reason is not None or not agreed:
                break
        token = sampler.choose_closely(target_logits[accepted], tokens, grammar)
        if token is None:
            reason = "grammar"
            break
        agreed = accepted < len(proposed) and proposed[accepted] == token
        accepted += agreed
        reason = _append(token, tokens, grammar, end_tokens, end)
        if reason is not None or not agreed:
            break
    return Verdict(tuple(tokens[before:]), accepted, reason)


def verify_rejection(
    target_logits: Logits,
    proposal: Proposal,
    tokens: list[int],
    grammar: GrammarState | None,
    sampler: LogitSampler,
    end_tokens: frozenset[int],
    room: int,
) -> Verdict:
    """Accept each proposed token with the probability that leaves the target's law as it is.

    Speculative sampling (Leviathan, Kalman, Matias, arXiv 2211.17192, algorithm 1; Chen et al., arXiv 2302.01318,
    algorithm 2): the text follows the law of ``sampler.distribution`` whatever the draft proposes, provided that each
    token was drawn from its entry of ``proposal.probabilities`` (one without is certain to be proposed: its
    distribution is 1 there and 0 elsewhere). Filters and grammar apply before any ratio is taken. The first rejection
    gives a token from the residual; a proposal accepted to its end is followed by one of the target's own.

    The arguments are those of ``verify_coupled``.

    Raises:
        CodespecError: as ``verify_coupled``, or a proposed token has probability 0 in its own entry.
    """
    proposed, before, accepted = proposal.tokens, len(tokens), 0
    while True:
        target_probs = sampler.distribution(target_logits[accepted], tokens, grammar)
        if target_probs is None:
            return Verdict(tuple(tokens[before:]), accepted, "grammar")
        if accepted == len(proposed):
            token, agreed = sampler.draw(target_probs, tokens, Purpose.TARGET), False
        else:
            draft_probs = None if proposal.probabilities is None else proposal.probabilities[accepted]
            token = proposed[accepted]
            accept, residual = acceptance(target_probs, draft_probs or certain(token), token)
            agreed = sampler.accepts(accept, tokens)
            if not agreed:
                token = sampler.draw(residual, tokens, Purpose.TARGET)
        accepted += agreed
        reason = _append(token, tokens, grammar, end_tokens, before + room)
        if reason is not None or not agreed:
            return Verdict(tuple(tokens[before:]), accepted, reason)


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


def _append(
    token: int, tokens: list[int], grammar: GrammarState | None, end_tokens: frozenset[int], end: int
) -> FinishReason | None:
    """Let the text grow by a token that the grammar allowed; why it ends there, or None."""
    if token in end_tokens:
        return "stop"
    tokens.append(token)
    if grammar is not None and grammar.accept((token,)) != 1:
        raise CodespecError(f"the grammar allowed token {token} and then refused it; please report this")
    return _over(tokens, grammar, end)


def _over(tokens: list[int], grammar: GrammarState | None, end: int) -> FinishReason | None:
    """Why the text ends where it is: the grammar wants no more, or it has the ``end`` tokens that it may have."""
    if grammar is not None and grammar.finished:
        return "stop"
    return "length" if len(tokens) == end else None
