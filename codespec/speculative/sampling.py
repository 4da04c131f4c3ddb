"""Which token comes next, given the logits: the same choice in the target and in every draft.

Order, as in llama.cpp: logit bias, penalties, grammar, top-k, top-p, min-p (the last two on the probabilities
at temperature 1), then temperature. Above temperature 0 the choice is ``argmax(logit / T + G)`` with Gumbel noise
``G`` that depends only on (seed, sample, index of the generated token, token id): a draft that sees the same noise
tends to make the same choice, and the text does not depend on the draft at all (Gumbel coupling, arXiv 2408.07978).

The grammar is asked token by token, downward from the best logit; its whole mask is computed only after
``REFUSALS`` refusals. Either way the outcome is the same.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from codespec.protocols import CodespecError, GrammarState, Pick, Sampling
from codespec.speculative.noise import gumbel
from codespec.speculative.ranges import check
from codespec.speculative.ranking import best_first, best_ids, top_p_count, top_p_of_all

Scores = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

REFUSALS = 8
"""Tokens that the grammar may refuse before its whole mask is computed. Between 4 and 16 is best where a mask costs as
much as ten answers, and nearly every token is refused."""

_LARGE = 40.0
"""Logits of which the sum of ``exp`` over a vocabulary is a float32, and that of the best of them no tiny one."""

_FEW = 16
"""Tokens near the best one from which on arrays take less time."""

_SURE = 1 - 1e-9
"""What a sum must stay below a limit by, for a sum in another order to do so, too."""


class _Choice(NamedTuple):
    """A token and what it was chosen from: the adjusted logits [V], the ids that filters left (None: no filters)."""

    token: int
    scores: Scores
    survivors: Ids | None
    greedy: bool = False


class LogitSampler:
    """Implements ``protocols.Sampler`` for one generation; target and drafts share the object.

    Args:
        sampling: the settings.
        prompt_length: tokens before the first generated one; the noise counts from there, so that trimming
            the prompt's beginning does not change it.

    Raises:
        CodespecError: a setting is out of its range.
    """

    complete = True
    """Whether its logits are those of all tokens."""

    def __init__(self, sampling: Sampling, prompt_length: int) -> None:
        check(sampling)
        self.sampling = sampling
        self.prompt_length = prompt_length
        bias = sorted(sampling.logit_bias.items())
        self._bias_ids = np.array([token for token, _ in bias], np.int64)
        self._bias = np.array([value for _, value in bias], np.float32)
        self._penalises = sampling.penalty_window > 0 and (
            sampling.repeat_penalty != 1 or sampling.frequency_penalty != 0 or sampling.presence_penalty != 0
        )
        self._unfiltered = sampling.top_k == 0 and sampling.top_p >= 1 and sampling.min_p == 0
        # Of tokens below this distance from the best score none is chosen.
        self._reach: float | None = None
        if sampling.temperature == 0:
            self._reach = 0.0
        elif sampling.min_p > 0:
            self._reach = math.log(sampling.min_p)
        lowers = not self._penalises and all(value <= 0 for _, value in bias)
        self._lowered = frozenset(token for token, _ in bias) if lowers and self._reach is not None else None
        self._least_size = bias[-1][0] + 1 if bias else 1
        self._nearness = self._lowered is not None and sampling.min_p > 0 and sampling.top_k > 0 and self._reach != 0
        self._bits = np.zeros(0, np.uint32)

    def pick(
        self, logits: Scores, tokens: Sequence[int], grammar: GrammarState | None, among: Ids | None = None
    ) -> Pick | None:
        """The token after ``tokens`` (prompt included), given its logits [V]; equal scores go to the lowest id.

        ``confidence`` is the token's probability at temperature 1 among the tokens that survive grammar and
        filters. Without filters (greedy, or every one off) it is its share of all tokens but the better-scored
        ones that the grammar refused: a lower bound, since others may be refused too, or banned.

        Args:
            among: ids in ascending order, where all other logits are ``-inf``: knowing them saves time.

        Returns:
            None where nothing may come next: the grammar, the bias or the logits (``-inf``) ban every token.

        Raises:
            CodespecError: a logit is NaN or infinite, or ``logit_bias`` names a token that does not exist.
        """
        best = self._best_among(logits, among, grammar)
        if best is not None:
            return best
        chosen = self._choose_near(logits, tokens, grammar) or self._choose(logits, tokens, grammar)
        return None if chosen is None else Pick(chosen.token, _confidence(chosen))

    def _best_among(self, logits: Scores, among: Ids | None, grammar: GrammarState | None) -> Pick | None:
        """``pick`` where the best logit decides; None where that needs a closer look."""
        if self._lowered is None or self.sampling.temperature > 0 or len(logits) < self._least_size:
            return None
        scores = logits if among is None else logits[among]
        best = int(scores.argmax())
        token, top = best if among is None else int(among[best]), float(scores[best])
        if not -math.inf < top < math.inf or token in self._lowered:
            return None
        if grammar is not None and not grammar.allows(token):
            return None
        # Without another pass to lower the scores, where they are no powers that float32 does not hold.
        shift = 0.0 if abs(top) < _LARGE else top
        weights = np.exp(scores - top if shift else scores)
        return Pick(token, math.exp(top - shift) / float(np.add.reduce(weights)))

    def choose(self, logits: Scores, tokens: Sequence[int], grammar: GrammarState | None) -> int | None:
        """The target's own token: that of ``pick`` at less cost."""
        best = self.only_choice(logits)
        if best is not None and (grammar is None or grammar.allows(best)):
            return best
        return self.choose_closely(logits, tokens, grammar)

    def choose_closely(self, logits: Scores, tokens: Sequence[int], grammar: GrammarState | None) -> int | None:
        """``choose`` where ``only_choice`` did not help: it gave no token, or one that the grammar refuses."""
        # A target's grammar remembers at which ends it was asked, and a text is cut back to one of those: ask as ever.
        chosen = self._choose_near(logits, tokens, None) if grammar is None else None
        chosen = chosen or self._choose(logits, tokens, grammar)
        return None if chosen is None else chosen.token

    def only_choice(self, logits: Scores) -> int | None:
        """The token that ``choose`` gives wherever the grammar allows it; None where that needs a closer look."""
        if self._lowered is None or self._reach is None or len(logits) < self._least_size:
            return None
        # The best logit is the best score unless something lowered it: no copy of all logits is needed.
        best = int(logits.argmax())
        top = float(logits[best])
        if not -math.inf < top < math.inf or best in self._lowered:
            return None
        if self._reach and np.count_nonzero(logits >= top + self._reach) > 1:
            return None
        return best

    def _choose(self, logits: Scores, tokens: Sequence[int], grammar: GrammarState | None) -> _Choice | None:
        scores = self._checked(logits, tokens)
        if scores is None:
            return None
        if self.sampling.temperature == 0:
            token = self._best_allowed(scores, grammar)
            return None if token is None else _Choice(token, scores, None, greedy=True)
        if self._unfiltered:
            perturbed = self._perturbed(scores.astype(np.float64), tokens, np.arange(len(scores)))
            token = self._best_allowed(perturbed, grammar)
            return None if token is None else _Choice(token, scores, None)
        ids = self._survivors(scores, grammar)
        return self._drawn(scores, tokens, ids) if len(ids) else None

    def _choose_near(self, logits: Scores, tokens: Sequence[int], grammar: GrammarState | None) -> _Choice | None:
        """``_choose`` by a look at a few tokens; None where others matter."""
        near = self._near(logits, grammar) if self._nearness else None
        return None if near is None else self._drawn(logits, tokens, near)

    def _drawn(self, scores: Scores, tokens: Sequence[int], ids: Ids) -> _Choice:
        """One of ``ids``, which grammar and filters left."""
        if len(ids) < 2:
            return _Choice(int(ids[0]), scores, ids)
        perturbed = self._perturbed(scores[ids].astype(np.float64), tokens, ids)
        return _Choice(int(ids[perturbed.argmax()]), scores, ids)

    def _near(self, logits: Scores, grammar: GrammarState | None) -> Ids | None:
        """``_survivors`` where min-p alone decides, by a look at the tokens near the best; None where others matter.

        Those are all that min-p leaves, and among the first of top-k. Top-p takes none of them away if those before the
        last one are too few for it even where nothing else has any probability.
        """
        sampling = self.sampling
        best = int(logits.argmax())
        top = float(logits[best])
        if not -math.inf < top < math.inf or len(logits) < self._least_size:
            return None
        floor = top + math.log(sampling.min_p)
        ids = np.flatnonzero(logits >= floor).tolist()
        if len(ids) > min(_FEW, sampling.top_k) or (self._lowered and not self._lowered.isdisjoint(ids)):
            return None
        if grammar is not None:
            if not grammar.allows(best):
                return None
            ids = [token for token in ids if token == best or grammar.allows(token)]
        scored = sorted((-float(logits[token]), token) for token in ids)
        scored = [each for each in scored if -each[0] >= floor]
        if sampling.top_p < 1:
            weights = [math.exp(-score - top) for score, _ in scored]
            if sum(weights[:-1]) >= sampling.top_p * sum(weights) * _SURE:
                return None
        return np.array([token for _, token in scored], np.int64)

    def _checked(self, logits: Scores, tokens: Sequence[int]) -> Scores | None:
        """The logits after bias and penalties; None where they ban every token."""
        scores = self._adjusted(logits, tokens)
        top = float(scores[scores.argmax()])  # argmax stops at a NaN
        if not top < math.inf:
            raise CodespecError("the model's logits are not numbers; the model file may be damaged")
        return scores if top > -math.inf else None

    def _adjusted(self, logits: Scores, tokens: Sequence[int]) -> Scores:
        """The logits after bias and penalties; the array itself where there are none."""
        if not self._penalises and not len(self._bias_ids):
            return logits
        scores = logits.astype(np.float32)
        if len(self._bias_ids):
            if self._bias_ids[-1] >= len(scores):
                raise CodespecError(f"logit_bias names token {self._bias_ids[-1]}, the vocabulary has {len(scores):,}")
            scores[self._bias_ids] += self._bias
        if self._penalises:
            sampling = self.sampling
            counts = Counter(tokens[-sampling.penalty_window :])
            ids = np.fromiter(counts, np.int64, len(counts))
            times = np.fromiter(counts.values(), np.float64, len(counts))
            values = scores[ids].astype(np.float64)
            values = np.where(values > 0, values / sampling.repeat_penalty, values * sampling.repeat_penalty)
            scores[ids] = values - times * sampling.frequency_penalty - sampling.presence_penalty
        return scores

    def _perturbed(self, values: npt.NDArray[np.floating], tokens: Sequence[int], ids: Ids) -> Floats:
        sampling = self.sampling
        noise = gumbel(sampling.seed, sampling.sample, len(tokens) - self.prompt_length, ids)
        perturbed: Floats = values / sampling.temperature + noise
        return perturbed

    def _best_allowed(self, scores: npt.NDArray[np.floating], grammar: GrammarState | None) -> int | None:
        """The best-scored token that the grammar allows."""
        best = int(scores.argmax())
        if grammar is None or grammar.allows(best):
            return best
        seen = 0
        for token in best_first(scores, 1 + REFUSALS):
            if seen and grammar.allows(token):
                return token
            seen += 1
        if seen < 1 + REFUSALS:
            return None
        scores = self._masked(scores, grammar)
        best = int(scores.argmax())
        return best if scores[best] > -math.inf else None

    def _survivors(self, scores: Scores, grammar: GrammarState | None) -> Ids:
        """Token ids left by grammar and filters, best first, the lowest id first among equals."""
        sampling = self.sampling
        if sampling.top_k > 0:
            ids = self._allowed_best(scores, sampling.top_k, grammar)
            values = scores[ids].astype(np.float64)
            if len(ids) and sampling.top_p < 1:
                count = top_p_count(values, None, sampling.top_p)
                ids, values = ids[:count], values[:count]
        elif sampling.top_p < 1:
            # The probability of everything that is allowed is needed here, and so the whole mask.
            if grammar is not None:
                scores = self._masked(scores, grammar)
            ids = top_p_of_all(scores, sampling.top_p)
            values = scores[ids].astype(np.float64)
        else:
            return self._min_p_of_all(scores, grammar)
        if len(ids) and sampling.min_p > 0:
            ids = ids[values >= values[0] + math.log(sampling.min_p)]
        return ids

    def _min_p_of_all(self, scores: Scores, grammar: GrammarState | None) -> Ids:
        """What min-p alone leaves: only tokens near the best allowed one need asking for."""
        best = self._best_allowed(scores, grammar)
        if best is None:
            return np.zeros(0, np.int64)
        floor = float(scores[best]) + math.log(self.sampling.min_p)
        near = int(np.count_nonzero(scores >= floor))  # the refused ones above the best among them
        ids = self._allowed_best(scores, near, grammar)
        return ids[scores[ids].astype(np.float64) >= floor]

    def _allowed_best(self, scores: Scores, count: int, grammar: GrammarState | None) -> Ids:
        """The ``count`` best tokens that the grammar allows, or as many as there are."""
        if grammar is None:
            return best_ids(scores, count)
        ids = best_ids(scores, count + REFUSALS)
        kept = _first_allowed(ids.tolist(), count, grammar)
        if kept is None:
            return best_ids(self._masked(scores, grammar), count)
        return np.array(kept, np.int64)

    def _masked(self, scores: npt.NDArray[np.floating], grammar: GrammarState) -> npt.NDArray[np.floating]:
        """A copy with ``-inf`` for every token that the grammar does not allow."""
        size = len(scores)
        if len(self._bits) != (size + 31) // 32:
            self._bits = np.zeros((size + 31) // 32, np.uint32)
        grammar.mask_into(self._bits)
        # Bit t % 32 of word t // 32 is bit t of the bytes, least significant first.
        allowed = np.unpackbits(self._bits.astype("<u4", copy=False).view(np.uint8), count=size, bitorder="little")
        return np.where(allowed.view(np.bool_), scores, scores.dtype.type(-math.inf))


def _first_allowed(ids: Iterable[int], count: int, grammar: GrammarState) -> list[int] | None:
    """The first ``count`` allowed ones (fewer if there are no more); None after more than ``REFUSALS`` refusals."""
    kept: list[int] = []
    refused = 0
    for token in ids:
        if grammar.allows(token):
            kept.append(token)
            if len(kept) == count:
                break
        else:
            refused += 1
            if refused > REFUSALS:
                return None
    return kept


def _confidence(chosen: _Choice) -> float:
    scores, score = chosen.scores, chosen.scores[chosen.token]
    if chosen.survivors is not None:
        if len(chosen.survivors) == 1:
            return 1.0
        scores = scores[chosen.survivors]
        return float(1 / np.exp((scores - score).astype(np.float64)).sum())
    if not chosen.greedy:
        top = scores.max()
        return float(np.exp(score - top) / np.exp(scores - top).sum())
    below = scores - score
    if below.max() > 0:  # refused by the grammar
        below[below > 0] = -math.inf
    return float(1 / np.exp(below).sum())
