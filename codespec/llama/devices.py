"""The processors that llama.cpp can use, and how much of a model goes onto the GPUs among them."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from codespec.llama.gguf import file_parts, read_header
from codespec.llama.runtime import ggml, library

MARGIN = 1 << 30
"""Bytes of each GPU that stay free, as with llama.cpp's own ``--fit-target``: for its driver, other programs, and what
the estimate does not know."""

KV_BYTES = {
    "f32": 4.0, "f16": 2.0, "bf16": 2.0, "q8_0": 34 / 32,
    "q5_1": 24 / 32, "q5_0": 22 / 32, "q4_1": 20 / 32, "q4_0": 18 / 32,
}  # fmt: skip
"""Bytes of one value in a KV cache, by type."""

_GPU, _INTEGRATED_GPU = 1, 2  # enum ggml_backend_dev_type
_NOT_FOR_GPUS = ("CPU", "BLAS", "RPC")
_FAST = ("AVX2", "AVX512", "AVX512_VNNI", "AMX_INT8", "NEON", "DOTPROD", "MATMUL_INT8", "SVE")


class _Properties(ctypes.Structure):
    """``struct ggml_backend_dev_props``, and room for what later versions may add."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("description", ctypes.c_char_p),
        ("free", ctypes.c_size_t),
        ("total", ctypes.c_size_t),
        ("type", ctypes.c_int),
        ("id", ctypes.c_char_p),
        ("more", ctypes.c_uint8 * 256),
    )


@dataclass(frozen=True)
class Gpu:
    """A GPU that llama.cpp puts layers on.

    Attributes:
        name: as the driver gives it.
        free, total: bytes of its memory at this moment; both 0 where the driver does not say.
        shared: whether that is the machine's main memory.
    """

    name: str
    free: int
    total: int
    shared: bool = False


@cache
def devices() -> tuple[str, ...]:
    """Names of the CPU and of the GPUs that the library can use; never empty."""
    names = (_text(each.description) for _, each in _devices())
    return tuple(filter(None, names)) or (platform.processor() or platform.machine(),)


def gpus() -> tuple[Gpu, ...]:
    """The GPUs that llama.cpp uses: integrated ones only where there are no others. Queried at every call."""
    return tuple(gpu for _, gpu in _gpus())


def gpu_pointers() -> tuple[int, ...]:
    """The same as llama.cpp's own, ``ggml_backend_dev_t``, for a model whose devices are named."""
    return tuple(pointer for pointer, _ in _gpus())


def _gpus() -> tuple[tuple[int, Gpu], ...]:
    found: dict[object, tuple[int, tuple[int, Gpu]]] = {}
    for index, (pointer, each) in enumerate(_devices()):
        if each.type in (_GPU, _INTEGRATED_GPU):
            gpu = Gpu(_text(each.description), each.free, each.total, each.type == _INTEGRATED_GPU)
            found.setdefault(each.id or index, (each.type, (pointer, gpu)))  # two backends may know the same one
    kind = min((kind for kind, _ in found.values()), default=_GPU)
    return tuple(gpu for each, gpu in found.values() if each == kind)


def _devices() -> Iterator[tuple[int, _Properties]]:
    library()
    api = ggml()
    if api is None:
        return
    try:
        api.ggml_backend_dev_count.restype = ctypes.c_size_t
        api.ggml_backend_dev_get.restype = ctypes.c_void_p
        api.ggml_backend_dev_get.argtypes = [ctypes.c_size_t]
        api.ggml_backend_dev_get_props.restype = None
        api.ggml_backend_dev_get_props.argtypes = [ctypes.c_void_p, ctypes.POINTER(_Properties)]
    except AttributeError:  # another version of the bindings
        return
    for index in range(api.ggml_backend_dev_count()):
        pointer, properties = api.ggml_backend_dev_get(index), _Properties()
        api.ggml_backend_dev_get_props(pointer, ctypes.byref(properties))
        yield pointer, properties


def gpu_backends() -> tuple[str, ...]:
    """Names of what the library was built with for GPUs, such as ``CUDA``, whether or not there is one."""
    library()
    api = ggml()
    try:
        api.ggml_backend_reg_count.restype = ctypes.c_size_t
        api.ggml_backend_reg_get.restype = ctypes.c_void_p
        api.ggml_backend_reg_get.argtypes = [ctypes.c_size_t]
        api.ggml_backend_reg_name.restype = ctypes.c_char_p
        api.ggml_backend_reg_name.argtypes = [ctypes.c_void_p]
    except AttributeError:  # another version of the bindings
        return tuple(gpu.name for gpu in gpus())
    places = map(api.ggml_backend_reg_get, range(api.ggml_backend_reg_count()))
    names = (_text(api.ggml_backend_reg_name(each)) for each in places)
    return tuple(name for name in names if name not in _NOT_FOR_GPUS)


def kernels() -> tuple[str, ...]:
    """The instructions of the CPU that the library was built with, of those that decide how fast it is."""
    told = _text(library().llama_print_system_info()).replace("|", ":").split(":")
    there = {name.strip() for name, _, value in (each.partition("=") for each in told) if value.strip() == "1"}
    return tuple(each for each in _FAST if each in there)


def unused_gpu() -> str:
    """The GPU of this machine, with an article, that the library was built without support for; empty for none."""
    if gpu_backends():
        return ""
    if platform.system() == "Darwin":
        return "Apple's GPU" if platform.machine() == "arm64" else ""
    return "an NVIDIA GPU" if _nvidia_gpus() else ""


def _nvidia_gpus() -> int:
    count = ctypes.c_int()
    try:
        driver = ctypes.CDLL("nvcuda.dll" if platform.system() == "Windows" else "libcuda.so.1")
        driver.cuInit(0)
        driver.cuDeviceGetCount(ctypes.byref(count))
    except (OSError, AttributeError):  # no driver
        return 0
    return count.value


def _text(name: bytes | None) -> str:
    return (name or b"").decode("utf-8", "replace").strip()


@dataclass(frozen=True)
class Sizes:
    """The sizes of a model that decide how much of a GPU's memory it takes.

    Attributes:
        layers: bytes of the weights of each.
        output: bytes of the weights after the last layer.
        kv_values: numbers that a token takes of one layer's KV cache.
        vocabulary: tokens.
        feed_forward: width of the widest part of a layer.
        heads: of attention.
        context: tokens that it was trained with.
    """

    layers: tuple[int, ...]
    output: int
    kv_values: int
    vocabulary: int
    feed_forward: int
    heads: int
    context: int

    def compute_bytes(self, context: int, batch: int, flash: bool) -> int:
        """Bytes that a forward pass over ``batch`` tokens computes in, about: its logits, the widest part of a layer
        and, without flash attention, a score for every token of the context."""
        row = self.vocabulary + 2 * self.feed_forward + (0 if flash else 2 * self.heads * context)
        return 4 * batch * row


@dataclass(frozen=True)
class ResolvedSetting:
    """The value in force of a setting that may be left to the machine.

    Attributes:
        why: the reason, a clause; empty where the user has set the value.
    """

    value: int | str
    why: str = ""


def sizes_of(path: Path) -> Sizes:
    """The sizes of a model, from the metadata of all its files.

    Raises:
        CodespecError: it cannot be read, or is no GGUF file.
    """
    headers = [read_header(each) for each in file_parts(path)]
    head = headers[0]
    tensors = {name: tensor for header in headers for name, tensor in header.tensors.items()}
    layers = [0] * head.number("block_count")
    output = 0
    for name, tensor in tensors.items():
        parts = name.split(".")
        if parts[0] == "blk" and parts[1].isdigit() and int(parts[1]) < len(layers):
            layers[int(parts[1])] += tensor.size
        elif parts[0].startswith("output"):
            output += tensor.size
    embedding = tensors.get("token_embd.weight")
    if "output.weight" not in tensors and embedding is not None:
        output += embedding.size  # it is both, and the GPU gets a copy
    return Sizes(
        layers=tuple(layers),
        output=output,
        kv_values=head.most_kv_values,
        vocabulary=embedding.shape[-1] if embedding is not None and embedding.shape else 0,
        feed_forward=head.number("feed_forward_length"),
        heads=head.number("attention.head_count"),
        context=head.number("context_length"),
    )


def layers_that_fit(
    free: Sequence[int], sizes: Sizes, context: int, kv_type: str = "f16", batch: int = 512, flash: bool = True
) -> int:
    """How many layers go onto GPUs, as llama.cpp counts them: from the last to the first, the output before all.

    Args:
        free: bytes of each GPU. llama.cpp gives each the share of the layers that it has of all free memory.
        context: tokens.
        batch: tokens of a forward pass at most.

    Returns:
        0 to the number of the model's layers and 1.
    """
    reserve = MARGIN + sizes.compute_bytes(context, batch, flash)
    room = min(((each - reserve) * sum(free) / each for each in free if each), default=0.0)
    room -= max(sizes.layers, default=0) * (len(free) - 1)  # layers are not cut
    cache = KV_BYTES[kv_type] * sizes.kv_values * context
    needed = [sizes.output, *(layer + cache for layer in reversed(sizes.layers))]
    count = 0
    for each in needed:
        room -= each
        if room < 0:
            break
        count += 1
    return count


def gpu_layers(
    wanted: int | None,
    path: Path,
    length: int,
    kv_type: str = "auto",
    flash_attention: str = "auto",
    exact: bool = False,
    servers: Sequence[Gpu] = (),
) -> ResolvedSetting:
    """How many layers of a model to put onto the GPUs.

    Args:
        wanted: by the user; None: as many as fit into what is free now.
        length: tokens of context at most; less where the model was trained with less.
        kv_type, flash_attention: see ``Context``.
        exact: whether the model must run on the CPU.
        servers: devices of RPC servers, which layers go to as to GPUs.

    Raises:
        CodespecError: the file cannot be read, or is no GGUF file.
    """
    found = (*servers, *gpus())
    if wanted:
        return (
            ResolvedSetting(wanted)
            if found
            else ResolvedSetting(0, f"llama.cpp finds no GPU: gpu_layers = {wanted} has no effect")
        )
    if wanted == 0:
        return ResolvedSetting(0)
    if exact:
        return ResolvedSetting(0, "exact decoding works on the CPU only")
    if not found:
        return ResolvedSetting(0, "llama.cpp finds no GPU")
    sizes = sizes_of(path)
    context = min(length, sizes.context or length)
    return fitting(found, sizes, context, "f16" if kv_type == "auto" else kv_type, flash=flash_attention != "off")


def fitting(
    found: Sequence[Gpu], sizes: Sizes, context: int, kv_type: str = "f16", flash: bool = True
) -> ResolvedSetting:
    """``layers_that_fit`` into what ``gpus`` has found, with the reason."""
    silent = [each.name for each in found if not each.total]
    if silent:
        return ResolvedSetting(0, f"{silent[0]} does not say how much memory it has; set gpu_layers")
    count = layers_that_fit([each.free for each in found], sizes, context, kv_type, flash=flash)
    whole = len(sizes.layers) + 1
    free = sum(each.free for each in found) / 2**30
    names = " and ".join(each.name for each in found)
    what = "the whole model fits" if count == whole else f"{count} of {whole} layers fit"
    return ResolvedSetting(count, f"{what} into {free:.1f} GiB free of {names}, with a context of {context:,} tokens")
