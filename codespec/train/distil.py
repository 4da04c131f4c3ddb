"""``codespec train draft`` for a target in a GGUF file: texts, what the target says to them, a draft that learns that.

A run folder holds ``corpus.jsonl.gz``, ``manifest.json.gz``, ``lessons/``, ``checkpoint.pt``, ``log.jsonl`` and
``loss.svg``, and ``tokens.npy`` where the draft is trimmed; an interrupted run goes on.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import shutil
import time
from collections.abc import Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from codespec.draft.profiles import model_hash
from codespec.languages import by_id, sharing_a_draft
from codespec.llama.model import Model
from codespec.models.index import best_draft
from codespec.models.info import ModelInfo, inspect
from codespec.models.registry import file_or_model, find_target, models_folder
from codespec.places import data_folder
from codespec.protocols import CodespecError
from codespec.train import corpus, data
from codespec.train.corpus import Document
from codespec.train.export import write_gguf_like
from codespec.train.judge import LENGTH, Quality, judge, own_weights
from codespec.train.pipeline import say
from codespec.train.student import Student
from codespec.train.teacher import Lesson, Packer, Teacher
from codespec.train.trim import KEPT, LARGE, Trim, frequent, trim_of

TEACHING = 0.3
"""Of the time that the target reads; what it said is learnt several times."""

EVALUATING_S = 40.0
"""That are left for the end, of short runs less."""

LATEST = 0.9
"""Of the time after which it is too late to begin to learn."""

USEFUL = 0.05
"""Of first tokens that a draft must guess right to be installed at all: one that has learnt nothing guesses none."""

ROWS = 32
"""Of a lesson; held-out ones are as many."""

HELD_OUT = 0.1
"""Of the files of a corpus that is a single package; of others whole packages are held out."""


def split(documents: Sequence[Document]) -> tuple[list[Document], list[Document]]:
    """Texts to learn from, and others to judge by: whole packages, or files where there are few packages."""
    train, held_out = data.split(documents)
    if held_out and len({each.package for each in documents}) >= 1 / HELD_OUT:
        return train, held_out
    order = sorted(documents, key=lambda each: random.Random(each.path).random())
    count = max(1, round(HELD_OUT * len(order)))
    return order[count:], order[:count]


def run(options: argparse.Namespace) -> int:
    """Train within the time budget, judge, export; install the draft unless the one that it began with is better.

    Returns:
        0, or 1 where it is not better.

    Raises:
        CodespecError: there is nothing to learn from, or no target.
    """
    began = time.monotonic()
    target = file_or_model(options.target) if options.target else find_target()
    about = _about(options, target)
    out = options.out or _folder(about)
    _same_run(out, about)
    documents = [each for each in _corpus(options, out) if each.language in sharing_a_draft(options.language)]
    if len(documents) < 2:
        raise CodespecError(f"no {options.language} files in {', '.join(map(str, options.corpus))}; name other folders")
    train, held_out = split(documents)
    say(f"{len(train):,} files to learn from, {len(held_out):,} to judge by")
    info = inspect(target)
    rival = best_draft(by_id(options.language), info.vocabulary, info.parameters)
    start = _start(options, info, rival)
    trim = _trim(options, info, out, start, train)
    if start is not None and not _can_have(start, trim, info):
        if options.start:
            raise CodespecError(f"{start}: has other tokens of the target's; leave out --from or --trim")
        start = None
    rival = rival or start
    student = Student(options, info, out, start, trim)
    budget = max(1.0, options.minutes * 60 - min(EVALUATING_S, options.minutes * 6))
    with Teacher(target, student.model.shape.context) as teacher:
        judged = _lesson(teacher, held_out, seed=-1)
        lessons = teach(teacher, train, out / "lessons", began + TEACHING * budget, options.max_steps)
        if time.monotonic() > began + LATEST * budget:
            raise CodespecError("the target has read all the time: nothing was learnt; give more --minutes")
        sizes = [len(teacher.vocabulary.token_bytes(token)) for token in range(teacher.vocabulary.size)]
    student.train(lessons, began + budget, options.max_steps)
    name = options.name or f"draft-{options.language}-{target.stem}"
    path = out / f"{name}.gguf"
    languages = sharing_a_draft(options.language)
    write_gguf_like(student.model, target, path, f"codespec {name}", options.quantization, languages, trim)
    found = judge(path, target, judged, held_out, sizes)
    old = judge(rival, target, judged, held_out, sizes) if rival is not None else None
    better = found.first >= USEFUL and (old is None or found.acceptance >= old.acceptance)
    summary = {
        "target": str(target),
        "from": str(start) if start is not None else None,
        "parameters": student.model.parameter_count(),
        "vocabulary": student.model.shape.vocabulary,
        "steps": student.steps,
        "tokens": student.tokens,
        "minutes": round((time.monotonic() - began) / 60, 1),
        "before": asdict(old) if old is not None else None,
        "quality": asdict(found),
        "better": better,
    }
    (out / f"{name}.json").write_text(json.dumps(summary, indent=1) + "\n", "utf-8")
    _tell(found, old)
    if not better:
        print(f"the target accepts too little of it{f', less than of {rival}' if rival else ''}; it is {path}")
        return 1
    place = models_folder() / path.name
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        temporary = place.with_suffix(".tmp")
        shutil.copyfile(path, temporary)
        temporary.replace(place)
    except OSError as error:  # on Windows also while an editor uses the one before
        raise CodespecError(f"{place}: cannot be written ({error.strerror}); the draft is {path}") from error
    language = options.language
    print(f"{place}: `auto` finds it for {language}; or: codespec models use {place.stem} --for {language}")
    return 0


def _tell(found: Quality, old: Quality | None) -> None:
    rows = [("now", found), *([("before", old)] if old is not None else [])]
    print(f"{'':8} accepted of {LENGTH}  first  tokens a pass  bits a byte  lines right  ms a token")
    for name, each in rows:
        print(
            f"{name:8} {each.acceptance:12.0%} {each.first:6.0%} {each.tokens_per_pass:14.2f} "
            f"{each.bits_per_byte or float('nan'):12.2f} {each.exact_match:12.0%} {each.ms_per_token:11.2f}"
        )


def _about(options: argparse.Namespace, target: Path) -> dict[str, Any]:
    """What a run folder is for."""
    try:
        model = model_hash(target)
    except OSError as error:
        raise CodespecError(f"{target}: cannot be read ({error.strerror})") from error
    folders = sorted(str(each.resolve()) for each in options.corpus)
    about = {
        "target": model,
        "name": target.stem,
        "languages": list(sharing_a_draft(options.language)),
        "corpus": folders,
    }
    return about if options.trim is None else {**about, "trim": options.trim}


def _folder(about: dict[str, Any]) -> Path:
    digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:8]
    return data_folder() / "training" / f"{about['languages'][0]}-{about['name']}-{digest}"


def _same_run(out: Path, about: dict[str, Any]) -> None:
    """Remember what a run folder is for, and refuse to go on with something else in it."""
    file = out / "run.json"
    if file.exists():
        before = json.loads(file.read_text("utf-8"))
        about = {**about, "corpus": about["corpus"] or before.get("corpus")}
        different = [key for key in about if before.get(key) != about[key]]
        if different:
            raise CodespecError(f"{out} was begun with another {', '.join(different)}; choose another --out")
        return
    out.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(about, indent=1) + "\n", "utf-8")


def _corpus(options: argparse.Namespace, out: Path) -> list[Document]:
    if not (out / "corpus.jsonl.gz").exists():
        if not options.corpus:
            raise CodespecError("name folders to learn from: --corpus DIR…")
        missing = [str(each) for each in options.corpus if not each.is_dir()]
        if missing:
            raise CodespecError(f"{', '.join(missing)}: no such folder")
        corpus.build(options.corpus, out)
    return corpus.load(out)


def _start(options: argparse.Namespace, target: ModelInfo, rival: Path | None) -> Path | None:
    """The draft to go on from: what is good already need not be learnt again."""
    if options.start == "none":
        return None
    found = file_or_model(options.start) if options.start else rival
    if found is None:
        return None
    info = inspect(found)
    same = info.vocabulary == target.vocabulary and (info.trimmed or info.vocabulary_size == target.vocabulary_size)
    if same and own_weights(found) is not None:
        return found
    if options.start:
        raise CodespecError(f"{found}: no draft of `codespec train` with the target's vocabulary; leave out --from")
    return None


def _trim(
    options: argparse.Namespace, info: ModelInfo, out: Path, start: Path | None, documents: Sequence[Document]
) -> Trim | None:
    """The tokens of the draft, which stay the same for a run folder: those of the draft that it begins with, or the
    most frequent ones; None: all."""
    file = out / "tokens.npy"
    if file.exists():
        return Trim(np.load(file), info.vocabulary_size)
    if (out / "checkpoint.pt").exists():
        return None
    trim = trim_of(start, info.vocabulary_size) if start is not None and options.trim is None else None
    if trim is None:
        size = (KEPT if info.vocabulary_size > LARGE else 0) if options.trim is None else options.trim
        if not 0 < size < info.vocabulary_size:
            return None
        with Model(info.path, vocabulary_only=True) as model:
            [trim] = frequent(model, documents, [size])
    np.save(file, trim.tokens)
    say(f"the draft has {trim.size:,} of {info.vocabulary_size:,} tokens")
    return trim


def _can_have(start: Path, trim: Trim | None, info: ModelInfo) -> bool:
    """Whether a draft has these tokens, or all."""
    own = trim_of(start, info.vocabulary_size)
    return own is None or (trim is not None and np.array_equal(own.tokens, trim.tokens))


def _lesson(teacher: Teacher, documents: Sequence[Document], seed: int, rows: int = ROWS) -> Lesson:
    languages = {each.language: 1.0 for each in documents}
    end = min(teacher.vocabulary.end_tokens)
    packer = Packer(data.Sampler(documents, languages, seed), teacher.vocabulary, teacher.layout, end, seed)
    return teacher.lesson(list(islice(packer.rows(teacher.length), rows)))


def teach(
    teacher: Teacher, documents: Sequence[Document], folder: Path, until: float, most: int | None = None
) -> list[Path]:
    """Files of lessons, one at least: of earlier runs, and new ones until the time ``until`` (of ``monotonic``)."""
    folder.mkdir(parents=True, exist_ok=True)
    found = sorted(folder.glob("lesson-*.npz"))
    began = time.monotonic()
    with tqdm(total=max(1, round(until - began)), unit="s", desc="the target reads") as bar:
        while not found or (time.monotonic() < until and (most is None or len(found) < most)):
            path = folder / f"lesson-{len(found):05d}.npz"
            _lesson(teacher, documents, seed=len(found)).save(path)
            found.append(path)
            bar.update(min(bar.total, round(time.monotonic() - began)) - bar.n)
            bar.set_postfix_str(f"{len(found) * ROWS * teacher.length / 1e6:.2f}M tokens")
    return found
