"""LoRA adapters: small changes to a model's matrices, read from a GGUF file of their own.

llama.cpp refuses some files that do not fit, and ends the process over others, in part only when it first decodes with
them. So a file is judged before the library sees it.
"""

from __future__ import annotations

import hashlib
import math
import os
from pathlib import Path
from typing import Any, Protocol
from weakref import WeakSet

from codespec.llama.gguf import Header, Tensor, file_parts, read_header
from codespec.llama.model import Model
from codespec.llama.runtime import clear_errors, last_errors, library
from codespec.protocols import CodespecError

EMBEDDING = "token_embd.weight"
OUTPUT = "output.weight"
KINDS = frozenset({0, 1, 8, 30})
"""enum ggml_type: F32, F16, Q8_0, BF16."""

_A, _B = ".lora_a", ".lora_b"


class User(Protocol):
    """A context that can decode with an adapter."""

    def use(self, adapter: None) -> None:
        """Decode without an adapter."""
        ...

    def __hash__(self) -> int: ...


class Adapter:
    """A LoRA adapter in memory, for the contexts of one model.

    Raises:
        CodespecError: the file is missing or damaged, no LoRA adapter, or one for another model.

    Attributes:
        key: a hash of the file.
        users: the contexts that decode with it.
    """

    def __init__(self, model: Model, path: Path) -> None:
        self.path = path
        self.pointer: Any = None
        self.users: WeakSet[User] = WeakSet()
        check(path, model.path)
        self._api = library()
        try:
            self.key = _hash(path)
        except OSError as error:
            raise CodespecError(f"{path}: cannot be read ({error.strerror})") from error
        clear_errors()
        self.pointer = self._api.llama_adapter_lora_init(model.pointer, os.fsencode(path))
        if not self.pointer:
            reason = (last_errors() or ["no reason given"])[-1][:200]
            raise CodespecError(f"{path}: llama.cpp cannot load it ({reason})")

    def close(self) -> None:
        """Free the adapter, before its model; contexts that use it go on without. A second call does nothing."""
        for context in list(self.users):
            context.use(None)
        if self.pointer:
            self._api.llama_adapter_lora_free(self.pointer)
            self.pointer = None


def check(path: Path, model: Path) -> None:
    """Refuse an adapter that llama.cpp would not apply to a model as it was trained.

    Raises:
        CodespecError: with the reason.
    """
    adapter = read_header(path)
    bases = [read_header(part) for part in file_parts(model)]
    problem = _of_metadata(adapter, bases[0], model)
    if not problem:
        tensors = {name: tensor for base in bases for name, tensor in base.tensors.items()}
        problem = next(filter(None, (_of_pair(name, adapter, tensors, model) for name in _names(adapter))), "")
    if problem:
        raise CodespecError(f"{path}: {problem}")


def _of_metadata(adapter: Header, base: Header, model: Path) -> str:
    about = adapter.metadata
    if (about.get("general.type"), about.get("adapter.type")) != ("adapter", "lora"):
        return "not a LoRA adapter; make one with llama.cpp's convert_lora_to_gguf.py"
    own, other = about.get("general.architecture"), base.metadata.get("general.architecture")
    if own != other:
        return f"it is for models of the architecture {own!r}; {model.name} is {other!r}"
    alpha = about.get("adapter.lora.alpha")
    if not isinstance(alpha, float) or not math.isfinite(alpha):
        return "its adapter.lora.alpha is missing or no number"
    if "adapter.alora.invocation_tokens" in about:
        return "it is to act from certain tokens on only (aLoRA), which codespec cannot do"
    if not adapter.tensors:
        return "it holds no tensors"
    return ""


def _names(adapter: Header) -> list[str]:
    """Names of the model's tensors that the adapter changes."""
    return sorted({name.removesuffix(_A).removesuffix(_B) for name in adapter.tensors})


def _of_pair(name: str, adapter: Header, tensors: dict[str, Tensor], model: Path) -> str:
    a, b = adapter.tensors.get(name + _A), adapter.tensors.get(name + _B)
    if a is None or b is None:
        return f"{name}: llama.cpp applies pairs of lora_a and lora_b only"
    base = tensors.get(name)
    if base is None:
        return f"{model.name} has no tensor {name}: the adapter is for another model"
    if name == EMBEDDING and OUTPUT not in tensors:
        return (
            f"it changes {EMBEDDING}, which is the output of {model.name} as well: llama.cpp cannot do that; "
            "train one without the embedding"
        )
    if {a.kind, b.kind} - KINDS:
        return f"{name}: its numbers are of another kind than F32, F16, BF16 or Q8_0"
    wanted, found = base.shape, _product(name, a.shape, b.shape)
    if found != wanted:
        return f"{name}: it is for a matrix of {_show(found)}; that of {model.name} has {_show(wanted)}"
    return ""


def _product(name: str, a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of what the two come to; empty where they do not go together."""
    if len(a) < 2 or len(a) != len(b) or a[2:] != b[2:]:
        return ()
    if name == EMBEDDING:  # its rows are looked up, so the two lie the other way round
        return (b[1], a[1]) if a[0] == b[0] and len(a) == 2 else ()
    return (a[0], b[1], *a[2:]) if a[1] == b[0] else ()


def _show(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape)) or "shapes that do not go together"


def _hash(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()[:32]
