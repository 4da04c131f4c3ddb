"""The LoRA adapters that the settings ask for."""

from __future__ import annotations

from typing import Any

from codespec.config import Config
from codespec.config_sections import LoraConfig
from codespec.engine.adapters import LoraRequest
from codespec.engine.engine import Engine, add_note
from codespec.models.fim import FimFormat
from codespec.models.fitted import NONE, adapter_layout
from codespec.models.registry import find_adapter
from codespec.protocols import CodespecError


class LoraSelection:
    """The LoRA adapters of one completer, for target and draft; another completer of the same engine may have others.

    Args:
        problems: a sentence is added for each adapter that is not found.

    Attributes:
        layout: for filling in, that the target's adapter was trained with; None where it was not, or is not in use.
        told: for ``target_lora`` and ``draft_lora``, where there is one, set or found: path, scale, and the problem
            that keeps the adapter from use.
    """

    def __init__(self, engine: Engine, config: Config, problems: list[str]) -> None:
        self._engine = engine
        self._problems = problems
        self._target = self._found(config.target_lora)
        self._draft = self._found(config.draft_lora)
        if not config.target_lora.path and (path := engine.filling_adapter) is not None:
            self._target = LoraRequest(path)
        self.told: dict[str, dict[str, Any]] = {}
        self.use()
        self.layout: FimFormat | None = None
        if self._target is not None and self._target.scale and not engine.adapter_problem:
            self.layout = adapter_layout(self._target.path, engine.vocabulary.size)

    def _found(self, settings: LoraConfig) -> LoraRequest | None:
        if settings.path == NONE:
            return None
        try:
            return LoraRequest(find_adapter(settings.path), settings.scale) if settings.path else None
        except CodespecError as error:
            problem = f"{error}; none is used"
            self._problems.append(problem)
            add_note(self._engine.notes, problem)
            return None

    def use(self) -> None:
        """Switch the engine to these adapters: another completer may have left others."""
        engine = self._engine
        engine.use_adapter(self._target)
        engine.drafts.use_adapter(self._draft)
        roles = {
            "target_lora": (self._target, engine.adapter_problem),
            "draft_lora": (self._draft, engine.drafts.adapter_problem),
        }
        self.told = {
            role: {"path": str(lora.path), "scale": lora.scale, "problem": problem}
            for role, (lora, problem) in roles.items()
            if lora is not None
        }
