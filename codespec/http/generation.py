"""From an order to its texts, in the decode thread."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from codespec.completion.completer import Completer
from codespec.completion.ending.stream import follow
from codespec.completion.request import Completion
from codespec.engine.engine import Generating, TextVocabulary
from codespec.engine.slots import Slots, SlotText
from codespec.errors import CodespecError
from codespec.grammar import GrammarError
from codespec.grammar.errors import GrammarGaveUp
from codespec.http.errors import HttpError, unloaded
from codespec.http.growing_text import GrowingText
from codespec.http.order import Emit, FittedPrompt, MiddlePrompt, Order, Piece, Prompt, TextPrompt, TokenPrompt, Totals
from codespec.http.prompt_tokens import tokens_of
from codespec.http.stops import Stops
from codespec.protocols import (
    Cancel,
    Chunk,
    FinishReason,
    GrammarState,
    Limits,
    Round,
    Sampling,
    Statistics,
    TokenChance,
)

_OF_A_TOKEN = 16
"""Characters of a prediction that are looked at for each token that may be generated."""


class Writing:
    """The texts of an order. Stopped for a request that goes first, it goes on where it was, if it is run again.

    Attributes:
        engine: that it was begun with; None: it was not.
        totals: of what was written so far.
        slot_text: the slot of the text that is written side by side with others; None: it has none.
        sociable: whether it can be written so.
        long: whether the text that is to be written has no room in any slot.
    """

    def __init__(self, order: Order) -> None:
        self._order = order
        self.totals = Totals()
        self.slot_text: SlotText | None = None
        self._slots: Slots | None = None
        self.long = False
        fitted = any(isinstance(each, FittedPrompt) for each in order.prompts)
        self.sociable = not fitted and order.limits.max_tokens > 0
        self._untold = Statistics()
        self.engine: Generating | None = None
        self._next = 0  # index of the text that is written
        self._text: _Text | None = None
        self._tokens: list[int] = []  # of the prompt that is answered

    def run(self, completer: Completer, cancel: Cancel, emit: Emit) -> Totals:
        """Generate in pieces, until ``cancel`` is set.

        Raises:
            HttpError: the order cannot be followed with this model.
            CodespecError: decoding failed.
        """
        order, engine = self._begin(completer.engine), completer.engine
        while not self.over and not cancel.is_set():
            prompt = order.prompts[self._next // order.count]
            if isinstance(prompt, FittedPrompt):
                self._next += self._fitted(prompt, completer, cancel, emit)
                continue
            completer.use_for_texts(order.draft, order.language)
            self._next += self._write(prompt, engine, cancel, emit)
        return self.totals

    def _begin(self, engine: Generating) -> Order:
        if self.engine not in (None, engine):
            raise unloaded()
        if self.engine is None:
            self._order = replace(self._order, sampling=_biased(self._order, engine.vocabulary))
        self.engine = engine
        self.totals.context = engine.context_length
        return self._order

    @property
    def over(self) -> bool:
        """Whether all texts are written."""
        return self._next >= len(self._order.prompts) * self._order.count

    @property
    def has_slot(self) -> bool:
        """Whether it has a slot."""
        return self.slot_text is not None

    def take_slot(self, completer: Completer, slots: Slots, cancel: Cancel, emit: Emit) -> None:
        """See that the text that is to be written has a slot, where there is one.

        Raises:
            HttpError, CodespecError: as ``run``.
        """
        order = self._begin(completer.engine)
        while self.slot_text is None and not self.over:
            if self._text is None:
                self._text = self._begun(order.prompts[self._next // order.count], completer.engine, emit)
            if self._text.is_full:
                self._text.end_full(emit)
                self._end()
                continue
            self._slots = slots
            self.slot_text = self._text.take_slot(slots, self._left_ms(), cancel)
            self.long = self.slot_text is None and not self._text.fits(slots)
            if self.slot_text is None:
                return

    def take(self, chunk: Chunk | CodespecError, emit: Emit) -> None:
        """Go on with what was written of the text that has a slot, or why it cannot go on.

        Raises:
            HttpError, CodespecError: as ``run``.
        """
        if isinstance(chunk, CodespecError):
            raise _bad_grammar(chunk) if isinstance(chunk, GrammarGaveUp) else chunk
        assert self.slot_text is not None
        assert self._text is not None
        over = chunk.finish_reason is not None
        if self.slot_text.cut and chunk.finish_reason == "length":
            chunk = replace(chunk, finish_reason=None)  # it goes on alone
        if self._text.add(chunk, emit):
            self._release()
            self._end()
        elif over:
            self._release(goes_on=True)

    def release_slot(self, goes_on: bool = False) -> None:
        """Give up the slot, if it has one; ``goes_on`` as of ``Slots.release``."""
        if self.slot_text is not None:
            self._release(goes_on)

    def _release(self, goes_on: bool = False) -> None:
        assert self.slot_text is not None
        assert self._text is not None
        assert self._slots is not None
        self._slots.release(self.slot_text, goes_on)
        self._count(*self._text.spent_by(self.slot_text.statistics))
        self.slot_text = None

    def _end(self) -> None:
        self._text, self.long = None, False
        self._next += 1

    def spent(self) -> Statistics:
        """What was spent since it was asked last, whether it was stopped or not."""
        spent, self._untold = self._untold, Statistics()
        return spent

    def _count(self, spent: Statistics, tokens: int) -> None:
        """Count what was spent; a client hears of ``tokens``, without those that were generated behind a stop text."""
        self._untold.add(spent)
        spent = replace(spent, tokens=tokens)
        self.totals.texts[self._next].spent.add(spent)
        self.totals.spent.add(spent)

    def _write(self, prompt: Prompt, engine: Generating, cancel: Cancel, emit: Emit) -> bool:
        """Write a text, or go on; whether it has come to its end."""
        text = self._text = self._text or self._begun(prompt, engine, emit)
        over = text.write(self._left_ms(), cancel, emit, self._count)
        if over:
            self._text, self.long = None, False
        return over

    def _begun(self, prompt: Prompt, engine: Generating, emit: Emit) -> _Text:
        order = self._order
        if self._next % order.count == 0:
            self._tokens = tokens_of(prompt, engine, order)
            self.totals.prompt += len(self._tokens)
        self.totals.texts[self._next] = Totals(len(self._tokens))
        if order.echo:
            emit(Piece(self._next, _echo(prompt, engine)))
        return _Text(order, self._next, self._tokens, engine)

    def _left_ms(self) -> float | None:
        """What is left of the time for all texts."""
        budget = self._order.limits.time_budget_ms
        return None if budget is None else max(0.0, budget - self.totals.spent.total_ms)

    def _fitted(self, prompt: FittedPrompt, completer: Completer, cancel: Cancel, emit: Emit) -> int:
        """Complete a place in a document, each text in one piece; how many are written: all, or, stopped, none."""
        order, request = self._order, prompt.request
        completer = completer.bounded(order.sampling, self._left_ms())
        completions = completer.complete(request, cancel)
        spent, length = completer.spent, completer.prompt_tokens
        self._untold.add(spent)
        if cancel.is_set():
            return 0
        texts = 0
        for number in range(order.count):
            index = self._next + number
            if order.echo:
                emit(Piece(index, prompt.before))
            if number >= len(completions):  # there are no more different ones
                emit(Piece(index, "", reason="stop"))
                continue
            completion, stops = completions[number], Stops(order.stops)
            text = stops.add(completion.text) + stops.end()
            tokens = _tokens_up_to(completion, text, completer.engine.vocabulary)
            texts += len(tokens)
            emit(Piece(index, text, tokens, (), "stop" if stops.found else completion.finish_reason, stops.found))
        # What an attempt finds of the prompt because the one before it has read that was not there before.
        spent = replace(spent, tokens=texts, reused_tokens=max(0, length - spent.prefill_tokens))
        if order.count == 1:
            self.totals.texts[self._next] = Totals(length, spent)
        self.totals.spent.add(spent)
        self.totals.prompt += length
        return order.count


class _Text:
    """One text on its way."""

    def __init__(self, order: Order, index: int, prompt: list[int], engine: Generating) -> None:
        self._order, self._index, self._engine = order, index, engine
        self.prompt = prompt
        self._written: list[int] = []
        self._told = 0  # how many of them before it went on last
        self._text = GrowingText(engine.vocabulary, order.stops)

    @property
    def is_full(self) -> bool:
        """Whether it was stopped just before the context ended it."""
        return bool(self._written) and len(self.prompt) + len(self._written) > self._engine.context_length - 2

    def end_full(self, emit: Emit) -> None:
        """Emit what is held back of the text, with ``length`` as its reason to end."""
        self._emit(self._text.end(), (), "length", emit)

    def fits(self, slots: Slots) -> bool:
        """Whether there may be a slot for it later."""
        return slots.fits(self.prompt + self._written, self._limits(None))

    def take_slot(self, slots: Slots, left_ms: float | None, cancel: Cancel) -> SlotText | None:
        """Go on beside others, where there is a slot."""
        self._told = len(self._written)
        return slots.begin(
            self.prompt + self._written,
            self._grammar_state(),
            self._sampling(),
            self._limits(left_ms),
            cancel,
        )

    def write(
        self, left_ms: float | None, cancel: Cancel, emit: Emit, count: Callable[[Statistics, int], None]
    ) -> bool:
        """Generate to the end, or until it is stopped; whether it has ended. What it took is counted in any case."""
        order, engine, tokens = self._order, self._engine, self.prompt + self._written
        if order.limits.max_tokens == 0:  # the next request goes on from here
            engine.prefill(tokens, cancel)
            if cancel.is_set():
                return False
            emit(Piece(self._index, "", reason="length"))
            return True
        if self.is_full:
            self.end_full(emit)
            return True
        self._told = len(self._written)
        state, sampling, left = self._grammar_state(), self._sampling(), self._limits(left_ms)
        chunks = engine.generate(tokens, state, sampling, left, cancel, language=order.language, window=self._window())
        try:
            over = follow(chunks, lambda chunk: self.add(chunk, emit))
        except GrammarGaveUp as error:
            raise _bad_grammar(error) from None
        finally:
            count(*self.spent_by(engine.statistics))
        if not over:
            engine.prefill(self.prompt + self._written, cancel)  # reads nothing: what was written is kept, too
        return over

    def spent_by(self, statistics: Statistics) -> tuple[Statistics, int]:
        """What was spent since it began or went on, and the tokens that a client was told since."""
        # What this text itself has left in the KV cache is no part of the prompt that a client knows of.
        spent = replace(statistics, reused_tokens=0) if self._told else statistics
        return spent, len(self._written) - self._told

    def _window(self) -> Sequence[int]:
        """The tokens of what it probably repeats."""
        order, vocabulary = self._order, self._engine.vocabulary
        most = _OF_A_TOKEN * min(order.limits.max_tokens, self._engine.context_length)
        return vocabulary.tokenize(order.prediction[:most]) if order.prediction else ()

    def _sampling(self) -> Sampling:
        order, written = self._order, len(self._written)
        return replace(order.sampling, sample=self._index % order.count, logprobs=order.logprobs, written=written)

    def _limits(self, left_ms: float | None) -> Limits:
        # Who reads along sees the first token sooner; that the last one comes later is hardly noticed.
        most, first_alone = self._order.limits.max_tokens - len(self._written), not self._written
        return Limits(most, left_ms, self._order.stream and first_alone)

    def _grammar_state(self) -> GrammarState | None:
        """The grammar after what was written; it may name tokens that this model does not have."""
        if self._order.grammar is None:
            return None
        try:
            state = self._engine.grammar_state(self._order.grammar, self._order.limits.max_tokens)
        except GrammarError as error:
            raise _bad_grammar(error) from None
        if self._written:
            state = state.copy()  # of the state itself an engine elsewhere would be told the grammar, and begin it anew
            state.accept(self._written)
        return state

    def add(self, chunk: Chunk, emit: Emit) -> bool:
        """Pass a chunk on, up to a stop text; whether the text ends with it."""
        made, reason = chunk.round or Round(()), chunk.finish_reason
        if reason == "cancelled":
            reason = None
        asked = made.tokens and self._order.logprobs is not None
        text, count = self._text.add(made.tokens, _told(made) if asked else (), reason is not None)
        reason = "stop" if self._text.stopped_by else reason
        self._written += made.tokens[:count]
        self._emit(text, made.tokens[:count], reason, emit)
        return reason is not None

    def _emit(self, text: str, tokens: tuple[int, ...], reason: FinishReason | None, emit: Emit) -> None:
        chances = tuple(self._text.told(reason is not None))
        if text or tokens or reason is not None:
            emit(Piece(self._index, text, tokens, chances, reason, self._text.stopped_by))


def _tokens_up_to(completion: Completion, text: str, vocabulary: TextVocabulary) -> tuple[int, ...]:
    """The tokens of a completion up to where its ``text`` ends: how many were generated behind it depends on drafts."""
    made = [token for each in completion.rounds for token in each.tokens]
    whole = b"".join(map(vocabulary.token_bytes, made)).decode("utf-8", "ignore")
    if not text:
        return ()
    left = len(whole[: completion.backed_up + len(text)].encode())
    for count, token in enumerate(made, 1):
        left -= len(vocabulary.token_bytes(token))
        if left <= 0:
            return tuple(made[:count])
    return tuple(made)


def _biased(order: Order, vocabulary: TextVocabulary) -> Sampling:
    """The sampling of an order, with what its biases mean in this vocabulary."""
    biases = dict(order.sampling.logit_bias)
    if any(token >= vocabulary.size for token in biases):
        message = f"logit_bias names tokens beyond the vocabulary, which has {vocabulary.size:,}"
        raise HttpError(400, message, "logit_bias", "invalid_value")
    biases.update((token, bias) for text, bias in order.text_biases for token in vocabulary.tokenize(text))
    if order.endless:
        biases.update((token, -math.inf) for token in vocabulary.end_tokens)
    return replace(order.sampling, logit_bias=biases)


def _bad_grammar(error: CodespecError) -> HttpError:
    """A grammar that compiles, and yet names tokens that are not there, or can be read in too many ways."""
    return HttpError(400, str(error), "grammar", "invalid_grammar")


def _told(made: Round) -> tuple[TokenChance, ...]:
    if len(made.chances) < len(made.tokens):
        raise HttpError(400, "the engine elsewhere does not tell the probabilities of all tokens", "logprobs")
    return made.chances


def _echo(prompt: Prompt, engine: Generating) -> str:
    """What a text goes on from, as text."""
    if isinstance(prompt, TextPrompt):
        return prompt.text
    if isinstance(prompt, MiddlePrompt):
        return prompt.prefix
    assert isinstance(prompt, TokenPrompt)  # nobody asks it of a chat
    data = (
        each.encode("utf-8") if isinstance(each, str) else engine.vocabulary.token_bytes(each) for each in prompt.parts
    )
    return b"".join(data).decode("utf-8", "replace")
