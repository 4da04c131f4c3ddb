"""``codespec train draft`` for a target in a GGUF file: texts, the target's lessons on them, a draft that learns those;
and for a vocabulary alone, whose targets are not at hand: the texts say themselves what comes next.

A run folder holds ``corpus.jsonl.gz``, ``manifest.json.gz``, ``lessons/``, ``checkpoint.pt``, ``log.jsonl``,
and ``tokens.npy`` where the draft is trimmed; an interrupted run goes on.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import time
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from codespec.draft.storage.profiles import model_hash
from codespec.draft.storage.token_log import language_stem
from codespec.languages import by_id, sharing_a_draft
from codespec.llama.model import Model
from codespec.models.index import best_draft
from codespec.models.info import ModelInfo, inspect
from codespec.models.registry import file_or_model, find_target, models_folder
from codespec.models.tokenizer_json import vocabulary_file
from codespec.models.trimmed import NONE, targets_tokens
from codespec.paths import data_folder
from codespec.protocols import CodespecError
from codespec.train import corpus
from codespec.train.corpus import CorpusDocument
from codespec.train.gguf_file import write_gguf_like
from codespec.train.judge import LENGTH, DraftQuality, agreement, judge, own_weights
from codespec.train.own_thread import in_own_thread
from codespec.train.pipeline import say, shares
from codespec.train.student import Student, begin
from codespec.train.teacher import READS, ROWS, GoOn, Lesson, TextTeacher, teach
from codespec.train.texts import DraftTexts, of_files, split
from codespec.train.torch_teacher import reader
from codespec.train.trim import KEPT, LARGE, TrimmedVocabulary, frequent, trim_of

TEACHING = 0.3
"""The share of the time in which the target reads; its lessons are learnt several times."""

TEXTS = 0.6
"""The share of the time in which a new draft learns from texts alone, before the target says more."""

READING = "texts are read"

PREPARING = 0.05
"""The same where texts only have to be made into tokens."""

JUDGED = 0.1
"""The share of the time that is left in which held-out texts are read, to judge by."""

MOST_A_SECOND = 20_000
"""Tokens that a draft learns on a fast CPU: no more are made ready."""

EVALUATING_S = 40.0
"""Seconds that are left for evaluation at the end; in short runs fewer."""

LATEST = 0.9
"""The share of the time after which it is too late to begin to learn."""

CHANCE = 0.03
"""The share of accepted tokens by which drafts of the same worth differ at a dozen positions."""

USEFUL = 0.05
"""The share of first tokens that a draft must guess right to be installed: one that has learnt nothing guesses none."""


def run(options: argparse.Namespace) -> int:
    """Train within the time budget, judge, export; install the draft unless the one that it began with is better.

    Returns:
        0, or 1 where it is not better.

    Raises:
        CodespecError: there is nothing to learn from, or no target.
    """
    began = time.monotonic()
    if options.vocabulary is not None:
        target = _vocabulary(options)
    else:
        target = file_or_model(options.target) if options.target else find_target()
    about = _about(options, target)
    out = options.out or _folder(about)
    _same_run(out, about)
    weights = dict(shares(options.language, spoken_for=1))  # which drafts this target has is not known here
    documents = [each for each in _corpus(options, out) if each.language in weights]
    if len(documents) < 2:
        raise CodespecError(f"no {options.language} files in {', '.join(map(str, options.corpus))}; name other folders")
    train, held_out = split(documents)
    say(f"{len(train):,} files to learn from, {len(held_out):,} to judge by")
    return _train(options, target, out, of_files(train, held_out, weights), began)


def _train(options: argparse.Namespace, target: Path, out: Path, texts: DraftTexts, began: float) -> int:
    info = inspect(target)
    rival = best_draft(by_id(options.language), info.vocabularies, info.parameters)
    start = _start(options, info, rival)
    trim = _trim(options, info, out, start, texts.files)
    if start is not None and not _can_have(start, trim, info):
        if options.start:
            raise CodespecError(f"{start}: has other tokens of the target's; leave out --from or --trim")
        start = None
    rival = rival or start
    student = begin(options, info, out, start, trim)
    budget = max(1.0, options.minutes * 60 - min(EVALUATING_S, options.minutes * 6))
    if start is None and options.vocabulary is None:
        _learn_texts(options, target, texts, student, began, budget)
    lessons, judged, sizes = in_own_thread(lambda: _taught(options, target, texts, student, out, began, budget))
    if start is None and student.steps == 0:
        student.know_neighbours(lessons)
    student.train(lessons, began + budget, options.max_steps)
    name = options.name or f"draft-{language_stem(options.language)}-{target.stem}"
    path = out / f"{name}.gguf"
    languages = sharing_a_draft(options.language)
    write_gguf_like(student.model, target, path, f"codespec {name}", options.quantization, languages, trim)
    if options.vocabulary is not None:
        return _kept(path, student, trim, judged, began)
    drafts = [path] if rival is None else [path, rival]
    found, *before = judge(drafts, target, judged, texts.places, sizes)
    old = before[0] if before else None
    better = found.first >= USEFUL and (old is None or _is_better(found, old))
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
    if better:
        place = _install(path)
        language = options.language
        print(f"{place}: `auto` finds it for {language}; or: codespec models use {place.stem} --for {language}")
    else:
        print(f"the target accepts too little of it{f', no more than of {rival}' if rival else ''}; it is {path}")
    return 0 if better else 1


def _learn_texts(
    options: argparse.Namespace, target: Path, texts: DraftTexts, student: Student, began: float, budget: float
) -> None:
    """Let a new draft learn what the texts say, before what the target says of them: of texts there are as many as it
    can take in, and the target reads slowly."""
    out, until = student.folder, began + TEXTS * budget
    if not any((out / "lessons").glob("*.npz")):  # else this was done in an earlier part of the run

        def read() -> list[Path]:
            with TextTeacher(target, student.model.shape.context) as teacher:
                most = -(-int(MOST_A_SECOND * TEXTS * budget) // (ROWS * teacher.length))
                now = time.monotonic()
                lesson = partial(_lesson, teacher, texts)
                return teach(lesson, out / "texts", now + PREPARING * (until - now), most, READING)

        lessons = in_own_thread(read)
        if student.steps == 0:
            student.know_neighbours(lessons)
        student.train(lessons, until, options.max_steps and round(TEXTS * options.max_steps))
    student.go_on()


def _taught(
    options: argparse.Namespace,
    target: Path,
    texts: DraftTexts,
    student: Student,
    out: Path,
    began: float,
    budget: float,
) -> tuple[list[Path], Lesson, list[int]]:
    """Lessons to learn from, one to judge by, and the sizes of all tokens in bytes."""
    teaches = reader if options.vocabulary is None else TextTeacher
    with teaches(target, student.model.shape.context) as teacher:
        now = time.monotonic()
        until = now + JUDGED * (began + budget - now)
        judged = teacher.lesson(list(islice(texts.held_out(teacher, -1), ROWS)), lambda: time.monotonic() < until)
        most, share = options.max_steps, TEACHING
        if options.vocabulary is not None:
            read = -(-int(MOST_A_SECOND * budget) // (ROWS * teacher.length))
            most, share = min(read, most or read), PREPARING
        lesson = partial(_lesson, teacher, texts)
        now = time.monotonic()
        step = READS if options.vocabulary is None else READING
        lessons = teach(lesson, out / "lessons", now + share * (began + budget - now), most, step)
        if student.steps == 0 and time.monotonic() > began + LATEST * budget:
            raise CodespecError("no time was left to train after the target had read the texts; give more --minutes")
        return lessons, judged, [len(teacher.vocabulary.token_bytes(each)) for each in range(teacher.vocabulary.size)]


def _lesson(teacher: TextTeacher, texts: DraftTexts, number: int, go_on: GoOn) -> Lesson:
    return teacher.lesson(list(islice(texts.train(teacher, number), ROWS)), go_on)


def _vocabulary(options: argparse.Namespace) -> Path:
    """The file with the tokens of a draft whose target is not at hand.

    Raises:
        CodespecError: it cannot be read, or other options need a target.
    """
    if options.target:
        raise CodespecError("--vocabulary trains without a target: leave out --target")
    return vocabulary_file(options.vocabulary)


def _kept(path: Path, student: Student, trim: TrimmedVocabulary | None, judged: Lesson, began: float) -> int:
    """Tell what a draft knows that no target has read, and put it where `auto` finds it."""
    model = own_weights(path)
    assert model is not None
    right = agreement(model, judged, trim)
    summary = {
        "parameters": student.model.parameter_count(),
        "vocabulary": student.model.shape.vocabulary,
        "steps": student.steps,
        "tokens": student.tokens,
        "minutes": round((time.monotonic() - began) / 60, 1),
        "right": right,
    }
    path.with_suffix(".json").write_text(json.dumps(summary, indent=1) + "\n", "utf-8")
    print(f"{path}: right at {right:.1%} of the next tokens of files that it has not seen")
    if right < USEFUL:
        print("that is too little to be of use; give more --minutes or a larger --corpus")
        return 1
    print(f"{_install(path)}: `auto` finds it for targets with this vocabulary; ten minutes of --from with one fit it")
    return 0


def _is_better(found: DraftQuality, old: DraftQuality) -> bool:
    """Whether to use the new draft.

    It has to know better what the target says, at all of the thousands of places that were read; what is accepted where
    the target writes is a small sample, which varies by more than ten minutes gain.
    """
    if found.agreement is not None and old.agreement is not None:
        return found.agreement >= old.agreement and found.acceptance > old.acceptance - CHANCE
    return found.acceptance >= old.acceptance


def _install(path: Path) -> Path:
    """Put a draft where ``auto`` finds it."""
    folder = models_folder()
    # Windows does not replace a file that is in use; under another name the newer one is found.
    for place in (folder / path.name, folder / f"{path.stem}-2.gguf"):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            temporary = place.with_suffix(".tmp")
            shutil.copyfile(path, temporary)
            temporary.replace(place)
        except OSError as error:
            problem = error
            continue
        return place
    raise CodespecError(f"{place}: cannot be written ({problem.strerror}); the draft is {path}") from problem


def _tell(found: DraftQuality, old: DraftQuality | None) -> None:
    rows = [("now", found), *([("before", old)] if old is not None else [])]
    print(f"{'':8} agrees  accepted of {LENGTH}  first  tokens a pass  bits a byte  lines right  ms a token")
    for name, each in rows:
        print(
            f"{name:8} {_share(each.agreement):>6} {each.acceptance:14.0%} {each.first:6.0%} "
            f"{each.tokens_per_pass:14.2f} {_number(each.bits_per_byte):>12} "
            f"{each.exact_match:12.0%} {each.ms_per_token:11.2f}"
        )


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.0%}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


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


def _corpus(options: argparse.Namespace, out: Path) -> list[CorpusDocument]:
    if not (out / "corpus.jsonl.gz").exists():
        if not options.corpus:
            raise CodespecError("name folders to learn from: --corpus DIR…")
        missing = [str(each) for each in options.corpus if not each.is_dir()]
        if missing:
            raise CodespecError(f"{', '.join(missing)}: no such folder; --corpus takes folders of source files")
        corpus.build(options.corpus, out)
    return corpus.load(out)


def _start(options: argparse.Namespace, target: ModelInfo, rival: Path | None) -> Path | None:
    """The draft to go on from: what is good already need not be learnt again.

    Raises:
        CodespecError: a draft was named that is of another make, or there has to be one: a few completions teach none
            from nothing.
    """
    found = file_or_model(options.start) if options.start not in ("", "none") else rival
    if options.start == "none":
        found = None
    if found is not None:
        info = inspect(found)
        related = bool(info.vocabularies & target.vocabularies)
        same = related and (
            _has_ids_of(info, target) if info.trimmed else info.vocabulary_size == target.vocabulary_size
        )
        if same and own_weights(found) is not None:
            return found
    if found is not None and options.start:
        raise CodespecError(f"{found}: no draft of `codespec train` with the target's vocabulary; leave out --from")
    return None


def _has_ids_of(draft: ModelInfo, target: ModelInfo) -> bool:
    """Whether tokens that a trimmed draft and a target of its family have both have the same ids."""
    trim = trim_of(draft.path, target.vocabulary_size)
    with Model(draft.path, vocabulary_only=True) as own, Model(target.path, vocabulary_only=True) as other:
        ids = targets_tokens(own, other.vocabulary)
    assert trim is not None
    assert ids is not None
    return all(each in (NONE, kept) for each, kept in zip(ids, trim.tokens, strict=True))


def _trim(
    options: argparse.Namespace, info: ModelInfo, out: Path, start: Path | None, documents: Sequence[CorpusDocument]
) -> TrimmedVocabulary | None:
    """The tokens of the draft, which stay the same for a run folder: those of the draft that it begins with, or the
    most frequent ones; None: all."""
    file = out / "tokens.npy"
    if file.exists():
        return TrimmedVocabulary(np.load(file), info.vocabulary_size)
    if (out / "checkpoint.pt").exists():
        return None
    trim = trim_of(start, info.vocabulary_size) if start is not None and options.trim is None else None
    if trim is None:
        size = (KEPT if info.vocabulary_size > LARGE else 0) if options.trim is None else options.trim
        unknown = start is not None and not documents  # which tokens are frequent
        if unknown or not 0 < size < info.vocabulary_size:
            return None
        with Model(info.path, vocabulary_only=True) as model:
            [trim] = frequent(model, documents, [size])
    np.save(file, trim.tokens)
    say(f"the draft has {trim.size:,} of {info.vocabulary_size:,} tokens")
    return trim


def _can_have(start: Path, trim: TrimmedVocabulary | None, info: ModelInfo) -> bool:
    """Whether a draft has these tokens, or all."""
    own = trim_of(start, info.vocabulary_size)
    return own is None or (trim is not None and np.array_equal(own.tokens, trim.tokens))
