"""What ``python -m benchmarks train-edit`` runs: corpus, examples, training and export, each step resumable.

A run folder holds ``corpus.jsonl.gz`` and ``manifest.json.gz``, the same of the versions before in ``previous/``,
``previous-2/`` and so on, ``shards/``, ``edit/`` with checkpoints, and ``edit.gguf``.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import torch
import torch.multiprocessing

from benchmarks.training.edits import learner, making
from codespec.models.registry import EMBEDDED_TARGET, file_or_model
from codespec.train import corpus, tokenizer
from codespec.train.corpus import CorpusDocument
from codespec.train.gguf_file import load_gguf, write_gguf_like
from codespec.train.pipeline import load_model, say
from codespec.train.train import Recipe

NAME = "codespec edit"
"""In the GGUF; next to the tokens it tells the layout of its prompts."""

LANGUAGES = ("edit",)
"""Instead of languages, so that it drafts for none."""


@dataclass(frozen=True)
class Task:
    """What each process has to know.

    Attributes:
        start: GGUF file to begin with.
        minutes: of training, all resumed parts together.
    """

    start: Path
    shards: Path
    folder: Path
    meeting: Path
    recipe: Recipe
    max_steps: int | None
    world: int


def train(rank: int, task: Task) -> None:
    """One of the processes of a training."""
    learner.join(rank, task.world, task.meeting)
    torch.manual_seed(task.recipe.seed)
    run = learner.EditLearner(load_gguf(task.start), task.recipe, task.folder, rank, task.world)
    batches = learner.batches(task.shards, rank, task.world, task.recipe.seed + run.steps)
    run.train(batches, task.max_steps)


def documents_of(folder: Path, sources: list[Path]) -> list[CorpusDocument]:
    """The corpus in a folder, which is made of source folders on the first call; empty without any."""
    if not (folder / "corpus.jsonl.gz").exists():
        if not sources:
            return []
        corpus.build(sources, folder)
    return corpus.load(folder)


def versions_of(out: Path, sources: list[list[Path]]) -> list[making.Version]:
    """The versions before, the latest first, as ``documents_of``."""
    found: list[making.Version] = []
    for number in count(1):
        folder = out / ("previous" if number == 1 else f"previous-{number}")
        documents = documents_of(folder, sources[number - 1] if number <= len(sources) else [])
        if not documents:
            return found
        found.append(making.by_place(documents))
    raise AssertionError


def run(options: argparse.Namespace) -> int:
    """``python -m benchmarks train-edit``."""
    out: Path = options.out
    start = file_or_model(options.start or EMBEDDED_TARGET)
    documents = documents_of(out, options.corpus or corpus.default_folders())
    previous = versions_of(out, options.previous)
    if options.examples:
        making.make(out / "shards", documents, previous, tokenizer.of_gguf(start), options.examples)
        recipe = Recipe(minutes=options.minutes, muon_rate=0.005, adam_rate=0.004, decay=options.decay)
        with tempfile.TemporaryDirectory() as meeting:
            task = Task(
                start, out / "shards", out / "edit", Path(meeting) / "meeting", recipe.slower(options.rate),
                options.max_steps, options.processes,
            )  # fmt: skip
            if options.processes == 1:
                train(0, task)
            else:
                torch.multiprocessing.spawn(train, (task,), options.processes)
        path = out / "edit.gguf"
        write_gguf_like(load_model(out / "edit"), start, path, NAME, options.quantization, LANGUAGES)
        last = json.loads((out / "edit" / "log.jsonl").read_text("utf-8").splitlines()[-1])
        say(f"{path}: {last['tokens']:,} tokens seen, loss {last['loss']}")
    return 0
