"""The sources of drafts that are switched on, put together for each kind of text and each draft model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from codespec.draft.combined import CombinedDraft
from codespec.draft.copying import CopyingSource
from codespec.draft.costs import RunningCosts
from codespec.draft.forced import ForcedDraft
from codespec.draft.model import ModelDraft
from codespec.draft.other_vocabulary import OtherVocabularyDraft
from codespec.draft.sources import COPYING
from codespec.draft.storage.profiles import Profiles
from codespec.engine.calibration import Calibration
from codespec.engine.draft_models import Loaded
from codespec.llama.model import Model
from codespec.protocols import Draft

SOURCES = frozenset({"forced", "model", *COPYING})


class Combinations:
    """One draft of all sources for each kind of text, draft model and pair of LoRA adapters, with its acceptance rates.

    Args:
        target: with the vocabulary.
        costs: of target calls.
        copying: the sources that copy, by name.
        clock: see ``LocalEngine``.

    Attributes:
        sources: the sources that are switched on; may be replaced.
    """

    def __init__(
        self,
        target: Model,
        costs: RunningCosts,
        copying: dict[str, CopyingSource],
        profiles: Profiles,
        clock: Callable[[], float],
    ) -> None:
        self._target, self._costs, self._copying = target, costs, copying
        self._profiles, self._clock = profiles, clock
        self.sources = SOURCES
        self._forced = ForcedDraft(target.vocabulary)
        # By draft, and the keys of the target's and its LoRA adapters.
        self._calibrations: dict[tuple[Path | None, tuple[str, str]], Calibration] = {}
        self._combined: dict[tuple[str, Path | None, tuple[str, str], tuple[str, ...]], CombinedDraft] = {}

    def of(self, kind: str, path: Path | None, loaded: Loaded | None, adapters: tuple[str, str]) -> Draft | None:
        """The draft of this kind of text; None where no source is switched on.

        Args:
            path, loaded: the draft model; None without one.
            adapters: keys of the target's and the draft model's LoRA adapter.
        """
        if not self.sources:
            return None
        sources = tuple(sorted(self.sources))
        found = self._combined.get((kind, path, adapters, sources))
        if found is None:
            model = loaded.draft if loaded is not None and "model" in sources else None
            found = self._combined[kind, path, adapters, sources] = CombinedDraft(
                self._costs,
                self._calibration(path, adapters).of(kind),
                [source for name, source in self._copying.items() if name in sources],
                model=model if isinstance(model, ModelDraft) else None,
                other_vocabulary=model if isinstance(model, OtherVocabularyDraft) else None,
                forced=self._forced if "forced" in sources else None,
                model_costs=loaded.running if loaded is not None else None,
                end_tokens=self._target.vocabulary.end_tokens,
                clock=self._clock,
            )
        return found

    def _calibration(self, path: Path | None, adapters: tuple[str, str]) -> Calibration:
        found = self._calibrations.get((path, adapters))
        if found is None:
            found = Calibration(self._target.path, path, self._profiles, adapters)
            self._calibrations[path, adapters] = found
        return found

    def let_go(self, path: Path) -> None:
        """Forget the drafts of a model that is about to be freed."""
        for key in [key for key in self._combined if key[1] == path]:
            del self._combined[key]

    def save(self) -> None:
        """Save the acceptance rates for the next run."""
        for calibration in self._calibrations.values():
            calibration.save()
