"""``python -m tests.fuzz models``: files whose header was damaged, one after the other, in a process as servers have.

The process inspects each file and, where that succeeds, loads it and decodes. It must outlive all of them, and none may
take it long.
"""

from __future__ import annotations

import argparse
import collections
import re
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from random import Random

import numpy as np
from gguf import GGUFReader

from codespec.llama.context import Context
from codespec.llama.model import Model
from codespec.models.info import inspect
from codespec.models.registry import EMBEDDED
from codespec.protocols import CodespecError
from tests.present import present

SECONDS = 30  # of wall time for one file, on a busy machine
EXTREMES = (0, 1, 2, 3, -1, 2**15, 2**31 - 1, 2**32 - 1, 2**63 - 1)


def damage(path: Path, rng: Random) -> str:
    """Change one to three values in the header of a file; what was changed."""
    reader = GGUFReader(path, "r+")
    changed = []
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        fields = [field for field in reader.fields.values() if field.parts]
        places = [(field.name, field.parts) for field in fields] * 2
        places += [(tensor.name, tensor.field.parts) for tensor in reader.tensors]
        # The architecture's own numbers are what loading and decoding rest on.
        places += [each for each in places if each[0].startswith("llama.")] * 4
        name, parts = rng.choice(places)
        part = rng.choice((parts[1:] or parts) if rng.random() < 0.7 else parts[-1:])  # most values stand last
        _write(part, rng)
        changed.append(name)
    reader.data.flush()
    return ", ".join(changed)


def _write(part: np.ndarray, rng: Random) -> None:
    place = rng.randrange(part.size)
    flat = part.reshape(-1)
    if part.dtype.kind == "f":
        flat[place] = rng.choice((0.0, -1.0, 1e30, float("nan"), float("inf")))
    elif rng.random() < 0.5:
        flat[place] = np.array(rng.choice(EXTREMES) & (2 ** (8 * part.dtype.itemsize) - 1)).astype(part.dtype)
    else:
        flat[place] ^= part.dtype.type(1 << rng.randrange(8 * part.dtype.itemsize - 1))


def use(path: Path) -> str:
    """What a server does with a model."""
    try:
        inspect(path)
        with Model(path) as model, Context(model, context_length=128) as context:
            context.sequence().decode([token % model.vocabulary.size for token in range(9)])
    except CodespecError as error:
        return f"refused: {error}".replace("\n", " ").replace(str(path), "…")
    return "works"


def main(arguments: list[str]) -> int:
    """Run; 1 if the process died, took too long, or an error was no one-line error."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz models", description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.serve:
        for line in sys.stdin:
            print(use(Path(line.rstrip("\n"))), flush=True)
        return 0
    outcomes: collections.Counter[str] = collections.Counter()
    failures, slowest = [], (0.0, "")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.gguf"
        server = _start()
        for seed in range(options.seed, options.seed + options.count):
            shutil.copyfile(EMBEDDED / "draft-python.gguf", path)
            changed = "?"
            with suppress(OverflowError, ValueError):
                changed = damage(path, Random(seed))
            began = time.monotonic()
            present(server.stdin).write(f"{path}\n")
            said = _answer(server)
            slowest = max(slowest, (time.monotonic() - began, f"seed {seed}: {changed}"))
            if not said or time.monotonic() - began > SECONDS:
                failures.append(f"seed {seed}: {changed}: {'too slow' if said else f'died ({server.wait()})'}")
                server.kill()
                server = _start()
            outcomes[re.sub(r"'[^']*'|\d+|\([^)]*\)", "…", said)[:100]] += 1
            if sys.stderr.isatty():
                print(f"\r{seed - options.seed + 1} of {options.count}", end="", file=sys.stderr, flush=True)
        server.kill()
        left = sorted(each.name for each in Path(folder).iterdir())
    for said, count in outcomes.most_common(30):
        print(f"{count:6}  {said}")
    print(f"slowest {slowest[0]:.2f} s: {slowest[1]}; files beside the model: {left[1:]}")
    print(*(f"FAILED  {failure}" for failure in failures), sep="\n")
    print(
        f"{options.count} files, seeds from {options.seed}: {len(failures)} failed (the process died, or > {SECONDS} s)"
    )
    return 1 if failures else 0


def _start() -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.fuzz", "models", "--serve"]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, bufsize=1)


def _answer(server: subprocess.Popen[str]) -> str:
    return present(server.stdout).readline().strip()
