"""The draft sources of a target: draft models, n-grams and forced text, with their costs and acceptance rates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from time import monotonic
from typing import Protocol

import numpy as np

from codespec.draft.combined import CombinedDraft
from codespec.draft.costs import RunningCosts
from codespec.draft.forced import ForcedDraft
from codespec.draft.markers import shared_markers
from codespec.draft.model import ModelDraft
from codespec.draft.ngram import NgramDraft
from codespec.draft.ngram_store import NgramStore, WorkspaceNgrams
from codespec.draft.other_vocabulary import OtherVocabularyDraft, other_vocabulary_note
from codespec.draft.retokenize import cut_alike
from codespec.draft.sources import COPYING
from codespec.draft.storage.profiles import Profiles
from codespec.draft.vocabulary_mapping import ResizedVocabularyTarget, TrimmedVocabularyTarget
from codespec.draft.window.window_draft import WindowDraft
from codespec.engine.adapters import Adapters, LoraRequest
from codespec.engine.calibration import Calibration, ModelCosts
from codespec.engine.draft_models import DraftModels, Loaded, OwnHeads
from codespec.engine.engine import Drafting, add_note
from codespec.files import StrPath
from codespec.languages import Language
from codespec.llama.context import Context
from codespec.llama.devices import ResolvedSetting, gpu_layers
from codespec.llama.model import LlamaVocabulary, Model
from codespec.llama.runtime import Cancellation
from codespec.models.index import best_draft
from codespec.models.registry import find_draft, first_difference, text_hash, vocabulary_hash
from codespec.models.trimmed import NONE, targets_tokens
from codespec.protocols import CodespecError, Draft, Target

SOURCES = frozenset({"forced", "model", *COPYING})

DRAFTS_BYTES = 2 << 30
"""Memory that the draft models of one target take at most."""

BEST_KEPT_S = 1.0
"""Seconds that the best draft of a language is remembered before it is looked for again: there may be a new one."""


class Drafted(Protocol):
    """The target that drafts are for; a ``Context`` is one."""

    @property
    def model(self) -> Model:
        """With its vocabulary, and perhaps nothing else."""
        ...

    @property
    def length(self) -> int:
        """Tokens of its context."""
        ...

    @property
    def exact(self) -> bool:
        """Whether drafts stay off GPUs, too."""
        ...

    @property
    def adapter_key(self) -> str:
        """What tells its tokens from those of the same model without a LoRA adapter, or elsewhere."""
        ...


class TargetCosts(Protocol):
    """What the target's calls cost; a ``ModelCosts`` is one."""

    @property
    def running(self) -> RunningCosts:
        """Updated by every target call."""
        ...

    def measure(self, go_on: Callable[[], bool], cancellation: Cancellation) -> bool:
        """See ``ModelCosts.measure``."""
        ...


class Drafts(Drafting):
    """The draft sources of one target.

    Args:
        costs: of target calls.
        gpu_layers: of draft models; None: as many as fit beside the target.
        threads: draft models are loaded with.
        memory: bytes that draft models may take; those longest unused are let go.
        profiles, wrap, clock: see ``LocalEngine``.
        parameters: of the target; None: those of its model.
        learnt_folder: where the n-grams of workspaces are kept, instead of the user's data folder.
        heads: makes the target's own heads a model with its tokens, where it has some.

    Attributes:
        costs: of target calls.
        ngrams: drafts from documents and from generated text.
        window: drafts from the text that a generation repeats.
        sources: the sources that are switched on; may be replaced.
        notes: messages for the user about the drafts in use, one sentence or two each.
    """

    learns = True

    def __init__(
        self,
        target: Drafted,
        costs: TargetCosts,
        gpu_layers: int | None,
        threads: int,
        profiles: Profiles,
        wrap: Callable[[Target, str], Target],
        clock: Callable[[], float],
        memory: int = DRAFTS_BYTES,
        parameters: float | None = None,
        heads: Callable[[], tuple[Context, Target]] | None = None,
        learnt_folder: StrPath | None = None,
    ) -> None:
        self._heads = heads
        self._target, self._vocabulary = target, target.model.vocabulary
        own = vocabulary_hash(self._vocabulary)
        super().__init__(NgramStore(own, Path(learnt_folder) if learnt_folder is not None else None))
        self._parameters = target.model.parameter_count if parameters is None else parameters
        self._gpu_layers, self._threads = gpu_layers, threads
        self._profiles, self._wrap, self._clock = profiles, wrap, clock
        self._target_costs = costs
        self.costs = costs.running
        self._copying = {name: make(self._vocabulary) for name, make in COPYING.items()}
        ngrams, window = self._copying["ngram"], self._copying["window"]
        assert isinstance(ngrams, NgramDraft)
        assert isinstance(window, WindowDraft)
        self.ngrams, self.window = ngrams, window
        self.sources = SOURCES
        self.notes: list[str] = []
        self._vocabularies = {own, text_hash(self._vocabulary)}
        self._best: dict[str, tuple[float, Path | None]] = {}  # by language, and when they were looked for
        self._forced = ForcedDraft(self._vocabulary)
        self._models = DraftModels(self._load, memory, self._let_go)
        self._lora: LoraRequest | None = None
        # By draft, and the keys of the target's and its LoRA adapters.
        self._calibrations: dict[tuple[Path | None, tuple[str, str]], Calibration] = {}
        self._combined: dict[tuple[str, Path | None, tuple[str, str], tuple[str, ...]], CombinedDraft] = {}
        self._saved = monotonic()

    def find(self, name: StrPath, language: Language) -> Path | None:
        """As ``Drafting.find``."""
        if name != "auto":
            return find_draft(name, language)
        looked, found = self._best.get(language.id, (-BEST_KEPT_S, None))
        if monotonic() - looked >= BEST_KEPT_S:
            found = best_draft(language, self._vocabularies, self._parameters)
            if found is None and self._heads is not None:
                found = self._target.model.path
            found = found or find_draft(name, language)
            self._best[language.id] = monotonic(), found
        return found

    def choose(self, path: StrPath | None, wait: bool = True) -> None:
        """As ``Drafting.choose``."""
        path = Path(path) if path is not None else None
        if path is not None:
            loaded = self._models.get(path, wait)
            if loaded is None:
                return  # the one in use serves until then
            if loaded.note:
                add_note(self.notes, loaded.note)
        self.chosen = path
        self._adapt()

    def use_adapter(self, lora: LoraRequest | None) -> None:
        """As ``Drafting.use_adapter``; ``notes`` tell of the problem, too."""
        self._lora = lora
        self._adapt()

    def _adapt(self) -> None:
        loaded = self._models.peek(self.chosen)
        if loaded is None:
            return
        if loaded.adapters.use(self._lora):
            loaded.draft.forget()
            loaded.running.begin_anew()
        if loaded.adapters.problem:
            add_note(self.notes, loaded.adapters.problem)

    @property
    def adapter_problem(self) -> str:
        """As ``Drafting.adapter_problem``."""
        loaded = self._models.peek(self.chosen)
        return loaded.adapters.problem if loaded is not None else ""

    @property
    def _adapter_keys(self) -> tuple[str, str]:
        loaded = self._models.peek(self.chosen)
        return self._target.adapter_key, loaded.context.adapter_key if loaded is not None else ""

    def _load(self, path: Path, go_on: Callable[[], bool]) -> Loaded:
        if self._heads is not None and path == self._target.model.path:
            context, sequence = self._heads()
            own = ModelDraft(self._wrap(sequence, "draft"), self._vocabulary.end_tokens)
            placed = ResolvedSetting(self._target.model.gpu_layers)
            return OwnHeads(self._target.model, context, own, RunningCosts(), placed, Adapters(context))
        placed = gpu_layers(self._gpu_layers, path, self._target.length, exact=self._target.exact)
        model = Model(path, gpu_layers=int(placed.value), progress=lambda _: go_on())
        try:
            different = first_difference(self._vocabulary, model.vocabulary)
            tokens = targets_tokens(model, self._vocabulary) if different is not None else None
            if different is None or tokens is not None:
                context = Context(model, context_length=self._target.length, threads=self._threads)
                own = self._in_targets_tokens(model, self._wrap(context.sequence(), "draft"), tokens)
                costs = ModelCosts(context, 1, self._profiles)
                return Loaded(model, context, own, costs.running, placed, Adapters(context), costs)
            # The same text may take more tokens than the target's; beyond its training the model would guess badly.
            length = min(self._target.length, model.trained_context)
            context = Context(model, context_length=length, threads=self._threads)
        except CodespecError:
            model.close()
            raise
        alike = cut_alike(model.vocabulary, self._vocabulary)
        draft = OtherVocabularyDraft(
            self._wrap(context.sequence(), "draft"),
            model.vocabulary,
            self._vocabulary,
            shared_markers(model.vocabulary, self._vocabulary),
            context.length,
            alike,
        )
        names = [_named(each, different) for each in (model.vocabulary, self._vocabulary)]
        difference = f"token {different:,} is {names[0]} in the one and {names[1]} in the other"
        note = other_vocabulary_note(path.name, self._target.model.path.name, alike, difference)
        return Loaded(model, context, draft, RunningCosts(), placed, Adapters(context), note=note)

    def _in_targets_tokens(self, model: Model, sequence: Target, tokens: list[int] | None) -> ModelDraft:
        """A draft of the target's family.

        Args:
            tokens: see ``targets_tokens``; None: all are the same, but for padding.
        """
        among, size = None, self._vocabulary.size
        if tokens is not None:
            sequence = TrimmedVocabularyTarget(sequence, tokens, size, _lacking(model.vocabulary, len(tokens)))
            if 2 * len(tokens) < size:  # of nearly all tokens those that it lacks have no chance anyway
                among = np.unique([each for each in tokens if each != NONE])
        elif model.vocabulary.size != size:
            sequence = ResizedVocabularyTarget(sequence, size)
        return ModelDraft(sequence, self._vocabulary.end_tokens, among)

    def _let_go(self, path: Path, loaded: Loaded) -> None:
        if self.chosen == path:
            self.chosen = None
        for key in [key for key in self._combined if key[1] == path]:
            del self._combined[key]

    @property
    def choices(self) -> dict[str, ResolvedSetting]:
        """As ``Drafting.choices``."""
        loaded = self._models.peek(self.chosen)
        return {"gpu_layers": loaded.placed, "threads": loaded.context.choices["threads"]} if loaded is not None else {}

    @property
    def model(self) -> Draft | None:
        """The draft model in use, by itself."""
        return self._models[self.chosen].draft if self.chosen is not None else None

    def combined(self, kind: str) -> Draft | None:
        """One draft of all sources that are switched on, with the acceptance rates of this kind of text."""
        if not self.sources:
            return None
        loaded = self._models[self.chosen] if self.chosen is not None else None
        model = loaded.draft if loaded is not None else None
        sources = tuple(sorted(self.sources))
        key = kind, self.chosen, self._adapter_keys, sources
        found = self._combined.get(key)
        if found is None:
            found = self._combined[key] = CombinedDraft(
                self.costs,
                self._calibration().of(kind),
                [source for name, source in self._copying.items() if name in sources],
                model=model if "model" in sources and isinstance(model, ModelDraft) else None,
                other_vocabulary=model if "model" in sources and isinstance(model, OtherVocabularyDraft) else None,
                forced=self._forced if "forced" in sources else None,
                model_costs=loaded.running if loaded is not None else None,
                end_tokens=self._vocabulary.end_tokens,
                clock=self._clock,
            )
        return found

    def _calibration(self) -> Calibration:
        key = self.chosen, self._adapter_keys
        found = self._calibrations.get(key)
        if found is None:
            found = Calibration(self._target.model.path, self.chosen, self._profiles, self._adapter_keys)
            self._calibrations[key] = found
        return found

    def cancellable(self, cancellation: Cancellation) -> AbstractContextManager[None]:
        """As ``Context.cancellable``, for the draft model in use."""
        return self._models[self.chosen].context.cancellable(cancellation) if self.chosen is not None else nullcontext()

    def measure(self, go_on: Callable[[], bool], cancellation: Cancellation) -> bool:
        """Measure the costs of target and draft models, see ``SpeculativeEngine.measure``."""
        every = [self._target_costs, *(each.costs for each in self._models if each.costs is not None)]
        return all(costs.measure(go_on, cancellation) for costs in every)

    def use_learnt(self, learnt: WorkspaceNgrams | None = None, following: Sequence[int] = ()) -> None:
        """As ``Drafting.use_learnt``."""
        self.ngrams.learnt = learnt.index if learnt is not None else None
        self.ngrams.following = list(following)

    def remember(self, prompt: Sequence[int], generated: Sequence[int]) -> None:
        """As ``Drafting.remember``."""
        self.ngrams.remember(prompt, generated)

    def forget_generated(self) -> None:
        """As ``Drafting.forget_generated``."""
        self.ngrams.forget_generated()

    def save(self, every_s: float = 0.0) -> None:
        """As ``Drafting.save``."""
        if monotonic() - self._saved >= every_s:
            for calibration in self._calibrations.values():
                calibration.save()
            self._saved = monotonic()

    def close(self) -> None:
        """Save what was learnt and free the models."""
        self.learnt.close()
        self.save()
        self._models.close()


def _lacking(vocabulary: LlamaVocabulary, count: int) -> int:
    """What a draft reads for a token that it lacks: its token for that, or padding, else the end of a text."""
    return count if count < vocabulary.size else min(vocabulary.end_tokens, default=0)


def _named(vocabulary: LlamaVocabulary, token: int) -> str:
    return repr(vocabulary.name(token).decode("utf-8", "replace")) if token < vocabulary.used else "missing"
