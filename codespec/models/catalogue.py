"""Models that are known to work well, and the pairs of targets and drafts among them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Known:
    """A model that ``codespec models pull`` knows by name.

    Attributes:
        name: also of the file in the models folder.
        repository, file: on the hub.
        parameters: in all.
        active: parameters that a pass over one token reads, where only some experts are asked.
        size: of the file, in bytes, about.
        licence: as the model's card has it.
        draft: the name of a model with the same vocabulary to draft for it; empty where none pays.
        context: tokens that it was trained with.
        kv_bytes: of the KV cache for each token, at 16 bits.
    """

    name: str
    repository: str
    file: str
    parameters: float
    size: float
    licence: str
    draft: str = ""
    active: float = 0.0
    context: int = 32_768
    kv_bytes: int = 0

    @property
    def read_bytes(self) -> float:
        """What a pass over one token reads of it."""
        return self.size * (self.active / self.parameters if self.active else 1.0)


def _qwen(size: str, parameters: float, kv_bytes: int, licence: str = "Apache-2.0", draft: str = "") -> Known:
    name = f"qwen2.5-coder-{size}-q8_0"
    return Known(
        name=name,
        repository=f"ggml-org/Qwen2.5-Coder-{size.upper()}-Q8_0-GGUF",
        file=f"{name}.gguf",
        parameters=parameters,
        size=parameters * 34 / 32,  # 32 weights of a byte each and a scale of two
        licence=licence,
        draft=draft,
        kv_bytes=kv_bytes,
    )


_DRAFT = "qwen2.5-coder-0.5b-q8_0"

# Repositories, files and pairs are those of llama.cpp's own presets (`--fim-qwen-…`, common/arg.cpp); parameters and
# licences those of the model cards.
CATALOGUE = (
    _qwen("0.5b", 0.494e9, 12_288),
    _qwen("1.5b", 1.54e9, 28_672),
    _qwen("3b", 3.09e9, 36_864, licence="Qwen Research (not for commercial use)"),
    _qwen("7b", 7.62e9, 57_344, draft=_DRAFT),
    _qwen("14b", 14.8e9, 196_608, draft=_DRAFT),
    Known(
        "qwen3-coder-30b-a3b-q8_0",
        "ggml-org/Qwen3-Coder-30B-A3B-Instruct-Q8_0-GGUF",
        "qwen3-coder-30b-a3b-instruct-q8_0.gguf",
        parameters=30.5e9,
        size=30.5e9 * 34 / 32,
        licence="Apache-2.0",
        active=3.3e9,
        context=262_144,
        kv_bytes=98_304,
    ),
)


def known_model(name: str) -> Known | None:
    """The entry of this name."""
    return next((each for each in CATALOGUE if each.name == name.lower().removesuffix(".gguf")), None)
