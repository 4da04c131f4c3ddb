"""What may be proposed to a target: draft models, n-grams and forced text, and what is learnt of each."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import NamedTuple

from codespec.completion.learnt import Calibration, ModelCosts
from codespec.draft.compose import Combined
from codespec.draft.costs import RunningCosts
from codespec.draft.forced import ForcedDraft
from codespec.draft.foreign import ForeignDraft, foreign_note
from codespec.draft.markers import shared_markers
from codespec.draft.model import ModelDraft
from codespec.draft.ngram import NgramDraft
from codespec.draft.profiles import Profiles
from codespec.draft.recode import cut_alike
from codespec.llama.context import Context
from codespec.llama.model import Model
from codespec.llama.runtime import Cancellation
from codespec.models.registry import same_vocabulary
from codespec.protocols import CodespecError, Draft, Target

SOURCES = frozenset({"forced", "ngram", "model"})

_log = logging.getLogger("codespec")


class Loaded(NamedTuple):
    """A draft model in memory."""

    model: Model
    context: Context
    draft: ModelDraft | ForeignDraft
    costs: RunningCosts


class Drafts:
    """The sources of drafts for one target, as it uses them.

    Args:
        target: its context.
        gpu_layers, threads: draft models are loaded with.
        profiles, wrap, clock: see ``LocalEngine``.

    Attributes:
        costs: of the target's passes.
        ngrams: which learn from texts and from what was generated.
        sources: those that are switched on; may be exchanged.
        chosen: the draft model in use.
        notes: what the user should know about the drafts in use, one sentence or two each.
    """

    def __init__(
        self,
        target: Context,
        gpu_layers: int,
        threads: int,
        profiles: Profiles,
        wrap: Callable[[Target, str], Target],
        clock: Callable[[], float],
    ) -> None:
        self._target, self._vocabulary = target, target.model.vocabulary
        self._gpu_layers, self._threads = gpu_layers, threads
        self._profiles, self._wrap, self._clock = profiles, wrap, clock
        self._model_costs: list[ModelCosts] = []
        self.costs = self._costs_of(target)
        self.ngrams = NgramDraft()
        self.sources = SOURCES
        self.chosen: Path | None = None
        self.notes: list[str] = []
        self._forced = ForcedDraft(self._vocabulary)
        self._loaded: dict[Path, Loaded] = {}
        self._calibrations: dict[Path | None, Calibration] = {}  # by draft
        self._combined: dict[tuple[str, Path | None, tuple[str, ...]], Combined] = {}

    def choose(self, path: Path | None) -> None:
        """See ``LocalEngine.use_draft``."""
        if path is not None and path not in self._loaded:
            self._loaded[path] = self._load(path)
        self.chosen = path

    def _load(self, path: Path) -> Loaded:
        model = Model(path, gpu_layers=self._gpu_layers)
        try:
            if same_vocabulary(self._vocabulary, model.vocabulary):
                context = Context(model, context_length=self._target.length, threads=self._threads)
                draft = ModelDraft(self._wrap(context.sequence(), "draft"), self._vocabulary.end_tokens)
                return Loaded(model, context, draft, self._costs_of(context, rows=1))
            # The same text may take more tokens than the target's; beyond its training the model would guess badly.
            length = min(self._target.length, model.trained_context)
            context = Context(model, context_length=length, threads=self._threads)
        except CodespecError:
            model.close()
            raise
        return Loaded(model, context, self._foreign(model, context), RunningCosts())

    def _foreign(self, model: Model, context: Context) -> ForeignDraft:
        alike = cut_alike(model.vocabulary, self._vocabulary)
        self.note(foreign_note(model.path.name, self._target.model.path.name, alike))
        return ForeignDraft(
            self._wrap(context.sequence(), "draft"),
            model.vocabulary,
            self._vocabulary,
            shared_markers(model.vocabulary, self._vocabulary),
            context.length,
            alike,
        )

    def note(self, text: str) -> None:
        """Tell the user, once."""
        if text not in self.notes:
            self.notes.append(text)
            _log.warning(text)

    @property
    def model(self) -> Draft | None:
        """The draft model in use, by itself."""
        return self._loaded[self.chosen].draft if self.chosen is not None else None

    def combined(self, kind: str) -> Draft | None:
        """The sources that are switched on, as one draft with what it has learnt of this kind of text."""
        if not self.sources:
            return None
        model, costs = self._loaded[self.chosen][2:] if self.chosen is not None else (None, None)
        sources = tuple(sorted(self.sources))
        found = self._combined.get((kind, self.chosen, sources))
        if found is None:
            found = self._combined[kind, self.chosen, sources] = Combined(
                self.costs,
                self._calibration().of(kind),
                ngrams=self.ngrams if "ngram" in sources else None,
                model=model if "model" in sources and isinstance(model, ModelDraft) else None,
                foreign=model if "model" in sources and isinstance(model, ForeignDraft) else None,
                forced=self._forced if "forced" in sources else None,
                model_costs=costs,
                end_tokens=self._vocabulary.end_tokens,
                clock=self._clock,
            )
        return found

    def _costs_of(self, context: Context, rows: int | None = None) -> RunningCosts:
        costs = ModelCosts(context, self._gpu_layers, rows, self._profiles)
        self._model_costs.append(costs)
        return costs.running

    def _calibration(self) -> Calibration:
        found = self._calibrations.get(self.chosen)
        if found is None:
            found = self._calibrations[self.chosen] = Calibration(self._target.model.path, self.chosen, self._profiles)
        return found

    def cancellable(self, cancellation: Cancellation) -> AbstractContextManager[None]:
        """As ``Context.cancellable``, for the draft model in use."""
        return self._loaded[self.chosen].context.cancellable(cancellation) if self.chosen is not None else nullcontext()

    def measure(self, go_on: Callable[[], bool], cancellation: Cancellation) -> bool:
        """Measure what passes of the loaded models cost, the target's too, see ``LocalEngine.measure``."""
        return all(costs.measure(go_on, cancellation) for costs in self._model_costs)

    def save(self) -> None:
        """Keep how often drafts were right for the next run."""
        for calibration in self._calibrations.values():
            calibration.save()

    def close(self) -> None:
        """Free the models."""
        self._model_costs.clear()
        for model, context, *_ in self._loaded.values():
            context.close()
            model.close()
        self._loaded.clear()
