"""The files of draft models for one target: which one is the best, and how one is loaded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Protocol

import numpy as np

from codespec.draft.costs import RunningCosts
from codespec.draft.markers import shared_markers
from codespec.draft.model import ModelDraft
from codespec.draft.other_vocabulary import OtherVocabularyDraft, other_vocabulary_note
from codespec.draft.retokenize import cut_alike
from codespec.draft.storage.profiles import Profiles
from codespec.draft.vocabulary_mapping import ResizedVocabularyTarget, TrimmedVocabularyTarget
from codespec.engine.adapters import Adapters
from codespec.engine.calibration import ModelCosts
from codespec.engine.draft_models import Loaded, OwnHeads
from codespec.files import StrPath
from codespec.languages import Language
from codespec.llama.context import Context
from codespec.llama.defaults import draft_threads
from codespec.llama.devices import ResolvedSetting, gpu_layers
from codespec.llama.model import LlamaVocabulary, Model
from codespec.models.index import best_draft
from codespec.models.registry import find_draft, first_difference, text_hash, vocabulary_hash
from codespec.models.trimmed import NONE, targets_tokens
from codespec.protocols import CodespecError, Target

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
        """The length of the target's context, in tokens."""
        ...

    @property
    def exact(self) -> bool:
        """Whether drafts stay off GPUs, too."""
        ...

    @property
    def adapter_key(self) -> str:
        """What tells its tokens from those of the same model without a LoRA adapter, or elsewhere."""
        ...


class DraftFiles:
    """Finds draft models for one target, and loads them.

    Args:
        gpu_layers: of draft models; None: as many as fit beside the target.
        threads: draft models are loaded with.
        wrap: see ``LocalEngine``.
        parameters: of the target; None: those of its model.
        heads: makes the target's own heads a model with its tokens, where it has some.

    Attributes:
        vocabulary_hash: of the target.
    """

    def __init__(
        self,
        target: Drafted,
        gpu_layers: int | None,
        threads: int,
        profiles: Profiles,
        wrap: Callable[[Target, str], Target],
        parameters: float | None = None,
        heads: Callable[[], tuple[Context, Target]] | None = None,
    ) -> None:
        self._target, self._heads = target, heads
        self._parameters = target.model.parameter_count if parameters is None else parameters
        self._gpu_layers, self._threads = gpu_layers, threads
        self._profiles, self._wrap = profiles, wrap
        self.vocabulary_hash = vocabulary_hash(target.model.vocabulary)
        self._vocabularies = {self.vocabulary_hash, text_hash(target.model.vocabulary)}
        self._best: dict[str, tuple[float, Path | None]] = {}  # by language, and when they were looked for

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

    def load(self, path: Path, go_on: Callable[[], bool]) -> Loaded:
        """Load a model; asks ``go_on`` now and then.

        Raises:
            CodespecError: it cannot be loaded.
        """
        vocabulary = self._target.model.vocabulary
        if self._heads is not None and path == self._target.model.path:
            context, sequence = self._heads()
            own = ModelDraft(self._wrap(sequence, "draft"), vocabulary.end_tokens)
            placed = ResolvedSetting(self._target.model.gpu_layers)
            return OwnHeads(self._target.model, context, own, RunningCosts(), placed, Adapters(context))
        placed = gpu_layers(self._gpu_layers, path, self._target.length, exact=self._target.exact)
        model = Model(path, gpu_layers=int(placed.value), progress=lambda _: go_on())
        threads = self._threads or draft_threads(model)
        try:
            different = first_difference(vocabulary, model.vocabulary)
            tokens = targets_tokens(model, vocabulary) if different is not None else None
            if different is None or tokens is not None:
                context = Context(model, context_length=self._target.length, threads=threads)
                own = self._in_targets_tokens(model, self._wrap(context.sequence(), "draft"), tokens)
                costs = ModelCosts(context, 1, self._profiles)
                return Loaded(model, context, own, costs.running, placed, Adapters(context), costs)
            # The same text may take more tokens than the target's; beyond its training the model would guess badly.
            length = min(self._target.length, model.trained_context)
            context = Context(model, context_length=length, threads=threads)
        except CodespecError:
            model.close()
            raise
        alike = cut_alike(model.vocabulary, vocabulary)
        draft = OtherVocabularyDraft(
            self._wrap(context.sequence(), "draft"),
            model.vocabulary,
            vocabulary,
            shared_markers(model.vocabulary, vocabulary),
            context.length,
            alike,
        )
        names = [_named(each, different) for each in (model.vocabulary, vocabulary)]
        difference = f"token {different:,} is {names[0]} in the one and {names[1]} in the other"
        note = other_vocabulary_note(path.name, self._target.model.path.name, alike, difference)
        return Loaded(model, context, draft, RunningCosts(), placed, Adapters(context), note=note)

    def _in_targets_tokens(self, model: Model, sequence: Target, tokens: list[int] | None) -> ModelDraft:
        """A draft of the target's family.

        Args:
            tokens: see ``targets_tokens``; None: all are the same, but for padding.
        """
        vocabulary = self._target.model.vocabulary
        among, size = None, vocabulary.size
        if tokens is not None:
            sequence = TrimmedVocabularyTarget(sequence, tokens, size, _lacking(model.vocabulary, len(tokens)))
            if 2 * len(tokens) < size:  # of nearly all tokens those that it lacks have no chance anyway
                among = np.unique([each for each in tokens if each != NONE])
        elif model.vocabulary.size != size:
            sequence = ResizedVocabularyTarget(sequence, size)
        return ModelDraft(sequence, vocabulary.end_tokens, among)


def _lacking(vocabulary: LlamaVocabulary, count: int) -> int:
    """What a draft reads for a token that it lacks: its token for that, or padding, else the end of a text."""
    return count if count < vocabulary.size else min(vocabulary.end_tokens, default=0)


def _named(vocabulary: LlamaVocabulary, token: int) -> str:
    return repr(vocabulary.name(token).decode("utf-8", "replace")) if token < vocabulary.used else "missing"
