"""``python -m tests.llama.keys``: what a key costs on models with recurrent layers, beside one with attention alone.

    python -m tests.llama.keys [--keys 500] [--tokens 8] [--drafts] [--models FOLDER]

Types a file of this package, with corrections, and asks for some tokens after every key. Counts the rows of all passes
that are not the tokens written: what was read, and what was decoded again. Small models are made for it; those of a
folder have the names of architectures (``python -m tests.hybrid_models FOLDER/qwen35.gguf qwen35``).
"""

from __future__ import annotations

import argparse
import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from statistics import mean
from time import perf_counter
from typing import Any

import numpy as np

from codespec.engine.local import LocalEngine
from codespec.protocols import Limits
from tests.hybrid_models import ARCHITECTURES, write

TEXT = (Path(__file__).parents[2] / "codespec" / "llama" / "sequence.py").read_text("utf-8")
BEFORE = 2400
"""Characters that stand there when typing begins."""


def rows_of(engine: LocalEngine) -> list[int]:
    """Rows of every pass from now on."""
    rows: list[int] = []
    context: Any = engine.context
    decode = context.decode_chunk

    def counting(sequence_id, position, tokens, last):
        rows.append(len(tokens))
        return decode(sequence_id, position, tokens, last)

    context.decode_chunk = counting
    return rows


def typed(keys: int, seed: int = 0) -> Iterator[str]:
    """The text after each key: one more character, or one less where something was mistyped."""
    random, wrong, end = Random(seed), "", BEFORE
    for _ in range(keys):
        if wrong:
            wrong = wrong[:-1]
        elif random.random() < 0.04:
            wrong = "xe"[: random.randrange(1, 3)]
        else:
            end += 1
        yield TEXT[:end] + wrong


def session(engine: LocalEngine, keys: int, tokens: int, speculate: bool) -> tuple[list[int], list[float]]:
    """For each key but the first: rows beyond the tokens that were written, and milliseconds to the last of them."""
    rows, more, times = rows_of(engine), [], []
    for text in typed(keys):
        prompt = engine.vocabulary.tokenize(text)
        del rows[:]
        began = perf_counter()
        list(engine.generate(prompt, limits=Limits(tokens), speculate=speculate))
        times.append((perf_counter() - began) * 1e3)
        # A pass of a proposal has rows that are no tokens of the text: they are no reading.
        read = sum(rows) - engine.statistics.tokens - (engine.statistics.drafted - engine.statistics.accepted)
        more.append(read + 1)  # the last token that was written is not decoded
    return more[1:], times[1:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=500)
    parser.add_argument("--tokens", type=int, default=8)
    parser.add_argument("--drafts", action="store_true")
    parser.add_argument("--models", type=Path)
    options = parser.parse_args()
    print("| architecture | rows a key | of attention | ms, median | ms, 95 % |\n|---|---|---|---|---|")
    usual = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for name in reversed(ARCHITECTURES):  # attention alone first
            path = (options.models or Path(folder)) / f"{name}.gguf"
            if options.models is None:
                write(path, name)
            elif not path.exists():
                continue
            with contextlib.closing(LocalEngine(path, context_length=4096)) as engine:
                rows, ms = session(engine, options.keys, options.tokens, options.drafts)
            usual = usual or mean(rows)
            half, most = np.quantile(ms, (0.5, 0.95))
            print(f"| {name} | {mean(rows):.2f} | {mean(rows) / usual:.2f} × | {half:.1f} | {most:.1f} |", flush=True)


if __name__ == "__main__":
    main()
