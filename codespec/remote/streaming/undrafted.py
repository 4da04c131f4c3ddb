"""The parts of an engine that are about drafts and models here, for one that has neither."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from codespec.draft.ngram_store import NgramStore
from codespec.engine.adapters import LoraRequest
from codespec.engine.engine import KeptPrompts, NothingKept, add_note
from codespec.files import StrPath
from codespec.languages import Language
from codespec.llama.devices import ResolvedSetting
from codespec.remote.streaming.nothing_learnt import NothingLearnt


class Undrafted:
    """An engine that drafts by itself, if at all; see ``Engine``.

    Args:
        learnt_folder: where other engines keep the n-grams of workspaces, instead of the user's data folder.
    """

    threads = 0
    reading = False
    draft: Path | None = None
    draft_adapter_problem = ""
    adapter_problem = ""
    filling_adapter: Path | None = None

    def __init__(self, learnt_folder: Path | None) -> None:
        self.notes: list[str] = []
        self.prompt_cache: KeptPrompts = NothingKept()
        self.learnt: NgramStore = NothingLearnt(learnt_folder)

    @property
    def choices(self) -> dict[str, ResolvedSetting]:
        """None: they are the engine's."""
        return {}

    @property
    def draft_choices(self) -> dict[str, ResolvedSetting]:
        """None: there is no draft model."""
        return {}

    def note(self, text: str) -> None:
        """Add a message for the user, unless it is there already."""
        add_note(self.notes, text)

    def use_draft(self, path: StrPath | None, wait: bool = True) -> None:
        """Nothing: the engine drafts by itself, if at all."""

    def find_draft(self, name: StrPath, language: Language) -> Path | None:
        """None."""
        return None

    def use_adapters(self, target: LoraRequest | None, draft: LoraRequest | None) -> None:
        """Nothing: ``adapter_problem`` says so."""
        self.adapter_problem = "a target elsewhere has its own LoRA adapters" if target is not None else ""

    def use_learnt(self, folder: StrPath | None, language: str, following: Sequence[int] = ()) -> None:
        """Nothing is drafted here."""

    def use_nothing_learnt(self) -> None:
        """Nothing is drafted here."""

    def remember(self, prompt: Sequence[int], generated: Sequence[int]) -> None:
        """Nothing is drafted here."""

    def forget_generated(self) -> None:
        """Nothing is drafted here."""

    def measure(self, go_on: Callable[[], bool]) -> bool:
        """Nothing to measure."""
        return True

    def save(self, every_s: float = 0.0) -> None:
        """Nothing to save."""
