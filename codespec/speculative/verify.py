"""Accept or reject what a draft proposed."""

from __future__ import annotations

from dataclasses import dataclass

from codespec.protocols import CodespecError, FinishReason, GrammarState, Logits, Proposal
from codespec.speculative.sampling import LogitSampler


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
