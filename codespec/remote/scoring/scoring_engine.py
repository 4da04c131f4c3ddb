"""Engines that say how likely given tokens are: the target is there, everything else of speculative decoding here."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from codespec.draft.costs import LONGEST
from codespec.draft.storage.profiles import Profiles
from codespec.engine.adapters import LoraRequest
from codespec.engine.draft_files import DraftFiles
from codespec.engine.drafts import DRAFTS_BYTES, Drafts
from codespec.engine.engine import KeptPrompts, add_note
from codespec.engine.speculative_engine import SpeculativeEngine
from codespec.files import StrPath
from codespec.llama.model import Model
from codespec.models.tokenizer_json import vocabulary_file
from codespec.models.trimmed import VOCABULARY_KEY
from codespec.protocols import Aborted, Cancel, Chunk, Draft, GrammarState, Limits, Sampling, Target, TokenChange
from codespec.remote.connection import Connection
from codespec.remote.errors import Refused
from codespec.remote.scoring.round_trips import FAR, RequestCosts, key_of
from codespec.remote.scoring.scorers import Scorer, SglangScorer
from codespec.remote.scoring.scoring_target import ScoringTarget, rows_of, takes_the_best
from codespec.remote.scoring.vllm_scorer import VllmScorer
from codespec.remote.scoring.vocabulary_check import check_rows, check_vocabulary, some_tokens
from codespec.speculative.generate import Generator
from codespec.speculative.sparse import SparseSampler

SCORERS: Mapping[str, type[Scorer]] = {each.kind: each for each in (VllmScorer, SglangScorer)}

LONGEST_AUTOMATIC_CONTEXT = 8192
UNTOLD_CONTEXT = 2048
"""Tokens of the context of an engine that does not tell."""


@dataclass(frozen=True)
class _Elsewhere:
    """The target that drafts are for, see ``Drafted``."""

    model: Model
    length: int
    adapter_key: str
    exact: bool = False


class ScoringEngine(SpeculativeEngine):
    """A target on an engine elsewhere, with drafts, n-grams and grammars here; the text is the one that the engine's
    own probabilities give. One generation at a time, from one thread at a time.

    Args:
        connection: to the engine; closed with this.
        kind: ``vllm`` or ``sglang``.
        vocabulary: a file with the target's vocabulary: a GGUF, with weights or without, or a ``tokenizer.json``.
        model: its name there; empty: the first that the engine names.
        context_length: in tokens; 0 is the engine's own, at most 8,192.
        draft_length, drafts_bytes, learnt_folder, profiles, wrap, clock: see ``LocalEngine``.

    Raises:
        Away: the engine cannot be reached, or failed.
        Refused: it has another vocabulary, does not have the model, or does not tell log-probabilities.
        CodespecError: the file of the vocabulary cannot be loaded.
    """

    def __init__(
        self,
        connection: Connection,
        kind: str,
        vocabulary: Path,
        *,
        model: str = "",
        context_length: int = 0,
        draft_length: int = 0,
        drafts_bytes: int = DRAFTS_BYTES,
        learnt_folder: StrPath | None = None,
        profiles: Profiles | None = None,
        wrap: Callable[[Target, str], Target] = lambda sequence, role: sequence,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        self._connection, self._kind = connection, kind
        file = vocabulary_file(vocabulary)
        self.model = Model(file, vocabulary_only=True)
        try:
            if self.model.metadata(VOCABULARY_KEY) is not None:
                raise Refused(
                    f"{vocabulary}: a draft that has only some of its target's tokens; name the target's file"
                )
            self._scorer = SCORERS[kind](connection, model, self.model.vocabulary)
            began = perf_counter()
            connection.get("/v1/models")
            self._round_trip_ms = (perf_counter() - began) * 1e3
            check_vocabulary(self._scorer, self.model.vocabulary, vocabulary, connection.address.host)
            check_rows(self._scorer, self.model.vocabulary, connection.address.host)
            self._context = self._length(context_length)
        except BaseException:
            self.model.close()
            raise
        size = self.model.vocabulary.size
        self._target = ScoringTarget(self._scorer, size, self.context_length)
        profiles = profiles or Profiles(None)
        engine = f"{kind} {connection.address.url} {self._scorer.model}"
        text = some_tokens(self.model.vocabulary, FAR + LONGEST)
        costs = RequestCosts(
            text, file, engine, self._measured, self.context_length, self._round_trip_ms,
            lambda: self._target.most > 0, profiles,
        )  # fmt: skip
        here = _Elsewhere(self.model, self.context_length, key_of(engine))
        files = DraftFiles(here, None, 0, profiles, wrap, math.inf)
        drafts = Drafts(here, costs, files, profiles, clock, drafts_bytes or DRAFTS_BYTES, learnt_folder)
        generator = Generator(
            wrap(self._target, "target"),
            None,
            self.model.vocabulary.end_tokens,
            min(draft_length or LONGEST - 1, LONGEST - 1),
            on_pass=drafts.costs.observe,
            sampler=SparseSampler,
            closer=self._target.closer,
        )
        super().__init__(self.model, drafts, generator, KeptPrompts())

    def _length(self, wanted: int) -> int:
        """Raises Refused where the engine's context is shorter."""
        length = self._scorer.length
        if length and wanted > length:
            raise Refused(f"the engine's context has {length:,} tokens, `remote.context` wants {wanted:,}")
        return wanted or min(length or UNTOLD_CONTEXT, LONGEST_AUTOMATIC_CONTEXT)

    def _measured(self, cancellation: Cancel) -> Target:
        target = ScoringTarget(self._scorer, self.model.vocabulary.size, self.context_length)
        target.best, target.cancel = self._scorer.greedy[0], cancellation
        return target

    @property
    def context_length(self) -> int:
        """Tokens of prompt and text."""
        return self._context

    @property
    def name(self) -> str:
        """As the engine calls it."""
        return self._scorer.model

    @property
    def about(self) -> dict[str, object]:
        """Where the target is, and how far away."""
        return {
            "remote": {
                "kind": self._kind,
                "url": self._connection.address.url,
                "model": self._scorer.model,
                "round_trip_ms": round(self._round_trip_ms, 1),
                "requests": self._connection.trips,
                "mode": "score",
            }
        }

    def use_adapter(self, lora: LoraRequest | None) -> None:
        """Nothing: the target's is chosen by the name of its model, and ``adapter_problem`` and ``notes`` say so."""
        self.adapter_problem = ""
        if lora is not None:
            self.adapter_problem = (
                "`target_lora` changes a target on this machine alone; load the adapter into the engine, and name it "
                "as `remote.model`"
            )
            add_note(self.notes, self.adapter_problem)

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
        """As ``SpeculativeEngine.generate``.

        Raises:
            CodespecError: the prompt is too long, a setting needs logits, or the engine does not answer.
        """
        sampling, limits = sampling or Sampling(), limits or Limits()
        self._target.best = rows_of(sampling, grammar, self._scorer)
        self._target.most = limits.max_tokens if takes_the_best(sampling) else 0
        self.costs.last = 0
        try:
            yield from super().generate(
                prompt, grammar, sampling, limits, cancel, speculate, language, window, changes, document
            )
        finally:
            self._target.stop()

    def prefill(self, prompt: Sequence[int], cancel: Cancel | None = None) -> int:
        """As ``Generating.prefill``: a request has the engine read the prompt into its cache."""
        read = super().prefill(prompt, cancel)
        with suppress(Aborted):
            self._target.warm(prompt)
        return read

    def _stopped(self, cancel: Cancel | None) -> Cancel:
        """``cancel``, or ``abort``; requests are stopped by it, too."""
        self._target.cancel = stopped = super()._stopped(cancel)
        return stopped

    def close(self) -> None:
        """Save what was learnt, free everything; a second call does nothing."""
        self.drafts.close()
        self._connection.close()
        self.model.close()
