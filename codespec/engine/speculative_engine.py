"""What engines have in common whose target is verified in this process: drafts, n-grams, grammars, and the loop."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from functools import cached_property

from codespec.draft.sequence import common_prefix
from codespec.engine.drafts import Drafts
from codespec.engine.engine import ChatTemplate, Engine, KeptPrompts
from codespec.grammar import Grammar, Tokenizer
from codespec.llama.llguidance_tokenizer import tokenizer_from_vocab
from codespec.llama.model import LlamaVocabulary, Model
from codespec.llama.runtime import Cancellation, Either
from codespec.models.fim import FimFormat, Order, fim_format
from codespec.protocols import Cancel, Chunk, Draft, GrammarState, Limits, Round, Sampling, Statistics, TokenChange
from codespec.speculative.generate import Generator


class SpeculativeEngine(Engine):
    """A target that a ``Generator`` verifies proposals with.

    Args:
        model: with the target's vocabulary; closed by the subclass.

    Attributes:
        drafts: the draft sources; ``costs`` and ``notes`` are its own.
    """

    vocabulary: LlamaVocabulary
    drafts: Drafts

    def __init__(self, model: Model, drafts: Drafts, generator: Generator, prompt_cache: KeptPrompts) -> None:
        self.model, self.vocabulary = model, model.vocabulary
        self.drafts, self.costs, self.notes = drafts, drafts.costs, drafts.notes
        self.prompt_cache = prompt_cache
        self._generator = generator
        # FIM markers and the like are no text; the end tokens among the control tokens stay possible.
        self._banned = dict.fromkeys(self.vocabulary.control_tokens - self.vocabulary.end_tokens, float("-inf"))
        self._cancellation = Cancellation()
        self._layouts: dict[Order | None, FimFormat | None] = {}

    @property
    def statistics(self) -> Statistics:
        """The counts of the current or last generation."""
        return self._generator.statistics

    @property
    def chat_template(self) -> ChatTemplate | None:
        """That of the model file."""
        source = self.model.metadata("tokenizer.chat_template")
        return ChatTemplate(source, self._special("bos"), self._special("eos")) if source else None

    def _special(self, kind: str) -> str:
        """The name of a token that the model file names by its use."""
        token = self.model.metadata(f"tokenizer.ggml.{kind}_token_id") or ""
        known = token.isdigit() and int(token) < self.vocabulary.size
        return self.vocabulary.name(int(token)).decode("utf-8", "replace") if known else ""

    def fim_format(self, order: Order | None = None) -> FimFormat | None:
        """The layout that the target was trained with, see ``fim_format``."""
        if order not in self._layouts:
            self._layouts[order] = fim_format(self.model, order)
        return self._layouts[order]

    def lacking(self, prompt: Sequence[int]) -> int:
        """As ``Generating.lacking``."""
        return len(prompt) - common_prefix(self._generator.held, prompt)

    def pass_ms(self, context: int) -> float:
        """About what a target call over one token takes after so many tokens, in milliseconds."""
        return self.costs.kept(context)[1]

    def warm_up(self) -> None:
        """As ``Engine.warm_up``."""
        _ = self._grammar_tokenizer

    def grammar_state(self, grammar: Grammar, most: int | None = None) -> GrammarState:
        """As ``Generating.grammar_state``."""
        return grammar.state(self._grammar_tokenizer, most)

    @cached_property
    def _grammar_tokenizer(self) -> Tokenizer:
        return tokenizer_from_vocab(self.vocabulary)

    def generate(
        self,
        prompt: Sequence[int],
        grammar: GrammarState | None = None,
        sampling: Sampling | None = None,
        limits: Limits | None = None,
        cancel: Cancel | None = None,
        speculate: bool | Draft = True,
        language: str = "",
        window: Sequence[int] = (),
        changes: Sequence[TokenChange] = (),
        document: Sequence[int] = (),
    ) -> Iterator[Chunk]:
        """As ``Generating.generate``.

        Args:
            speculate: False decodes one token at a time with the target alone; a draft replaces the engine's own.
        """
        sampling = self.without_markers(sampling or Sampling())
        kind = self._kind_of_text(language, sampling, grammar, window)
        self.new_cancellation()
        self._turn_to(prompt)
        self.drafts.window.begin(len(prompt), window, changes)
        self.drafts.ngrams.read(document)
        if isinstance(speculate, bool):
            self._generator.draft = self.drafts.combined(kind) if speculate else None
        else:
            self._generator.draft = speculate
        decode = self.decoder()
        with self._cancellable(self._cancellation), self.drafts.cancellable(self._cancellation):
            for step in self._generator.generate(prompt, sampling, limits or Limits(), grammar, self._stopped(cancel)):
                yield decode(step)

    def _kind_of_text(
        self, language: str, sampling: Sampling, grammar: GrammarState | None, window: Sequence[int]
    ) -> str:
        """The kind of a text, which has acceptance rates of its own."""
        kind = f"{language}/{'greedy' if sampling.temperature == 0 else 'sampled'}/{'grammar' if grammar else 'free'}"
        return f"{kind}/window" if window else kind  # copies are right far more often there

    def prefill(self, prompt: Sequence[int], cancel: Cancel | None = None) -> int:
        """As ``Generating.prefill``: tokens decoded before it was stopped stay in the KV cache."""
        self.new_cancellation()
        self._turn_to(prompt)
        with self._cancellable(self._cancellation):
            return self._generator.prefill(prompt, self._stopped(cancel))

    def measure(self, go_on: Callable[[], bool]) -> bool:
        """As ``Engine.measure``, of the loaded models; seconds for each model."""
        self.new_cancellation()
        return self.drafts.measure(go_on, self._cancellation)

    def new_cancellation(self) -> Cancellation:
        """The flag that ``abort`` sets from now on."""
        self._cancellation = Cancellation()
        return self._cancellation

    def abort(self) -> None:
        """Stop the running generation or measurement, from any thread: within one node of llama.cpp's graph, or, during
        a prefill, at the end of a step."""
        self._cancellation.set()

    def _turn_to(self, prompt: Sequence[int]) -> None:
        """Prepare for a prompt to come."""

    def _cancellable(self, cancellation: Cancellation) -> AbstractContextManager[object]:
        """Target calls inside the block raise ``Aborted`` soon after ``cancellation`` is set."""
        return ExitStack()

    def _stopped(self, cancel: Cancel | None) -> Cancel:
        """``cancel``, or ``abort``."""
        return Either(self._cancellation, cancel)

    def without_markers(self, sampling: Sampling) -> Sampling:
        """The same, where no control token is chosen that ends no text."""
        return replace(sampling, logit_bias={**self._banned, **sampling.logit_bias})

    def decoder(self) -> Callable[[Round], Chunk]:
        """A function that turns the rounds of one text into chunks."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")

        def decode(step: Round) -> Chunk:
            data = b"".join(self.vocabulary.token_bytes(token) for token in step.tokens)
            return Chunk(decoder.decode(data, final=step.finish_reason is not None), step, step.finish_reason)

        return decode
