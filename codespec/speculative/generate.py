"""The loop: draft, one pass of the target, accept, roll back. Token ids only."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from time import perf_counter

from codespec.draft.draft_length import FixedLength
from codespec.draft.sequence import HeldSequence
from codespec.protocols import (
    Aborted,
    Cancel,
    CodespecError,
    ContextFull,
    Draft,
    FinishReason,
    GrammarState,
    Limits,
    Logits,
    Proposal,
    Round,
    Sampling,
    Statistics,
    Target,
    TokenChance,
)
from codespec.speculative.chances import chances_of, text_chances
from codespec.speculative.parallel import decode_together
from codespec.speculative.run import NOTHING, Run, since
from codespec.speculative.sampling import LogitSampler
from codespec.speculative.sparse import Undecided
from codespec.speculative.timed import TimedGrammar
from codespec.speculative.verify import Verdict, verify_coupled

Closer = Callable[[Sequence[int], "GrammarState | None", LogitSampler], Iterator[Logits]]
"""What else can be found out about the token after a text, under a grammar: rows [1, V], each knowing more."""

_TIMED = 16
"""Tokens of a prompt from which on the time that they took says what a token takes."""


class Generator:
    """Generates with a target and a draft; the text is the one that the target alone would give, with any draft.

    Speculative decoding (Leviathan, Kalman, Matias, arXiv 2211.17192, algorithm 1) with coupled choices. The target's
    KV cache is kept between generations: what two prompts begin with in common is decoded once. One generation at a
    time.

    Args:
        target: the target's sequence; nobody else may decode into it. Or one with the tokens that it ``held``.
        draft: None decodes one token at a time.
        end_tokens: tokens that end a generation and are not part of the text.
        draft_length: how many tokens the draft may propose at a time.
        steps: how many tokens of a prompt are decoded in the first step and at most, between which ``cancel`` is asked;
            0: all at once. And how many at its end, at most, are decoded together with the first proposal.
        whole_steps: holds off aborts while it is entered: a step is mostly what the next prompt wants, too.
        on_pass: called after every pass that verifies, not after a prefill, with four values: the tokens decoded, the
            tokens in the KV cache before, the milliseconds until their successors were chosen, and whether the pass
            before had rejected some of its proposal.
        held: the tokens that ``target`` holds already, where it was forked or restored.
        sampler: makes the sampler of a generation; ``SparseSampler`` where the target names the best logits alone.
        closer: asked where those leave a token undecided; where it cannot help either, the text ends before it.

    Attributes:
        draft: may be exchanged; counts from the next generation on.
        sequence: of the target, with the tokens that it holds.
        token_ms: what a token of a prompt took lately, in milliseconds; 0 before one was read.
        statistics: of the current or last generation. ``grammar_ms`` (every call of either grammar state) lies
            inside ``draft_ms`` and ``verify_ms`` (target pass, choice of tokens, rollback).
    """

    def __init__(
        self,
        target: Target | HeldSequence,
        draft: Draft | None,
        end_tokens: frozenset[int],
        draft_length: int = 4,
        held: Sequence[int] = (),
        on_pass: Callable[[int, int, float, bool], None] | None = None,
        steps: Callable[[], tuple[int, int, int]] = lambda: (0, 0, 1),
        whole_steps: Callable[[], AbstractContextManager[None]] = nullcontext,
        sampler: Callable[[Sampling, int], LogitSampler] = LogitSampler,
        closer: Closer = lambda tokens, grammar, sampler: iter(()),
    ) -> None:
        self._sampler, self._closer = sampler, closer
        self._steps, self._whole_steps = steps, whole_steps
        self.sequence = target if isinstance(target, HeldSequence) else HeldSequence(target, held)
        self.draft = draft
        self._end_tokens = end_tokens
        self._length = FixedLength(draft_length)
        self._on_pass = on_pass
        self.statistics = Statistics()
        self._to_read = 0
        self.token_ms = 0.0
        self._prompt = 0

    @property
    def reading(self) -> int | None:
        """The percentage that is read of the prompt that is being decoded, None while none is; from any thread."""
        whole = self._to_read
        return min(100, 100 * len(self.sequence.tokens) // whole) if whole else None

    @property
    def held(self) -> list[int]:
        """The tokens of the last prompt that the target holds."""
        return self.sequence.tokens[: self._prompt]

    def hold(self, tokens: Sequence[int]) -> None:
        """Go on with what the target holds now, which somebody else has put there; ends a generation that runs."""
        self.statistics = Statistics()
        self.sequence.tokens = list(tokens)
        self._prompt = len(tokens)

    def generate(
        self,
        prompt: Sequence[int],
        sampling: Sampling,
        limits: Limits,
        grammar: GrammarState | None = None,
        cancel: Cancel | None = None,
        draft_grammar: GrammarState | None = None,
    ) -> Iterator[Round]:
        """One ``Round`` for each pass of the target, the last with a ``finish_reason``; close it to stop early.

        Args:
            prompt: at least one token.
            sampling: how tokens are chosen, in target and draft.
            limits: when to stop at the latest; ``time_budget_ms`` is checked between passes.
            grammar: advances over exactly the tokens of the rounds.
            cancel: checked between passes; ends the generation as ``cancelled``, as an aborted decode does.
            draft_grammar: the draft's state, at the same place as ``grammar``; None: a copy of it.

        Raises:
            CodespecError: an empty or too long prompt, settings out of range, a failed decode; from here or while
                iterating. The KV cache stays usable; ``grammar`` may be further than the rounds given.
        """
        return self._rounds(self.begin(prompt, sampling, limits, grammar, cancel, draft_grammar))

    def begin(
        self,
        prompt: Sequence[int],
        sampling: Sampling,
        limits: Limits,
        grammar: GrammarState | None = None,
        cancel: Cancel | None = None,
        draft_grammar: GrammarState | None = None,
    ) -> Run:
        """A generation whose passes somebody else decodes, after ``propose`` and before ``settle``; else as
        ``generate``."""
        statistics = self._begin(prompt)
        if self.draft is not None and draft_grammar is None and grammar is not None:
            draft_grammar = grammar.copy()
        run = self._run(prompt, sampling, limits, grammar, cancel)
        run.draft = self.draft
        if draft_grammar is not None:
            run.draft_grammar = TimedGrammar(draft_grammar, statistics)
        return run

    def prefill(self, prompt: Sequence[int], cancel: Cancel | None = None) -> int:
        """Decode what the KV cache lacks of a prompt, for a generation to come; ends one that still runs.

        Args:
            cancel: checked between two steps; what was decoded until then stays.

        Returns:
            How many tokens were decoded.

        Raises:
            CodespecError: as ``generate``.
        """
        self.statistics = Statistics()
        self._prompt = len(prompt)
        return self._read(prompt, cancel, 0)

    def chances(
        self, prompt: Sequence[int], texts: Sequence[Sequence[int]], cancel: Cancel | None = None
    ) -> list[float]:
        """How likely the target holds each text after a prompt, one pass for each; ends a generation that still runs.

        Returns:
            Natural logarithms, one for each text; empty where there is no room for one of them, and once it is stopped.

        Raises:
            CodespecError: a decode failed.
        """
        self._begin(prompt)
        stop = cancel.is_set if cancel is not None else lambda: False
        try:
            return text_chances(self.sequence, prompt, texts, self._steps()[1] or len(prompt), stop)
        except (Aborted, ContextFull):
            return []
        finally:
            self.sequence.rollback(self.sequence.kept(prompt))

    def _read(self, prompt: Sequence[int], cancel: Cancel | None, rest: int) -> int:
        """Decode what the KV cache lacks of a prompt but for ``rest`` tokens, or fewer, at its end."""
        first, most, _ = self._steps()
        stop = cancel.is_set if cancel is not None else lambda: False
        self._to_read = len(prompt)
        began = perf_counter()
        try:
            with self._whole_steps():
                decoded = self.sequence.read(prompt, first or len(prompt), most, stop, rest)
        finally:
            self._to_read = 0
        if decoded >= _TIMED:
            ms = since(began) / decoded
            self.token_ms = ms if not self.token_ms else self.token_ms + (ms - self.token_ms) / 3
        return decoded

    def together(
        self,
        prompt: Sequence[int],
        samplings: Sequence[Sampling],
        limits: Limits,
        grammars: Sequence[GrammarState | None],
        stopped: Collection[int],
        cancel: Cancel | None = None,
        fork: Callable[[], Target] | None = None,
    ) -> Iterator[tuple[int, Round]]:
        """Several texts for one prompt, see ``decode_together``: the target alone would give each of them, too.

        Args:
            samplings, grammars: one for each text.
            stopped: indices of texts of which no more is wanted; may grow meanwhile.
            fork: gives sequences that hold the prompt, once the target does; None: forks of the target.

        Raises:
            CodespecError: as ``generate``.
        """
        self._begin(prompt)
        pairs = zip(samplings, grammars, strict=True)
        runs = [self._run(prompt, sampling, limits, grammar, cancel) for sampling, grammar in pairs]

        def check() -> None:
            self._check_turn(runs[0])

        return decode_together(runs, self._prefill, fork or self.sequence.fork, self._end_tokens, stopped, check)

    def _begin(self, prompt: Sequence[int]) -> Statistics:
        if not prompt:
            raise CodespecError("the prompt is empty; give at least one token, such as the model's beginning-of-text")
        self._prompt = len(prompt)
        self.statistics = Statistics()
        return self.statistics

    def _run(
        self,
        prompt: Sequence[int],
        sampling: Sampling,
        limits: Limits,
        grammar: GrammarState | None,
        cancel: Cancel | None,
    ) -> Run:
        return Run(
            tokens=list(prompt),
            end=len(prompt) + limits.max_tokens,
            sampler=self._sampler(sampling, len(prompt) - sampling.written),
            grammar=None if grammar is None else TimedGrammar(grammar, self.statistics),
            cancel=cancel,
            statistics=self.statistics,
            time_budget_ms=limits.time_budget_ms,
            began=perf_counter(),
            undrafted=len(prompt) if limits.first_alone else 0,
        )

    def _rounds(self, run: Run) -> Iterator[Round]:
        # The KV cache is rolled back before every yield, so a consumer may leave at any of them.
        current = self._read_prompt(run) or self._next_round(run)
        yield current
        while current.finish_reason is None:
            current = self._next_round(run)
            yield current

    def _read_prompt(self, run: Run) -> Round | None:
        """Read the prompt but for its last tokens, with which the first pass over a proposal begins; the last round
        where it ends there."""
        self._check_turn(run)
        reason = run.interrupted() or run.over_from_the_start()
        if reason is not None:
            return run.ended(reason)
        began = perf_counter()
        kept, rest = self.sequence.kept(run.tokens), self._steps()[2]
        self._read(run.tokens[:-1], run.cancel, rest - 1)
        statistics = run.statistics
        statistics.reused_tokens = kept
        statistics.prefill_ms = since(began)
        stopped = len(run.tokens) - len(self.sequence.tokens) > rest
        statistics.prefill_tokens = (len(self.sequence.tokens) if stopped else len(run.tokens)) - kept
        return run.ended("cancelled") if stopped else None

    def _next_round(self, run: Run) -> Round:
        """Draft, one pass of the target, accept, roll back."""
        try:
            proposal = self.propose(run)
            if isinstance(proposal, Round):
                return proposal
            proposal, logits = self._target_pass(run, proposal)
        except Aborted:
            return run.ended("cancelled")
        except ContextFull:
            if len(run.tokens) == self._prompt:  # not even the prompt fits
                raise
            return run.ended("length")
        return self.settle(run, proposal, logits)

    def propose(self, run: Run) -> Proposal | Round:
        """What is to be decoded after the text's last token, or the last round, where the text is to end before.

        Raises:
            CodespecError: another generation has begun.
        """
        self._check_turn(run)
        reason = run.interrupted()
        if reason is not None:
            return run.ended(reason)
        proposal = self._propose(run)
        return run.ended("cancelled") if run.cancelled() else proposal

    def settle(self, run: Run, proposal: Proposal, logits: Logits) -> Round:
        """Accept what the target gives after the text's last token and each of the proposal, and roll back the rest."""
        began, before = perf_counter(), len(run.tokens)
        try:
            verdict = verify_coupled(logits, proposal, run.tokens, run.grammar, run.sampler, self._end_tokens, run.room)
        except Undecided:
            verdict = self._look_closer(run, before)
        # The target's own token is not in the KV cache yet; an accepted end token is, and leaves it.
        self.sequence.rollback(before + min(verdict.accepted, len(verdict.tokens)))
        if verdict.finish_reason is None:
            run.bring_draft_grammar_along(verdict.accepted, verdict.tokens[verdict.accepted :])
        chances = chances_of(logits, verdict.tokens, run.sampler)
        return self._counted(run, proposal, verdict, before, began, chances)

    def _look_closer(self, run: Run, before: int) -> Verdict:
        """Let the text, which had ``before`` tokens, grow by the token that its row left undecided."""
        accepted = len(run.tokens) - before  # what it grew by until then was proposed
        reason: FinishReason | None = "grammar"
        try:
            for logits in self._closer(run.tokens, run.grammar, run.sampler):
                with suppress(Undecided):
                    own = verify_coupled(
                        logits, NOTHING, run.tokens, run.grammar, run.sampler, self._end_tokens, run.room
                    )
                    reason = own.finish_reason
                    break
        except Aborted:
            reason = "cancelled"
        return Verdict(tuple(run.tokens[before:]), accepted, reason)

    def _check_turn(self, run: Run) -> None:
        if run.statistics is not self.statistics:
            raise CodespecError("another generation has begun on this target; finish or close the first one before")

    def _prefill(self, run: Run) -> Logits:
        """Bring the target to the prompt, with what it holds already; logits float32 [1, V]."""
        began = perf_counter()
        # All but the last token, whose logits are wanted.
        decoded = self._read(run.tokens[:-1], run.cancel, 0) if self._steps()[0] else 0
        if run.cancelled():
            raise Aborted
        logits, rest = self.sequence.bring_to(run.tokens)
        decoded += rest
        statistics = run.statistics
        statistics.prefill_tokens = decoded
        statistics.reused_tokens = len(run.tokens) - decoded
        statistics.target_calls += 1
        statistics.prefill_ms = since(began)
        return logits

    def _propose(self, run: Run) -> Proposal:
        """What the draft thinks comes next; never more than the text has room for beside the target's own token."""
        limit = min(self._length.length, run.room - 1)
        run.ahead = 0
        if run.draft is None or limit < 1 or len(run.tokens) <= run.undrafted:
            return NOTHING
        began = perf_counter()
        try:
            proposal = run.draft.propose(run.tokens, run.draft_grammar, run.sampler, self._length.more(limit))
        except CodespecError:
            # A draft only saves time: its full context, say, must not end the text.
            run.draft = run.draft_grammar = None
            return NOTHING
        finally:
            run.statistics.draft_ms += since(began)
        run.ahead = len(proposal.tokens)
        return proposal if run.ahead <= limit else proposal.first(limit)

    def _target_pass(self, run: Run, proposal: Proposal) -> tuple[Proposal, Logits]:
        """Decode the last token of the text, which the KV cache lacks, and the proposal; float32 [1 + proposed, V].

        In the first pass there may be more of the prompt before that token.
        """
        began = perf_counter()
        lacking = run.tokens[len(self.sequence.tokens) :]
        while True:
            try:
                logits = self.sequence.extend((*lacking, *proposal.tokens), 1 + len(proposal.tokens))
                break
            except ContextFull:
                if not proposal.tokens:
                    raise
                proposal = proposal.first(len(proposal.tokens) - 1)
        statistics, ms = run.statistics, since(began)
        prefilled = len(lacking) - 1
        run.pass_ms = 0.0 if prefilled else ms
        prefill_ms = ms * prefilled / (len(lacking) + len(proposal.tokens))
        statistics.prefill_ms += prefill_ms
        statistics.verify_ms += ms - prefill_ms
        statistics.target_ms += ms - prefill_ms
        statistics.target_calls += 1
        return proposal, logits

    def _counted(
        self,
        run: Run,
        proposal: Proposal,
        verdict: Verdict,
        before: int,
        began: float,
        chances: tuple[TokenChance, ...],
    ) -> Round:
        """The round of a verdict that took the time since ``began``, when the text had ``before`` tokens."""
        statistics = run.statistics
        statistics.count(proposal.every_source, verdict.accepted)
        if self._on_pass is not None and run.pass_ms > 0:
            self._on_pass(1 + len(proposal.tokens), before - 1, run.pass_ms + since(began), run.rejected)
        run.rejected = verdict.accepted < len(proposal.tokens)
        statistics.tokens += len(verdict.tokens)
        statistics.verify_ms += since(began)
        statistics.total_ms = since(run.began)
        return Round(
            verdict.tokens,
            tuple(proposal.tokens),
            verdict.accepted,
            proposal.every_source,
            verdict.finish_reason or run.interrupted(),
            chances,
        )
