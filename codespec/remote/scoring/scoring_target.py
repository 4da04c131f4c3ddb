"""A target on an engine elsewhere that says how likely given tokens are."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from codespec.protocols import Cancel, CodespecError, ContextFull, GrammarState, Logits, Sampling, Target
from codespec.remote.errors import Refused
from codespec.remote.scoring.ahead import Ahead
from codespec.remote.scoring.rows import Row, dense
from codespec.remote.scoring.scorers import Scorer
from codespec.speculative.sampling import LogitSampler


class ScoringTarget:
    """One sequence of an engine; implements ``protocols.Target``, without forks.

    It keeps its tokens itself and sends all of them with every request: what the engine has read of them already is the
    engine's to know. Rows name the best tokens alone, ``-inf`` stands for all others: see ``SparseSampler``.

    Args:
        size: of the vocabulary.
        length: tokens of the engine's context.

    Attributes:
        best: how many tokens a row names.
        most: tokens that the engine writes by itself, of which rows of single tokens are taken; 0: it is asked about
            each of them, as after a stream that failed.
        cancel: stops a request that waits; None: nothing does.
    """

    def __init__(self, scorer: Scorer, size: int, length: int) -> None:
        self._scorer, self._size, self._length = scorer, size, length
        self._tokens: list[int] = []
        self._warmed: list[int] = []
        self._ahead = Ahead(scorer)
        self.best = scorer.best
        self.most = 0
        self.cancel: Cancel | None = None

    @property
    def n_past(self) -> int:
        """How many tokens it has."""
        return len(self._tokens)

    def decode(self, tokens: Sequence[int], last: int | None = None) -> Logits:
        """As ``Target.decode``: one request where rows are wanted, none where not."""
        wanted = len(tokens) if last is None else last
        text = [*self._tokens, *tokens]
        if len(text) >= self._length:  # the engine generates a token behind them
            raise ContextFull(f"the engine's context of {self._length:,} tokens is full; set a larger `remote.context`")
        rows = self._rows(text, wanted) if wanted else []
        self._tokens = text
        return dense(rows, self._size)

    def _rows(self, text: list[int], wanted: int) -> list[Row]:
        if wanted == 1 and self.most:
            row = self._ahead.row(text, min(self.most, self._length - len(text)), self.best, self.cancel)
            if row is not None:
                return [row]
            self.most = 0  # an engine that refuses it is not to be asked twice about every token
        self.stop()
        return self._scorer.score(text, wanted, self.best, self.cancel)

    def stop(self) -> None:
        """Have the engine write no more."""
        self._ahead.stop()

    def closer(self, tokens: Sequence[int], grammar: GrammarState | None, sampler: LogitSampler) -> Iterator[Logits]:
        """What else the engine can tell of the token after a text, each time more; float32 [1, V].

        Raises:
            Aborted, Away: the request was stopped, or there is no answer.
        """
        self.stop()
        ids = self._allowed(grammar, sampler)
        if takes_the_best(sampler.sampling) and ids:
            best = self._scorer.best_among(tokens, ids, self.cancel)
            if best is not None:
                yield self._winner(best)
        if grammar is not None and ids:
            row = self._scorer.among(tokens, ids, self.cancel)
            if row is not None:
                yield dense([row], self._size)
        yield from self._longer_rows(tokens)

    def _longer_rows(self, tokens: Sequence[int]) -> Iterator[Logits]:
        for best in self._scorer.more:
            try:
                rows = self._scorer.score(tokens, 1, min(best, self._size), self.cancel)
            except Refused:  # more than this engine names: it is not asked for that again
                self._scorer.more = tuple(each for each in self._scorer.more if each < best)
                return
            yield dense(rows, self._size)

    def _allowed(self, grammar: GrammarState | None, sampler: LogitSampler) -> list[int]:
        """The tokens that may come next."""
        bits = np.full((self._size + 31) // 32, 0xFFFFFFFF, np.uint32)
        if grammar is not None:
            grammar.mask_into(bits)
        allowed = np.unpackbits(bits.astype("<u4", copy=False).view(np.uint8), count=self._size, bitorder="little")
        banned = [token for token, bias in sampler.sampling.logit_bias.items() if bias == -math.inf]
        allowed[banned] = 0
        return [int(token) for token in np.flatnonzero(allowed)]

    def _winner(self, token: int) -> Logits:
        """A row that says of one token that it is better than all others that are in question, and nothing else."""
        # The other one has the lowest value that is named, and so is not told from those that are not.
        return dense([Row.of([token, (token + 1) % self._size], [0.0, -1.0])], self._size)

    def warm(self, tokens: Sequence[int]) -> None:
        """Let the engine read a text ahead of the request that needs it.

        Raises:
            Aborted, Away, Refused: the request was stopped, there is no answer, or a refusal.
        """
        text = list(tokens)
        if text and self._warmed[: len(text)] != text and len(text) < self._length:
            self._scorer.warm(text, self.cancel)
            self._warmed = text

    def rollback(self, n_past: int) -> None:
        """Forget everything after the first ``n_past`` tokens."""
        del self._tokens[n_past:]

    def fork(self) -> Target:
        """Raises CodespecError: texts are generated one after the other."""
        raise CodespecError("an engine elsewhere has one sequence; this is a fault of codespec, please report it")

    def decode_each(self, forks: Sequence[Target], tokens: Sequence[Sequence[int]]) -> Logits:
        """Never: there is one sequence.

        Raises:
            CodespecError: always.
        """
        raise CodespecError("an engine elsewhere has one sequence; this is a fault of codespec, please report it")

    def close(self) -> None:
        """Have the engine write no more; it lets go of what it keeps by itself."""
        self.stop()


def rows_of(sampling: Sampling, grammar: GrammarState | None, scorer: Scorer) -> int:
    """How many tokens a row should name for these settings: more cost time, and fewer leave more undecided."""
    free, constrained = scorer.greedy if takes_the_best(sampling) else (scorer.best, scorer.best)
    return min(scorer.best, free if grammar is None else constrained)


def takes_the_best(sampling: Sampling) -> bool:
    """Whether the likeliest token that is allowed and not banned is chosen."""
    penalises = sampling.frequency_penalty != 0 or sampling.presence_penalty != 0
    plain = sampling.temperature == 0 and not (penalises and sampling.penalty_window > 0)
    return plain and all(bias in (0, -math.inf) for bias in sampling.logit_bias.values())
