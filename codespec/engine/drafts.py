"""What drafts for a target: draft models, n-grams, windows and forced text, with their costs and acceptance rates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from time import monotonic
from typing import Protocol

from codespec.draft.costs import RunningCosts
from codespec.draft.ngram import NgramDraft
from codespec.draft.ngram_store import NgramStore, WorkspaceNgrams
from codespec.draft.sources import COPYING
from codespec.draft.storage.profiles import Profiles
from codespec.draft.window.window_draft import WindowDraft
from codespec.engine.adapters import LoraRequest
from codespec.engine.combinations import Combinations
from codespec.engine.draft_files import Drafted, DraftFiles
from codespec.engine.draft_models import DraftModels, Loaded
from codespec.engine.engine import Drafting, add_note
from codespec.files import StrPath
from codespec.languages import Language
from codespec.llama.devices import ResolvedSetting
from codespec.llama.runtime import Cancellation
from codespec.protocols import Draft

DRAFTS_BYTES = 2 << 30
"""Memory that the draft models of one target take at most."""


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
    """What drafts for one target.

    Args:
        costs: of target calls.
        files: of draft models.
        profiles, clock: see ``LocalEngine``.
        memory: bytes that draft models may take; those longest unused are let go.
        learnt_folder: where the n-grams of workspaces are kept, instead of the user's data folder.

    Attributes:
        ngrams: drafts from documents and from generated text.
        window: drafts from the text that a generation repeats.
        combinations: of the sources that are switched on.
        notes: messages for the user about the drafts in use, one sentence or two each.
    """

    learns = True

    def __init__(
        self,
        target: Drafted,
        costs: TargetCosts,
        files: DraftFiles,
        profiles: Profiles,
        clock: Callable[[], float],
        memory: int,
        learnt_folder: StrPath | None,
    ) -> None:
        folder = Path(learnt_folder) if learnt_folder is not None else None
        super().__init__(NgramStore(files.vocabulary_hash, folder))
        self._target, self._target_costs, self._files = target, costs, files
        copying = {name: make(target.model.vocabulary) for name, make in COPYING.items()}
        ngrams, window = copying["ngram"], copying["window"]
        assert isinstance(ngrams, NgramDraft)
        assert isinstance(window, WindowDraft)
        self.ngrams, self.window = ngrams, window
        self.combinations = Combinations(target.model, costs.running, copying, profiles, clock)
        self.notes: list[str] = []
        self._models = DraftModels(files.load, memory, self._let_go)
        self._lora: LoraRequest | None = None
        self._saved = monotonic()

    @property
    def costs(self) -> RunningCosts:
        """What passes of the target take, as measured and corrected while decoding."""
        return self._target_costs.running

    def find(self, name: StrPath, language: Language) -> Path | None:
        """As ``Drafting.find``."""
        return self._files.find(name, language)

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

    def _let_go(self, path: Path, loaded: Loaded) -> None:
        if self.chosen == path:
            self.chosen = None
        self.combinations.let_go(path)

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
        loaded = self._models[self.chosen] if self.chosen is not None else None
        adapters = self._target.adapter_key, loaded.context.adapter_key if loaded is not None else ""
        return self.combinations.of(kind, self.chosen, loaded, adapters)

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
            self.combinations.save()
            self._saved = monotonic()

    def close(self) -> None:
        """Save what was learnt and free the models."""
        self.learnt.close()
        self.save()
        self._models.close()
