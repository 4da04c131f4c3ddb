"""What ``codespec train`` runs: corpus, vocabulary, training, evaluation and export, each step resumable.

A run folder holds ``corpus.jsonl.gz``, ``manifest.json.gz``, ``tokenizer.json`` and one folder per model.
Beside a model's GGUF file lies a folder with its safetensors, for engines that take those.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

import torch
from tokenizers import Tokenizer
from tqdm import tqdm

from codespec.languages import by_id, sharing_a_draft
from codespec.models.index import GENERAL
from codespec.models.registry import file_or_model
from codespec.train import corpus, data, tokenizer
from codespec.train.corpus import CorpusDocument
from codespec.train.gguf_file import load_gguf, write_gguf
from codespec.train.model import DRAFT, TARGET, TINY, TINY_DRAFT, Llama, ModelShape
from codespec.train.safetensors_folder import write_safetensors
from codespec.train.student import Student
from codespec.train.teacher import ROWS, teach
from codespec.train.torch_teacher import TorchTeacher
from codespec.train.train import DRAFT_ROWS, SHARES, SPOKEN_FOR, Learner, Recipe, TrainingRun, bits_per_byte, recipe_of

TOKENIZER_SAMPLES = 12_000

EVALUATED = 120
"""Held-out files at most, of all languages together, but ten of each."""


def say(message: str) -> None:
    """Progress goes to stderr: stdout is for results."""
    print(message, file=sys.stderr, flush=True)


def prepare(
    out: Path, folders: Sequence[Path], shape: ModelShape, recipe: Recipe, start: Path | None = None
) -> tuple[list[CorpusDocument], Tokenizer]:
    """The corpus and the vocabulary of a run folder, made on the first call and loaded on later ones.

    Args:
        start: GGUF file whose vocabulary it is; None: a new one is trained.
    """
    if not (out / "corpus.jsonl.gz").exists():
        corpus.build(folders or corpus.default_folders(), out)
    documents = corpus.load(out)
    vocabulary = out / "tokenizer.json"
    if start is not None and not vocabulary.exists():
        tokenizer.of_gguf(start).save(str(vocabulary))
    elif not vocabulary.exists():
        say(f"vocabulary: {shape.vocabulary} tokens …")
        train_documents, _ = data.split(documents)
        sampler = data.RowSampler(train_documents, dict(recipe.weights), recipe.seed)
        trained = tokenizer.train((sampler.document().text for _ in range(TOKENIZER_SAMPLES)), shape.vocabulary)
        trained.save(str(vocabulary))
    return documents, tokenizer.load(vocabulary)


def train_target(
    out: Path,
    folders: Sequence[Path] = (),
    recipe: Recipe | None = None,
    shape: ModelShape = TARGET,
    max_steps: int | None = None,
    start: Path | None = None,
) -> TrainingRun:
    """Train, or go on training, the target of a run folder.

    Args:
        start: GGUF file of a target of `codespec train` to begin with; its shape and vocabulary count then.
    """
    recipe = recipe or Recipe()
    begun = load_gguf(start) if start is not None else None
    shape = begun.shape if begun is not None else shape
    documents, vocabulary = prepare(out, folders, shape, recipe, start)
    train_documents, _ = data.split(documents)
    run = TrainingRun(shape, recipe, vocabulary, out / "target")
    if run.steps == 0 and begun is not None:
        run.model.load_state_dict(begun.state_dict())
    run.train(train_documents, max_steps)
    return run


def load_model(folder: Path) -> Llama:
    """The model of a checkpoint folder, for inference.

    Raises:
        FileNotFoundError: there is no checkpoint.
    """
    state = torch.load(folder / "checkpoint.pt", map_location="cpu", weights_only=True)
    model = Llama(ModelShape(**state["shape"]))
    model.load_state_dict(state["model"])
    return model.eval().requires_grad_(False)


def shares(language: str, spoken_for: float = SPOKEN_FOR) -> tuple[tuple[str, float], ...]:
    """Weights of the languages in the training texts of a draft for ``language``.

    Args:
        spoken_for: factor, in a general draft, on languages that have an embedded draft of their own.
    """
    if language == GENERAL:
        return tuple((each, share * (spoken_for if by_id(each).draft else 1)) for each, share in SHARES.items())
    return tuple((each, SHARES.get(each, 1.0)) for each in sharing_a_draft(language))


@torch.no_grad()
def inherit_embeddings(model: Llama, teacher: Llama) -> None:
    """Start from the teacher's embeddings in their first principal directions, at unit scale: most of a small model."""
    u, s, _ = torch.linalg.svd(teacher.token_embd.weight.float(), full_matrices=False)
    width = min(model.shape.width, len(s))
    embeddings = u[:, :width] * s[:width]
    model.token_embd.weight[:, :width] = (embeddings / embeddings.pow(2).mean().sqrt()).to(model.token_embd.weight)


def train_draft(
    out: Path,
    language: str,
    recipe: Recipe | None = None,
    shape: ModelShape = DRAFT,
    max_steps: int | None = None,
    start: Path | None = None,
    passes: int = 1,
) -> Learner:
    """Distil, or go on distilling, a draft for a language, or a general one, on the target of the same run folder.

    Args:
        start: GGUF file of a draft to begin with, of the same target.
        passes: how often the target's distributions over a text are learnt. More than once: the target reads first, for
            so long that the rest of the time is enough for that, and its lessons stay on the disk.

    Raises:
        ValueError: the corpus holds nothing in that language.
    """
    recipe = replace(recipe or Recipe(minutes=20.0), weights=shares(language))
    documents, vocabulary = prepare(out, (), shape, recipe)
    together = dict(recipe.weights)
    train_documents = [d for d in data.split(documents)[0] if d.language in together]
    if not train_documents:
        raise ValueError(f"no {language} files in {out / 'corpus.jsonl.gz'}; build the corpus with some (--corpus)")
    teacher = load_model(out / "target")
    folder = out / f"draft-{language}"
    learner: TrainingRun | Student
    if passes > 1:
        torch.manual_seed(recipe.seed)
        learner = Student(Llama(shape), recipe, folder)
    else:
        learner = TrainingRun(shape, recipe, vocabulary, folder, teacher=teacher)
    if learner.steps == 0 and start is not None:
        learner.model.load_state_dict(load_gguf(start).state_dict())
    elif learner.steps == 0:
        inherit_embeddings(learner.model, teacher)
    if isinstance(learner, Student):
        learn_in_passes(learner, TorchTeacher(teacher, vocabulary, train_documents, recipe), passes, max_steps)
    else:
        learner.train(train_documents, max_steps)
    return learner


def learn_in_passes(student: Student, teacher: TorchTeacher, passes: int, max_steps: int | None) -> None:
    """Let the target make lessons first, for so long that the student has time for ``passes`` passes over them."""
    began, seconds = time.monotonic(), student.recipe.minutes * 60
    steps = passes * ROWS // student.recipe.rows  # for a lesson
    most = -(-max_steps // steps) if max_steps else None
    lessons = teach(
        lambda number, _: teacher.lesson(number), student.folder / "lessons", began + seconds / (1 + passes), most
    )
    student.train(lessons, began + seconds, max_steps or student.steps + steps * len(lessons))


def evaluate(run: Learner, vocabulary: Tokenizer, documents: list[CorpusDocument]) -> dict[str, float]:
    """Bits per byte on held-out files, per language."""
    held_out = data.split(documents)[1]
    languages = sorted({d.language for d in held_out} & dict(run.recipe.weights).keys())
    model = load_model(run.folder)
    count = max(10, EVALUATED // max(1, len(languages)))
    return {
        language: round(bits_per_byte(model, vocabulary, spread(held_out, language)[:count]), 3)
        for language in tqdm(languages, desc="bits per byte")
    }


def spread(documents: Sequence[CorpusDocument], language: str) -> list[CorpusDocument]:
    """The documents of a language, one of each package in turn, so that the first few are of many packages."""
    by_package: dict[str, list[CorpusDocument]] = {}
    for document in documents:
        if document.language == language:
            by_package.setdefault(document.package, []).append(document)
    rounds = zip_longest(*by_package.values())
    return [document for each in rounds for document in each if document is not None]


def run(options: argparse.Namespace) -> int:
    """``codespec train target|draft``: train within the time budget, evaluate, export."""
    recipe = recipe_of(options, Recipe.rows if options.model == "target" else DRAFT_ROWS)
    languages: tuple[str, ...] = ()
    tiny = options.size == "tiny"
    start = file_or_model(options.start) if options.start not in ("", "none") else None
    trained: Learner
    if options.model == "target":
        shape = TINY if tiny else TARGET
        trained = train_target(options.out, options.corpus, recipe, shape, options.max_steps, start)
        name = "target"
    else:
        shape = TINY_DRAFT if tiny else DRAFT
        trained = train_draft(options.out, options.language, recipe, shape, options.max_steps, start, options.passes)
        name = f"draft-{options.language}"
        languages = sharing_a_draft(options.language)
    path = options.out / f"{name}.gguf"
    vocabulary = tokenizer.load(options.out / "tokenizer.json")
    write_gguf(trained.model, vocabulary, path, f"codespec {name}", options.quantization, languages)
    write_safetensors(trained.model, vocabulary, options.out / f"{name}-safetensors", options.quantization)
    scores = evaluate(trained, vocabulary, corpus.load(options.out))
    summary = {
        "parameters": trained.model.parameter_count(),
        "steps": trained.steps,
        "tokens": trained.tokens,
        "minutes": round(trained.seconds / 60, 1),
        "bits_per_byte": scores,
        "bytes": path.stat().st_size,
    }
    (options.out / f"{name}.json").write_text(json.dumps(summary, indent=1) + "\n", "utf-8")
    say(f"{path}: {summary['parameters']:,} parameters, {trained.tokens:,} tokens seen, bits per byte {scores}")
    return 0
