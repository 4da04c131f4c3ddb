"""An engine elsewhere that writes texts by itself: they are followed as they come, and cut where they go wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path, PurePath
from time import perf_counter

from codespec.draft.ngram_store import NgramStore
from codespec.engine.adapters import LoraRequest
from codespec.engine.engine import Drafting, Engine, KeptPrompts, TextVocabulary, add_note
from codespec.files import StrPath
from codespec.grammar import Grammar, Tokenizer
from codespec.grammar.tokenizer import byte_tokenizer
from codespec.llama.llguidance_tokenizer import tokenizer_from_vocab
from codespec.llama.model import Model
from codespec.models.fim import FimFormat, Order, fim_format
from codespec.models.tokenizer_json import vocabulary_file
from codespec.protocols import (
    Aborted,
    Cancel,
    Chunk,
    FinishReason,
    GrammarState,
    Limits,
    Round,
    Sampling,
    Statistics,
    TokenChange,
)
from codespec.remote.connection import Connection
from codespec.remote.streaming.about import About, about
from codespec.remote.streaming.answers import Answers, drain
from codespec.remote.streaming.asked import Asked, Way, family_named
from codespec.remote.streaming.byte_vocabulary import (
    BYTES_PER_TOKEN,
    CONTROLS,
    ByteVocabulary,
    Parts,
    split,
    text_layout,
)
from codespec.remote.streaming.events import Piece
from codespec.remote.streaming.stop import Stop
from codespec.remote.streaming.streamed_text import StreamedText, last
from codespec.remote.streaming.streamers import STREAMERS

USUAL_CONTEXT, LONGEST_AUTOMATIC_CONTEXT = 4096, 8192
"""Tokens of prompt and text where neither the settings nor the engine say; and the most that are used unasked."""
INFILL_CONTEXT = 2048
"""Tokens of a prompt that llama-server's ``/infill`` keeps whole with its usual batch."""
BYTES_OF_A_TOKEN = 64
"""Bytes of text for each token that was asked for, beyond which an engine is not listened to."""

LONGEST_LEAD = 64
"""Characters of a forced beginning that an engine is held to."""


class StreamingEngine(Engine):
    """Texts as an engine elsewhere streams them. One generation at a time, from one thread at a time.

    Args:
        connection: to the engine; closed with this.
        kind: of the engine, see ``STREAMERS``.
        model: the name that it knows; empty: the only or first one that it has.
        vocabulary: a GGUF or ``tokenizer.json`` with the target's tokens, for engines that take those; None: texts are
            sent.
        context_length: in tokens of the engine; 0 asks it.
        learnt_folder: where other engines keep the n-grams of workspaces, instead of the user's data folder.

    Raises:
        Away, Refused: the engine does not say which models it has.
        CodespecError: the vocabulary cannot be loaded.

    Attributes:
        vocabulary: the target's tokens, or bytes.
    """

    def __init__(
        self,
        connection: Connection,
        kind: str,
        *,
        model: str = "",
        vocabulary: Path | None = None,
        context_length: int = 0,
        learnt_folder: StrPath | None = None,
    ) -> None:
        self._connection, self.kind = connection, kind
        self._streamer = STREAMERS[kind]
        self.notes, self.prompt_cache = [], KeptPrompts()
        self.drafts = Drafting(NgramStore("", Path(learnt_folder) if learnt_folder is not None else None))
        self._told: About = about(connection, self._streamer, kind, model)
        self._asked_for_context = context_length
        takes_ids = "ids" in self._streamer.ways
        if vocabulary is not None and not takes_ids:
            add_note(self.notes, f"{kind} takes no tokens: `remote.vocabulary` is not used")
        file = vocabulary if takes_ids else None
        self._file = Model(vocabulary_file(file), vocabulary_only=True) if file is not None else None
        self.vocabulary: TextVocabulary = ByteVocabulary() if self._file is None else self._file.vocabulary
        if self._file is not None:
            connection.leaving.token_bytes = self._file.vocabulary.token_bytes
        self._family = family_named(self._told.model)
        self._answers = Answers(connection, self._streamer, self._possible(), partial(add_note, self.notes))
        self._stop = Stop()
        self._statistics = Statistics()
        self._token_ms = 0.0
        self._latest: list[int] = []  # the prompt that the engine has read last
        self._started: tuple[GrammarState, tuple[str, str]] | None = None

    def _possible(self) -> list[Way]:
        if self._file is not None:
            return ["ids"]
        possible: dict[Way, bool] = {"fields": True, "markers": self._family is not None, "prefix": True}
        return [way for way in self._streamer.ways if possible.get(way, False)]

    @property
    def name(self) -> str:
        """The target's, for people."""
        model = self._told.model
        return (PurePath(model).stem if model.endswith(".gguf") else model) or self._connection.address.host

    @property
    def context_length(self) -> int:
        """Tokens of the vocabulary that prompt and text may have: bytes, where texts are sent."""
        known, wanted = self._told.context, self._asked_for_context
        tokens = min(wanted, known or wanted) if wanted else min(known or USUAL_CONTEXT, LONGEST_AUTOMATIC_CONTEXT)
        if self._file is not None:
            return tokens
        if self.kind == "llama-server" and self._answers.ways[0] == "fields":
            tokens = min(tokens, INFILL_CONTEXT)
        return BYTES_PER_TOKEN * (tokens - tokens // 8)  # an eighth is left for the text

    @property
    def statistics(self) -> Statistics:
        """The counts of the current or last generation, in tokens of the engine."""
        return self._statistics

    @property
    def about(self) -> dict[str, object]:
        """Kind, address and model of the engine elsewhere, for reports."""
        about = {"kind": self.kind, "url": self._connection.address.url, "model": self._told.model, "mode": "stream"}
        return {"remote": about}

    def fim_format(self, order: Order | None = None) -> FimFormat | None:
        """The layout that the target was trained with, or the one by which its prompt is taken apart again."""
        if self._file is not None:
            return fim_format(self._file, order)
        return None if self._answers.ways == ["prefix"] else text_layout(self._streamer.snippets, order)

    def pass_ms(self, context: int) -> float:
        """What a token took lately, in milliseconds."""
        return self._token_ms

    def use_adapter(self, lora: LoraRequest | None) -> None:
        """Nothing: ``adapter_problem`` says so."""
        self.adapter_problem = "a target elsewhere has its own LoRA adapters" if lora is not None else ""

    def warm_up(self) -> None:
        """Prepare the vocabulary for grammars."""
        _ = self._grammar_tokenizer

    def grammar_state(self, grammar: Grammar, most: int | None = None) -> GrammarState:
        """The start state of a grammar. Where nothing but ``generate`` advances it, the engine is told the grammar, if
        it knows such, and writes white space as it likes."""
        state = grammar.state(self._grammar_tokenizer)
        written = grammar.written
        fits = written is not None and written[0] in self._streamer.written
        self._started = (state, written) if fits and written is not None else None
        return state

    @cached_property
    def _grammar_tokenizer(self) -> Tokenizer:
        return byte_tokenizer(CONTROLS) if self._file is None else tokenizer_from_vocab(self._file.vocabulary)

    def generate(
        self,
        prompt: Sequence[int],
        grammar: GrammarState | None = None,
        sampling: Sampling | None = None,
        limits: Limits | None = None,
        cancel: Cancel | None = None,
        *,
        language: str = "",
        window: Sequence[int] = (),
        changes: Sequence[TokenChange] = (),
        document: Sequence[int] = (),
    ) -> Iterator[Chunk]:
        """Follow a text in chunks of whole characters; to close the iterator closes the stream.

        The text ends at the first token that ``grammar`` refuses, and where the engine ends it although the grammar
        does not let it: with reason ``grammar``.

        Raises:
            Away, Refused: the engine gave no text, or broke it off.
        """
        limits = limits or Limits()
        stop = self._stop = Stop(cancel, limits.time_budget_ms)
        self._statistics = statistics = Statistics()
        began = perf_counter()
        text = StreamedText(self.vocabulary, grammar)
        started, self._started = self._started, None
        written = started[1] if started is not None and started[0] is grammar else None
        begun, lead = "", ""
        if written is None and self._streamer.heals:
            lead = text.forced()[:LONGEST_LEAD]
        elif written is None:
            begun = text.begin()
        try:
            if begun:
                chunk = Chunk(begun, Round(tuple(self.vocabulary.tokenize(begun))))
                if grammar is not None and grammar.finished:
                    yield last(chunk, "stop")
                    return
                yield chunk
            asked = self._asked(prompt, begun, sampling or Sampling(), limits.max_tokens)
            asked = replace(asked, grammar=written, lead=lead)
            self._latest = list(prompt)
            yield from self._chunks(asked, text, stop)
        except Aborted:
            reason: FinishReason = "cancelled" if stop.cancelled else "time"
            yield last(Chunk(""), reason)
        finally:
            statistics.total_ms = (perf_counter() - began) * 1e3

    def _chunks(self, asked: Asked, text: StreamedText, stop: Stop) -> Iterator[Chunk]:
        began, size = perf_counter(), 0
        with closing(self._answers.pieces(asked, stop)) as pieces:
            for piece in pieces:
                ended = self._count(piece, began)
                if self._statistics.tokens > asked.max_tokens or size > BYTES_OF_A_TOKEN * asked.max_tokens:
                    yield last(Chunk(""), "length")  # the engine did not heed its own limit
                    return
                ids = piece.tokens[: _first_of(piece.tokens, self._ends)] if self._file is not None else ()
                chunk = text.take(piece.text, ids)
                size += len(chunk.text.encode())
                if text.reason is None and (ended or piece.end == "stop"):
                    text.end()
                if text.reason is None and piece.end:
                    text.reason = "length"
                if text.reason is not None:
                    yield last(chunk, text.reason)
                    if piece.end:
                        drain(pieces, stop)
                    return
                if chunk.text:
                    yield chunk
                if stop.is_set():
                    raise Aborted

    def _count(self, piece: Piece, began: float) -> bool:
        """Add up what a piece tells; whether an end token is in it."""
        statistics = self._statistics
        if not statistics.target_calls:
            statistics.prefill_ms = (perf_counter() - began) * 1e3
        statistics.target_calls += bool(piece.text)
        statistics.tokens = max(statistics.tokens + bool(piece.text), piece.count or 0)
        statistics.prefill_tokens = piece.prompt_tokens or statistics.prefill_tokens
        statistics.reused_tokens = piece.reused_tokens or statistics.reused_tokens
        statistics.prefill_ms = piece.prompt_ms or statistics.prefill_ms
        spent = (perf_counter() - began) * 1e3
        statistics.target_ms = spent
        since = max(0.0, spent - statistics.prefill_ms)
        self._token_ms = piece.token_ms or (since / statistics.tokens if statistics.tokens else self._token_ms)
        return self._file is not None and not self._ends.isdisjoint(piece.tokens)

    @cached_property
    def _ends(self) -> frozenset[int]:
        return self.vocabulary.end_tokens

    @cached_property
    def _banned(self) -> tuple[int, ...]:
        """FIM markers and the like, which are no text."""
        return tuple(sorted(self._file.vocabulary.control_tokens - self._ends)) if self._file is not None else ()

    def _asked(self, prompt: Sequence[int], begun: str, sampling: Sampling, max_tokens: int) -> Asked:
        asked = Asked(
            self._told.asked_for,
            sampling,
            max_tokens,
            Parts(""),
            self._answers.ways[0],
            family=self._family,
            context=self._asked_for_context,
        )
        if self._file is not None:
            tokens = (*prompt, *self.vocabulary.tokenize(begun))
            return replace(asked, prompt=tokens, ends=tuple(sorted(self._ends)), banned=self._banned)
        parts = split(prompt).with_suffix(self._streamer.most_suffix)
        return replace(asked, parts=replace(parts, begun=begun))

    def prefill(self, prompt: Sequence[int], cancel: Cancel | None = None) -> int:
        """Have the engine read a prompt, where that is of use and costs nothing.

        Returns:
            How many tokens it has read, as far as it tells.

        Raises:
            Away, Refused: it did not.
        """
        wanted = self._streamer.prefill
        if wanted is None or list(prompt) == self._latest:
            return 0
        stop = self._stop = Stop(cancel)
        decoded = 0
        try:
            with closing(self._answers.pieces(self._asked(prompt, "", Sampling(), wanted), stop)) as pieces:
                for piece in pieces:
                    decoded = piece.prompt_tokens or decoded
                    if piece.end:
                        drain(pieces, stop)
                        break
        except Aborted:
            return decoded
        self._latest = list(prompt)
        return decoded

    def abort(self) -> None:
        """Close the stream of the running generation or prefill, from any thread."""
        self._stop.set()

    def close(self) -> None:
        """Close the connection; a second call does nothing."""
        self._connection.close()
        if self._file is not None:
            self._file.close()


def _first_of(tokens: Sequence[int], among: frozenset[int]) -> int:
    """Where the first token of a set stands."""
    return next((at for at, token in enumerate(tokens) if token in among), len(tokens))
