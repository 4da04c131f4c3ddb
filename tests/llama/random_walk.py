"""``python -m tests.llama.random_walk``: random decodes, rollbacks, forks, saves and restores beside fresh contexts.

    python -m tests.llama.random_walk [--steps 2000] [--seed 1] [ARCHITECTURE ...]

For each architecture of ``tests.hybrid_models`` prints the greatest difference of a logit between a sequence to which
all of that was done and one of a fresh context that was given the same tokens: for one sequence, and for up to four
beside each other. Those share the cells of attention, whose sums are then in another order; wrong
states give 5 and more.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import numpy as np

from codespec.llama.context import Context
from codespec.llama.defaults import EXACT_KV
from codespec.llama.model import Model
from codespec.llama.sequence import LlamaSequence
from codespec.protocols import Aborted, ContextFull
from tests.hybrid_models import ARCHITECTURES, write

LENGTH, ROOM, BATCH = 512, 400, 48
ALONE = ("read",) * 4 + ("verify",) * 4 + ("back", "back", "save", "restore", "abort")
TOGETHER = (*ALONE, "fork", "close", "each")


@dataclass
class Walk:
    """Sequences of one context, with the tokens that each should hold, and a context to compare them with."""

    model: Model
    random: Random
    operations: Sequence[str] = TOGETHER
    worst: float = 0.0
    counts: dict[str, int] = field(default_factory=dict)

    def run(self, steps: int) -> None:
        with self._context(4, 1800) as self.context, self._context() as self.fresh:
            self.sequences: list[tuple[LlamaSequence, list[int]]] = [(self.context.sequence(), [])]
            self.saved: list[tuple[np.ndarray, list[int]]] = []
            for _ in range(steps):
                name = self.random.choice(self.operations)
                if getattr(self, f"_{name}")(*self.random.choice(self.sequences)) is not False:
                    self.counts[name] = self.counts.get(name, 0) + 1
                assert all(sequence.n_past == len(tokens) for sequence, tokens in self.sequences)

    def _context(self, sequences: int = 1, spare: int = 0) -> Context:
        return Context(
            self.model, context_length=LENGTH, sequences=sequences, spare=spare, batch=BATCH, threads=1,
            kv_type=EXACT_KV, flash_attention="on",
        )  # fmt: skip

    def _new(self, count: int) -> list[int]:
        return [self.random.randrange(self.model.vocabulary.size) for _ in range(count)]

    def _compare(self, logits: np.ndarray, tokens: list[int]) -> None:
        sequence = self.fresh.sequence()
        expected = sequence.decode(tokens, 1)[0]
        self.worst = max(self.worst, float(np.abs(logits - expected).max()))
        sequence.close()

    def _read(self, sequence: LlamaSequence, tokens: list[int]) -> bool | None:
        new = self._new(self.random.choice((1, 1, 2, 5, 20, 47, 70, 130)))
        if len(tokens) + len(new) > ROOM:
            return False
        logits = sequence.decode(new, 1)[0].copy()
        tokens += new
        return self._compare(logits, tokens)

    def _verify(self, sequence: LlamaSequence, tokens: list[int]) -> bool | None:
        new = self._new(self.random.randrange(1, 14))
        if not tokens or len(tokens) + len(new) > ROOM:
            return False
        logits = sequence.decode(new).copy()
        place, kept = self.random.randrange(len(new)), self.random.randrange(len(new) + 1)
        sequence.rollback(len(tokens) + kept)
        self._compare(logits[place], tokens + new[: place + 1])
        tokens += new[:kept]
        return None

    def _back(self, sequence: LlamaSequence, tokens: list[int]) -> None:
        most = self.random.choice((len(tokens), min(len(tokens), 12)))
        count = self.random.randrange(most + 1)
        sequence.rollback(len(tokens) - count)
        del tokens[len(tokens) - count :]

    def _fork(self, sequence: LlamaSequence, tokens: list[int]) -> bool | None:
        if len(self.sequences) == 4:
            return False
        self.sequences.append((sequence.fork(), tokens.copy()))
        return None

    def _close(self, sequence: LlamaSequence, tokens: list[int]) -> bool | None:
        if len(self.sequences) == 1:
            return False
        sequence.close()
        self.sequences = [each for each in self.sequences if each[0] is not sequence]
        return None

    def _save(self, sequence: LlamaSequence, tokens: list[int]) -> bool | None:
        if not tokens:
            return False
        self.saved = [*self.saved[-2:], (sequence.save(), tokens.copy())]
        return None

    def _restore(self, sequence: LlamaSequence, tokens: list[int]) -> bool | None:
        if not self.saved:
            return False
        data, held = self.random.choice(self.saved)
        sequence.restore(data, len(held))
        tokens[:] = held
        return None

    def _each(self, sequence: LlamaSequence, tokens: list[int]) -> bool | None:
        ready = [each for each in self.sequences if 0 < len(each[1]) < ROOM]
        if len(ready) < 2:
            return False
        new = [self._new(self.random.randint(1, min(3, ROOM - len(held)))) for _, held in ready]
        logits = sequence.decode_each([each for each, _ in ready], new).copy()
        for (_, held), tokens_of_one in zip(ready, new, strict=True):
            held += tokens_of_one
        place = self.random.randrange(len(ready))
        last = sum(map(len, new[: place + 1])) - 1
        return self._compare(logits[last], ready[place][1])

    def _abort(self, sequence: LlamaSequence, tokens: list[int]) -> bool | None:
        """What came too late, or does not fit, leaves nothing."""
        if self.random.random() < 0.3:
            try:
                sequence.decode(self._new(self.context.room + 1 - len(tokens)), 0)
            except ContextFull:
                return None
            raise AssertionError("a context was not full")
        if len(tokens) + 60 > ROOM:
            return False
        self.context.abort_data.set()
        try:
            sequence.decode(self._new(60), 0)
        except Aborted:
            return None
        finally:
            self.context._install(type(self.context.abort_data)())
        raise AssertionError("nothing was aborted")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("architectures", nargs="*", default=ARCHITECTURES, metavar="ARCHITECTURE")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print("| architecture | snapshots | alone | together | operations |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name in options.architectures:
            with Model(write(Path(folder) / f"{name}.gguf", name)) as model:
                alone, together = Walk(model, Random(options.seed), ALONE), Walk(model, Random(options.seed))
                for walk in alone, together:
                    walk.run(options.steps)
                done = ", ".join(f"{kind} {count}" for kind, count in sorted(together.counts.items()))
                worst = f"{alone.worst:.3g} | {together.worst:.3g}"
                print(f"| {name} | {together.context.snapshots} | {worst} | {done} |", flush=True)


if __name__ == "__main__":
    main()
