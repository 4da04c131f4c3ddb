"""Estimates which of the known models this machine can run, and how fast."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from codespec.llama.defaults import memory
from codespec.llama.devices import MARGIN, Gpu, devices, gpus
from codespec.llama.threads import own_cpus
from codespec.models.catalogue import CATALOGUE, Known, known_model
from codespec.protocols import CodespecError

SPEED = "CODESPEC_MACHINE_SPEED"
"""The environment variable that says how fast memory and processor are, where other programs are in the way of
measuring that: gigabytes, and billions of operations on floats, a second, such as ``24,400``."""

CONTEXT = 8192
"""The context length of the estimate, in tokens: the most that the settings choose by themselves."""

SHARE = 0.6
"""The share of the machine's memory that a model may take: an editor, a browser and the user's programs need theirs."""

FIRST_PROMPT, LATER_PROMPT = 1024, 32
"""Tokens to prefill before the first answer in a file of four kilobytes, and before a later one, for which the KV
cache has the rest."""

ANSWER = 24
"""Tokens of a completion."""

DRAFTED = 1.5
"""The least speed-up by drafts: 2 to 3 on code that resembles its surroundings (docs/benchmarks.md)."""

PATIENCE_S, FIRST_PATIENCE_S = 1.5, 15.0
"""Seconds that a typing user waits for an answer, and for the first one in a file, which is prepared on opening. The
time budget of a completion, 2 s, leaves room for longer ones."""

EFFICIENCY = 0.75
"""The share of the memory's bandwidth that a forward pass over one token reaches: 0.66 to 0.88 with 1.6 GB of weights
in Q8_0, 0.5 to 0.77 with 1 GB in Q4_K_M, 0.7 to 0.9 on an older processor (two cores of an AMD EPYC)."""

PREFILL = {"q8_0": 1.05, "q4_k_m": 1.45, "q4_1": 1.05}  # `pull` makes Q8_0 of Q4_1
"""The share of the speed of float matrix products (BLAS) that a prefill reaches, with two operations for each
parameter: 1.0 to 1.25 and 1.3 to 1.55 at 0.5 to 7 billion parameters (two cores of an AMD EPYC, AVX-512)."""

COMPUTE = 400 << 20
"""Bytes of a GPU that a pass of a model computes in, about: logits of 512 rows over 152,000 tokens, and some."""

_BLOCK = 1 << 26  # bytes: more than caches hold


@dataclass(frozen=True)
class Machine:
    """The machine that models are to run on.

    Attributes:
        memory: bytes in all; 0 where the system does not say.
        bandwidth: bytes a second that all cores together read from memory.
        compute: operations on floats a second, of all cores together, in a product of matrices.
        devices: names of the CPU and the GPUs.
        gpus: with memory of their own; how fast it is read is not known.
    """

    memory: int
    bandwidth: float
    compute: float
    devices: tuple[str, ...]
    gpus: tuple[Gpu, ...] = ()


@dataclass(frozen=True)
class Fit:
    """The estimate for one model on a machine.

    Attributes:
        need: bytes of memory, draft and context included.
        speed: tokens a second on the CPU, about, without drafts.
        first: seconds on the CPU to the first answer in a file, about, with drafts.
        later: seconds to a later one.
        fits: whether the memory suffices, as far as that is known.
        known: whether it is.
        on_gpu: whether the GPUs' free memory holds it whole, draft and context included.
    """

    model: Known
    draft: Known | None
    need: float
    speed: float
    first: float
    later: float
    fits: bool
    known: bool
    on_gpu: bool = False

    @property
    def good(self) -> bool:
        """Whether it fits and is fast enough; a model that a GPU holds whole is taken to be fast enough."""
        return self.on_gpu or (self.fits and self.later <= PATIENCE_S and self.first <= FIRST_PATIENCE_S)

    @property
    def download(self) -> float:
        """Bytes to fetch, draft included."""
        return self.model.size + (self.draft.size if self.draft else 0.0)


def this_machine() -> Machine:
    """This machine, measured in a tenth of a second or two, or as ``SPEED`` says.

    Raises:
        CodespecError: the variable does not hold two positive numbers.
    """
    bandwidth, compute = _told() or (_bandwidth(), _compute())
    return Machine(memory(), bandwidth, compute, devices(), tuple(each for each in gpus() if not each.shared))


def _told() -> tuple[float, float] | None:
    text = os.environ.get(SPEED, "")
    if not text:
        return None
    try:
        bandwidth, compute = (float(each) for each in text.split(","))
        if not (0 < bandwidth < math.inf and 0 < compute < math.inf):
            raise ValueError
    except ValueError:
        raise CodespecError(f"{SPEED} must be GB/s and GFLOP/s, such as 24,400, not {text!r}") from None
    return bandwidth * 1e9, compute * 1e9


def fits(machine: Machine, models: Sequence[Known] = CATALOGUE) -> list[Fit]:
    """Estimates for every known model as a target, in the catalogue's order."""
    return [_fit(model, machine) for model in models]


def best(found: list[Fit]) -> Fit | None:
    """The largest model that is fast enough, was tried, and whose licence is free for every use; None where there is
    none."""
    return _largest([each for each in found if each.good])


def choices(found: list[Fit]) -> list[Fit]:
    """Up to three models to choose among: the first, the ``best``, and the largest that the memory holds, fast enough
    or not; of the last two only those that are tried and free for every use."""
    three = found[0], best(found), _largest([each for each in found if each.fits])
    return list(dict.fromkeys(each for each in three if each is not None))


def _largest(found: list[Fit]) -> Fit | None:
    """The largest of those that were tried, and whose licence is free for every use."""
    tried = [each for each in found if not each.model.untried and "not for" not in each.model.licence and each.known]
    return max(tried, key=lambda each: (each.model.active or each.model.parameters, each.model.size), default=None)


def _fit(model: Known, machine: Machine) -> Fit:
    draft = known_model(model.draft) if model.draft else None
    both = [model, *([draft] if draft is not None else [])]
    need = sum(each.size + each.kv_bytes * min(CONTEXT, each.context) for each in both)
    speed = EFFICIENCY * machine.bandwidth / model.read_bytes
    read = 2 * (model.active or model.parameters) / (PREFILL[model.quantization] * machine.compute)
    answer = ANSWER / (DRAFTED * speed)
    on_gpu = need + len(both) * COMPUTE <= sum(max(0, each.free - MARGIN) for each in machine.gpus)
    known = machine.memory > 0 or on_gpu
    fits = on_gpu or not known or need <= SHARE * machine.memory
    first, later = FIRST_PROMPT * read + answer, LATER_PROMPT * read + answer
    return Fit(model, draft, need, speed, first, later, fits, known, on_gpu)


def _bandwidth() -> float:
    """Bytes a second; the best of some tries, since other programs only make it slower."""
    count = min(8, len(own_cpus()))
    blocks = [np.ones(_BLOCK // 8) for _ in range(count)]
    with ThreadPoolExecutor(count) as threads:
        return max(_read(threads, blocks) for _ in range(4))


def _compute() -> float:
    """Operations a second; the best of some tries."""
    size = 1024
    one = np.ones((size, size), np.float32)
    result, best = np.empty_like(one), 0.0
    for _ in range(6):
        began = perf_counter()
        np.matmul(one, one, out=result)
        best = max(best, 2 * size**3 / (perf_counter() - began))
    return best


def _read(threads: ThreadPoolExecutor, blocks: list[np.ndarray]) -> float:
    began = perf_counter()
    list(threads.map(np.max, blocks))  # unlike a sum it does next to no arithmetic
    return len(blocks) * _BLOCK / (perf_counter() - began)


def table(found: list[Fit], chosen: Fit | None = None) -> Iterator[str]:
    """The estimates as lines of a table."""
    yield f"  {'model':28} {'download':>9} {'memory':>8} {'tokens/s':>9} {'first, s':>9} {'later, s':>9}  licence"
    for each in found:
        mark = "*" if each is chosen else "-" if not each.fits else "?" if each.model.untried else " "
        size, need = f"{each.download / 1e9:.1f} GB", f"{each.need / 2**30:.1f} GiB"
        times = f"{each.speed:>9.0f} {each.first:>9.1f} {each.later:>9.1f}"
        times = f"{'GPU':>9} {'':>9} {'':>9}" if each.on_gpu else times
        yield f"{mark} {each.model.name:28} {size:>9} {need:>8} {times}  {each.model.licence}"
        if each.draft is not None:
            yield f"    drafted by {each.draft.name}"
