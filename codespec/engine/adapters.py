"""The LoRA adapters of a context, loaded at their first use."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from codespec.llama.adapter import Adapter
from codespec.llama.context import Context
from codespec.protocols import CodespecError
from codespec.recent import Recent

MOST_HELD = 4
"""Adapters of one model that stay in memory: workspaces take turns."""


@dataclass(frozen=True)
class LoraRequest:
    """A LoRA adapter to decode with.

    Attributes:
        scale: factor on the adapter's change, beside its own alpha; 0 is no change.
    """

    path: Path
    scale: float = 1.0


class Adapters:
    """The adapters of one context; beyond ``MOST_HELD`` the one longest unused is freed.

    Attributes:
        problem: why the adapter requested last is not in use; empty where it is.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._held: Recent[Path, tuple[object, Adapter | CodespecError]] = Recent(
            MOST_HELD, dropped=lambda _, held: _free(held[1])
        )
        self.problem = ""

    def use(self, lora: LoraRequest | None) -> bool:
        """Decode with an adapter, or without one where it is None or cannot be used; whether that is a change.

        After a change the KV caches of the context's sequences are invalid.
        """
        before, adapter = self._context.adapter_key, None
        self.problem = ""
        if lora is not None and lora.scale:
            found = self._get(lora.path)
            if isinstance(found, Adapter):
                adapter = found
            else:
                self.problem = f"{found}; it is not used"
        if lora is not None or before:
            self._context.use(adapter, lora.scale if lora is not None else 1.0)
        return self._context.adapter_key != before

    def _get(self, path: Path) -> Adapter | CodespecError:
        state, held = file_state(path), self._held.use(path)
        if held is not None and held[0] != state:
            _free(self._held.pop(path)[1])
            held = None
        if held is None:
            try:
                held = state, Adapter(self._context.model, path)
            except CodespecError as error:
                held = state, error
            self._held[path] = held
        return held[1]

    def close(self) -> None:
        """Free all adapters; to be called before the model is freed."""
        for _, found in self._held.values():
            _free(found)
        self._held.clear()


def _free(found: Adapter | CodespecError) -> None:
    if isinstance(found, Adapter):
        found.close()


def file_state(path: Path) -> object:
    """A value that changes when the file is replaced or written."""
    try:
        status = path.stat()
    except OSError:
        return None, None
    return status.st_size, status.st_mtime_ns
