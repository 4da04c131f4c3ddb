"""What trimming a draft saves with a given vocabulary, and what it costs (``python -m`` this module).

The weights are random, so only speed is measured with them; the share of tokens that a trimmed draft has is counted on
real texts.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import process_time

from codespec.engine.local import LocalEngine
from codespec.llama.model import Model
from codespec.protocols import Draft, Sampling
from codespec.speculative.sampling import LogitSampler
from codespec.train import corpus
from codespec.train.gguf_file import write_gguf_like
from codespec.train.model import DRAFT, Llama
from codespec.train.texts import split
from codespec.train.trim import counts, frequent

TOKENS = 16
ROUNDS = 30


def speeds(target: Path, drafts: Sequence[Path]) -> list[float]:
    """Milliseconds of one CPU that each draft takes for a token, the choice of it included: medians, taken in turns.

    CPU time, not time: another process that computes meanwhile hardly counts.
    """
    engine = LocalEngine(target, threads=1)
    try:
        sampler = LogitSampler(Sampling(logit_bias=dict.fromkeys(engine.vocabulary.control_tokens, float("-inf"))), 1)
        prompt = engine.vocabulary.tokenize("def main(arguments):\n    return ")
        times: list[list[float]] = [[] for _ in drafts]
        for _ in range(ROUNDS):
            for path, own in zip(drafts, times, strict=True):
                engine.drafts.choose(path)
                assert engine.drafts.model is not None
                own.append(_milliseconds(engine.drafts.model, prompt, sampler))
        return [median(own) for own in times]
    finally:
        engine.close()


def _milliseconds(draft: Draft, prompt: Sequence[int], sampler: LogitSampler) -> float:
    asked: list[float] = []

    def more(_: float) -> bool:
        asked.append(process_time())
        return len(asked) <= TOKENS

    draft.propose(prompt, None, sampler, more)
    return (asked[-1] - asked[1]) / (len(asked) - 2) * 1e3


def main() -> None:
    """Print one line of JSON for each size."""
    parser = argparse.ArgumentParser(description="what trimming a draft saves, and what it costs")
    parser.add_argument("vocabulary", type=Path, metavar="GGUF", help="of the target; weights are not needed")
    parser.add_argument("corpus", type=Path, nargs="+", metavar="DIR", help="texts to count tokens in")
    parser.add_argument("--language", default="python", metavar="ID")
    parser.add_argument("--sizes", default="8192,16384,32768", metavar="N,N…")
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        out = Path(folder)
        corpus.build(options.corpus, out)
        learnt, held_out = split([each for each in corpus.load(out) if each.language == options.language])
        with Model(options.vocabulary, vocabulary_only=True) as model:
            whole = model.vocabulary.size
            trims = [None, *frequent(model, learnt, [int(size) for size in options.sizes.split(",")])]
            held = counts(model.vocabulary, held_out)
        models, paths = [], []
        for trim in trims:
            models.append(Llama(replace(DRAFT, vocabulary=whole if trim is None else trim.size)))
            paths.append(out / f"{models[-1].shape.vocabulary}.gguf")
            write_gguf_like(models[-1], options.vocabulary, paths[-1], "draft", trim=trim)
        # Any target would do: it only says in which tokens drafts are to speak.
        for trim, built, path, ms in zip(trims, models, paths, speeds(paths[0], paths), strict=True):
            found = {
                "vocabulary": built.shape.vocabulary,
                "has": 1.0 if trim is None else round(float(held[trim.tokens].sum() / held.sum()), 4),
                "parameters": built.parameter_count(),
                "bytes": path.stat().st_size,
                "ms_per_token": round(ms, 3),
            }
            print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
