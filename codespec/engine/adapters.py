"""The LoRA adapters that a context is to decode with, loaded when they are first asked for."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

from codespec.llama.adapter import Adapter
from codespec.llama.context import Context
from codespec.protocols import CodespecError

MOST_HELD = 4
"""Of one model: workspaces take turns."""


@dataclass(frozen=True)
class LoraRequest:
    """A LoRA adapter that is asked for.

    Attributes:
        scale: of what it changes, beside the adapter's own; 0 is nothing.
    """

    path: Path
    scale: float = 1.0


class Adapters:
    """The adapters of one context, the one longest unused dropped where there are too many.

    Attributes:
        problem: why the one that was asked for last is not in use; empty where it is.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._held: OrderedDict[Path, tuple[object, Adapter | CodespecError]] = OrderedDict()
        self.problem = ""

    def use(self, lora: LoraRequest | None) -> bool:
        """Decode with an adapter, or without where it is None or cannot be used; whether that is a change.

        After a change what the context's sequences hold is of no use any more.
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
        state = file_state(path)
        if path in self._held and self._held[path][0] != state:
            self._let_go(path)
        if path not in self._held:
            try:
                found: Adapter | CodespecError = Adapter(self._context.model, path)
            except CodespecError as error:
                found = error
            self._held[path] = state, found
        self._held.move_to_end(path)
        while len(self._held) > MOST_HELD:
            self._let_go(next(iter(self._held)))
        return self._held[path][1]

    def _let_go(self, path: Path) -> None:
        _, found = self._held.pop(path)
        if isinstance(found, Adapter):
            found.close()

    def close(self) -> None:
        """Free them, before the model."""
        while self._held:
            self._let_go(next(iter(self._held)))


def file_state(path: Path) -> object:
    """Differs once the file is another one."""
    try:
        status = path.stat()
    except OSError:
        return None, None
    return status.st_size, status.st_mtime_ns
