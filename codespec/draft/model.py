"""A smaller model as the draft."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from codespec.draft.sequence import HeldSequence
from codespec.protocols import CodespecError, GrammarState, Pick, Proposal, Sampler, Target


class ModelDraft:
    """Proposes what a smaller model with the target's vocabulary would generate, chosen by the target's sampler.

    The KV cache is kept between calls: a call decodes only what the model has not seen.

    Args:
        model: the small model's own sequence.
        end_tokens: tokens after which there is nothing to propose; one may end a proposal.
        among: the only tokens that ``model`` has, ascending; None: all.
    """

    source = "model"

    def __init__(self, model: Target, end_tokens: frozenset[int], among: npt.NDArray[np.int64] | None = None) -> None:
        self._sequence = HeldSequence(model)
        self._among = among
        self._end_tokens = end_tokens

    def propose(
        self,
        tokens: Sequence[int],
        grammar: GrammarState | None,
        sampler: Sampler,
        more: Callable[[float], bool],
    ) -> Proposal:
        """As ``protocols.Draft.propose``; ends early at an end token, where the grammar allows nothing, or where its
        context is full.

        Raises:
            CodespecError: nothing could be proposed (``tokens`` may be too long for the model's context).
            Aborted: another thread asked to stop.
                After either, ``grammar`` is as before the call.
        """
        proposed: list[int] = []
        if not tokens or not more(1.0):
            return Proposal((), source=self.source)
        try:
            logits, _ = self._sequence.bring_to(tokens)
            while True:
                # The sequence now holds `tokens` and `proposed`: the history that the sampler asks for.
                pick = sampler.pick(logits[-1], self._sequence.tokens, grammar, self._among)
                if pick is None or (grammar is not None and not grammar.accept((pick.token,))):
                    break
                proposed.append(pick.token)
                if pick.token in self._end_tokens or (grammar is not None and grammar.finished):
                    break
                if not more(pick.confidence):
                    break
                logits = self._sequence.extend((pick.token,), 1)
        except CodespecError:
            if not proposed:
                raise
        except BaseException:
            if grammar is not None:
                grammar.rollback(len(proposed))
            raise
        return Proposal(tuple(proposed), self.source)

    def forget(self) -> None:
        """Empty the KV cache: what was decoded is of no use any more."""
        self._sequence.rollback(0)

    def kept(self, tokens: Sequence[int]) -> int:
        """How many of ``tokens`` need not be decoded to know what follows them."""
        return self._sequence.kept(tokens)

    def next(self, tokens: Sequence[int], kept: int, grammar: GrammarState | None, sampler: Sampler) -> Pick | None:
        """The token after ``tokens``, of which the first ``kept`` are held; None where the grammar allows none.

        Raises:
            CodespecError, Aborted: the model could not decode.
        """
        self._sequence.rollback(kept)
        logits = self._sequence.extend(tokens[kept:], 1)
        return sampler.pick(logits[-1], tokens, grammar, self._among)
