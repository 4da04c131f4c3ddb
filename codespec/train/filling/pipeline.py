"""What ``codespec train fim`` runs: corpus, training, judgement and export, each step resumable.

A run folder holds ``corpus.jsonl.gz`` and ``manifest.json.gz``, ``fim/`` with the checkpoint, and the adapter.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from codespec.llama.model import LlamaVocabulary, Model
from codespec.models.info import inspect
from codespec.models.registry import file_or_model
from codespec.protocols import CodespecError
from codespec.train import corpus, data
from codespec.train.filling.examples import Examples, Markers
from codespec.train.filling.learner import FillingRun, Shape
from codespec.train.filling.lora import write_adapter
from codespec.train.gguf_file import load_llama
from codespec.train.model import Llama
from codespec.train.pipeline import say
from codespec.train.train import SHARES, Recipe

BATCH = 2048
"""Tokens of a step."""

JUDGED = 12
"""Batches of examples from held-out packages."""

RATE = 1e-3
"""AdamW's."""


def markers_of(model: Llama, vocabulary: LlamaVocabulary, used: str) -> Markers:
    """The two control tokens that differ most in their embeddings, and one that ends a text.

    Many vocabularies have control tokens that were hardly trained: their embeddings are alike, and no layer can tell
    them apart. An adapter cannot change the embeddings, which are the output as well.

    Args:
        used: text whose control tokens have a meaning already, such as a chat template.

    Raises:
        CodespecError: the vocabulary has too few.
    """
    taken = vocabulary.end_tokens | {vocabulary.beginning}
    free = [
        token
        for token in sorted(vocabulary.control_tokens - taken)
        if vocabulary.name(token).decode("utf-8", "replace") not in used
    ]
    if len(free) < 2 or not vocabulary.end_tokens:
        raise CodespecError(
            "the target's vocabulary has no two unused control tokens to mark the gap with; name another --target"
        )
    rows = torch.nn.functional.normalize(model.token_embd.weight[free].float(), dim=-1)
    alike = rows @ rows.T
    first, second = divmod(int(alike.argmin()), len(free))
    return Markers(prefix=free[first], suffix=free[second], end=min(vocabulary.end_tokens))


def run(options: argparse.Namespace) -> int:
    """``codespec train fim``."""
    if not options.target:
        raise CodespecError("the embedded target fills in by itself; name another with --target")
    target, out = file_or_model(options.target), options.out
    inspected = inspect(target)
    if inspected.fim is not None:
        say(f"{target}: it fills in by itself ({inspected.family}): codespec uses no adapter for that with it")
    model = load_llama(target)
    if not (out / "corpus.jsonl.gz").exists():
        corpus.build(options.corpus or corpus.default_folders(), out)
    train, held_out = data.split(corpus.load(out))
    recipe = Recipe(minutes=options.minutes, adam_rate=RATE * options.rate, decay=options.decay)
    weights = {language: SHARES.get(language, 1.0) for language in {each.language for each in train}}
    with Model(target, vocabulary_only=True) as file:
        vocabulary = file.vocabulary
        markers = markers_of(model, vocabulary, file.metadata("tokenizer.chat_template") or "")
        say(f"markers: {markers}, {len(train):,} files to learn from, {len(held_out):,} held out")
        learner = FillingRun(model, Shape(options.rank, options.layers), recipe, out / "fim")
        examples = Examples(train, weights, vocabulary, markers, BATCH, recipe.seed * 1_000_003 + learner.steps)
        learner.train(iter(examples), options.max_steps)
        path: Path = out / f"fim-{target.stem}.gguf"
        write_adapter(model, target, path, markers, f"filling in for {target.stem}")
        said = f"{path}: {path.stat().st_size / 1e6:.1f} MB, {learner.tokens:,} tokens seen"
        if held_out:
            judged = iter(Examples(held_out, weights, vocabulary, markers, BATCH, recipe.seed))
            said += f", loss of held-out middles {learner.judge(next(judged) for _ in range(JUDGED)):.3f} nats a token"
        say(said)
    return 0
