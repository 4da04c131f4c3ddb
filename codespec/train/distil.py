"""``codespec train draft`` for a target in a GGUF file: texts, what the target says to them, a draft that learns that.

A run folder holds ``corpus.jsonl.gz``, ``manifest.json.gz``, ``lessons/``, ``checkpoint.pt`` and ``log.jsonl``; an
interrupted run goes on.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from tqdm import tqdm

from codespec.bench.decode import Fixed
from codespec.completion.local import LocalEngine
from codespec.completion.prompt import Prompts
from codespec.draft.profiles import model_hash
from codespec.languages import by_id
from codespec.models.index import best_draft
from codespec.models.info import ModelInfo, inspect
from codespec.models.registry import find_model, find_target, models_folder
from codespec.places import data_folder
from codespec.protocols import CodespecError, Limits
from codespec.train import corpus, data
from codespec.train.corpus import Document
from codespec.train.export import write_gguf_like
from codespec.train.imported import load_gguf
from codespec.train.model import DRAFT, TINY_DRAFT, Llama
from codespec.train.pipeline import say
from codespec.train.teacher import Lesson, Packer, Teacher
from codespec.train.train import Learner, Recipe, rate_factor

TEACHING = 0.3
"""Of the time that the target reads; what it said is learnt several times."""

EVALUATING_S = 40.0
"""That are left for the end, of short runs less."""

LATEST = 0.9
"""Of the time after which it is too late to begin to learn."""

USEFUL = 0.05
"""Of first tokens that a draft must guess right to be installed at all: one that has learnt nothing guesses none."""

GOING_ON = 0.1
"""Of the learning rates, for a draft that goes on from another."""

ROWS = 32
"""Of a lesson; held-out ones are as many."""

HELD_OUT = 0.1
"""Of the files of a corpus that is a single package; of others whole packages are held out."""

PLACES = 12
TOKENS = 48
LENGTH = 4
"""The draft is judged by that many continuations of held-out texts, of so many tokens, proposing so many at a time."""


@dataclass(frozen=True)
class Quality:
    """What a draft is worth on held-out texts.

    Attributes:
        agreement: at how many places of the texts its likeliest token is the target's; like ``bits_per_byte`` None for
            one of another make than ``codespec train``'s.
        acceptance: of ``LENGTH`` tokens proposed at a time, how many the target accepts, writing greedily.
        first: of the first of them.
        tokens_per_pass: of the target.
        bits_per_byte: of the texts themselves.
        exact_match: how many rests of lines it writes just as they are.
        ms_per_token: on this machine.
    """

    agreement: float | None
    acceptance: float
    first: float
    tokens_per_pass: float
    bits_per_byte: float | None
    exact_match: float
    ms_per_token: float


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
    target = _model(options.target) if options.target else find_target()
    about = _about(options, target)
    out = options.out or _folder(about)
    _same_run(out, about)
    documents = [each for each in _corpus(options, out) if each.language in _languages(options.language)]
    if len(documents) < 2:
        raise CodespecError(f"no {options.language} files in {', '.join(map(str, options.corpus))}; name other folders")
    train, held_out = split(documents)
    say(f"{len(train):,} files to learn from, {len(held_out):,} to judge by")
    info = inspect(target)
    rival = best_draft(by_id(options.language), info.vocabulary, info.parameters)
    start = _start(options, info, rival)
    rival = rival or start
    student = Student(options, info, out, start)
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
    write_gguf_like(student.model, target, path, f"codespec {name}", options.quantization, _languages(options.language))
    found = judge(path, target, judged, held_out, sizes)
    old = judge(rival, target, judged, held_out, sizes) if rival is not None else None
    better = found.first >= USEFUL and (old is None or found.acceptance >= old.acceptance)
    summary = {
        "target": str(target),
        "from": str(start) if start is not None else None,
        "parameters": student.model.parameter_count(),
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
    return {"target": model, "name": target.stem, "languages": list(_languages(options.language)), "corpus": folders}


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


def _model(name: str) -> Path:
    return Path(name).resolve() if Path(name).is_file() else find_model(name)


def _languages(language: str) -> tuple[str, ...]:
    """Those that share a draft with this one."""
    together = (("javascript", "javascriptreact", "typescript", "typescriptreact"), ("c", "cpp"))
    return next((each for each in together if language in each), (language,))


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
    found = _model(options.start) if options.start else rival
    if found is None:
        return None
    info = inspect(found)
    same = (info.vocabulary, info.vocabulary_size) == (target.vocabulary, target.vocabulary_size)
    if same and _own(found) is not None:
        return found
    if options.start:
        raise CodespecError(f"{found}: no draft of `codespec train` with the target's vocabulary; leave out --from")
    return None


def _own(path: Path) -> Llama | None:
    """The weights of a model of `codespec train`, None of another make."""
    try:
        return load_gguf(path)
    except CodespecError:
        return None


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


def distilled(logits: Tensor, labels: Tensor, learnt: Tensor, ids: Tensor, shares: Tensor, weight: float) -> Tensor:
    """Nats per token: ``weight`` × cross entropy with the teacher's likeliest tokens and the rest as one, plus
    1 - ``weight`` × that with the text."""
    log_probs = functional.log_softmax(logits.float(), dim=-1)
    picked = log_probs.gather(-1, ids)
    rest = (1 - shares.sum(-1)).clamp(min=0)
    others = torch.log1p(-picked.exp().sum(-1).clamp(max=1 - 1e-6))
    soft = -(shares * picked).sum(-1) - rest * others
    hard = -log_probs.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    return ((weight * soft + (1 - weight) * hard) * learnt).sum() / learnt.sum()


class Student(Learner):
    """A draft that learns from lessons."""

    def __init__(self, options: argparse.Namespace, target: ModelInfo, out: Path, start: Path | None) -> None:
        recipe = Recipe(minutes=options.minutes)
        torch.manual_seed(recipe.seed)
        if start is not None:
            # What is learnt already is not to be forgotten; and nothing but the target counts: a draft that learns a
            # few texts by heart knows them better than the target, and is refused.
            slower = {name: GOING_ON * getattr(recipe, name) for name in ("muon_rate", "adam_rate")}
            recipe = replace(recipe, distillation=1.0, **slower)
            model = load_gguf(start)
        else:
            shape = TINY_DRAFT if options.size == "tiny" else DRAFT
            context = min(shape.context, target.context or shape.context)
            model = Llama(replace(shape, vocabulary=target.vocabulary_size, context=context))
        super().__init__(model, recipe, out)

    def train(self, lessons: Sequence[Path], until: float, max_steps: int | None) -> None:
        """Learn until the time ``until`` (of ``monotonic``), or for ``max_steps``."""
        began, before = time.monotonic(), self.seconds
        total = max(1.0, until - began)
        saved, smoothed, weight = began, 0.0, 0.0
        with tqdm(total=round(total), unit="s", desc="the draft learns") as bar:
            for lesson, rows in self._batches(lessons):
                now = time.monotonic()
                progress = max((now - began) / total, self.steps / max_steps if max_steps else 0.0)
                if progress >= 1:
                    break
                loss = self._step(lesson, rows, rate_factor(progress, self.recipe))
                smoothed, weight = 0.98 * smoothed + 0.02 * loss, 0.98 * weight + 0.02
                self.seconds = before + time.monotonic() - began
                bar.update(min(bar.total, round(time.monotonic() - began)) - bar.n)
                if self.steps % 20 == 0:
                    bar.set_postfix_str(f"loss {smoothed / weight:.3f}, {self.tokens / 1e6:.2f}M tokens")
                    self.log(loss=round(smoothed / weight, 4), tokens=self.tokens, seconds=round(self.seconds, 1))
                if now - saved > self.recipe.checkpoint_minutes * 60:
                    self.save()
                    saved = now
        self.save()

    def _batches(self, paths: Sequence[Path]) -> Iterator[tuple[Lesson, list[int]]]:
        """Endless: some rows of a lesson, in an order of its own each time."""
        chooser = random.Random(self.steps)
        size = self.recipe.rows
        while True:
            for path in chooser.sample(list(paths), len(paths)):
                lesson = Lesson.load(path)
                order = chooser.sample(range(len(lesson.tokens)), len(lesson.tokens))
                for start in range(0, len(order) - size + 1, size):
                    yield lesson, order[start : start + size]

    def _step(self, lesson: Lesson, rows: list[int], factor: float) -> float:
        tokens = torch.from_numpy(lesson.tokens[rows].astype(np.int64)).to(self.device)
        with self.autocast():
            logits = self.model(tokens[:, :-1])
        loss = distilled(
            logits,
            tokens[:, 1:],
            torch.from_numpy(lesson.learnt[rows]).to(self.device),
            torch.from_numpy(lesson.ids[rows].astype(np.int64)).to(self.device),
            torch.from_numpy(lesson.shares[rows].astype(np.float32)).to(self.device),
            self.recipe.distillation,
        )
        return self.descend(loss, factor, len(rows) * (tokens.shape[1] - 1))


@torch.no_grad()
def agreement(model: Llama, lesson: Lesson) -> float:
    """At how many places of a lesson the model's likeliest token is the target's."""
    same = count = 0
    for row in range(len(lesson.tokens)):
        tokens = torch.from_numpy(lesson.tokens[row : row + 1, :-1].astype(np.int64))
        best = model(tokens)[0].argmax(-1).numpy()
        learnt = lesson.learnt[row]
        same += int((best == lesson.ids[row, :, 0])[learnt].sum())
        count += int(learnt.sum())
    return round(same / max(1, count), 4)


@torch.no_grad()
def _bits_per_byte(model: Llama, lesson: Lesson, sizes: Sequence[int]) -> float:
    nats, size = 0.0, 0
    for row in range(len(lesson.tokens)):
        tokens = torch.from_numpy(lesson.tokens[row : row + 1].astype(np.int64))
        losses = functional.cross_entropy(model(tokens[:, :-1])[0].float(), tokens[0, 1:], reduction="none").numpy()
        spelled = np.asarray([sizes[token] for token in lesson.tokens[row, 1:]])
        learnt = lesson.learnt[row] & (spelled > 0)
        nats += float(losses[learnt].sum())
        size += int(spelled[learnt].sum())
    return nats / np.log(2) / max(1, size)


def judge(path: Path, target: Path, lesson: Lesson, documents: Sequence[Document], sizes: Sequence[int]) -> Quality:
    """What a draft is worth, on texts that it has not seen."""
    model = _own(path)  # as it was exported, on the CPU
    engine = LocalEngine(target, context_length=min(1024, inspect(target).context or 1024))
    try:
        engine.use_draft(path)
        draft = engine.drafts.model
        assert draft is not None
        proposed = accepted = passes = tokens = first = tries = 0
        for prompt in _prompts(engine, documents):
            for chunk in engine.generate(prompt, limits=Limits(TOKENS), speculate=Fixed(draft, LENGTH)):
                if chunk.round is not None and chunk.round.proposed:
                    tries += 1
                    first += chunk.round.accepted > 0
            counts = engine.statistics
            proposed, accepted = proposed + counts.drafted, accepted + counts.accepted
            passes, tokens = passes + counts.target_calls, tokens + counts.tokens
    finally:
        engine.close()
    exact, ms = _alone(path, documents)
    return Quality(
        agreement=agreement(model, lesson) if model is not None else None,
        acceptance=round(accepted / max(1, proposed), 4),
        first=round(first / max(1, tries), 4),
        tokens_per_pass=round(tokens / max(1, passes), 3),
        bits_per_byte=round(_bits_per_byte(model, lesson, sizes), 3) if model is not None else None,
        exact_match=exact,
        ms_per_token=ms,
    )


def _places(documents: Sequence[Document]) -> Iterator[tuple[Document, int, int]]:
    """Places in lines of held-out texts, and where the line ends; the same ones for the same texts."""
    chooser = random.Random("places")
    order = chooser.sample(list(documents), len(documents))
    for _ in range(PLACES):
        for document in order:
            for _ in range(8):
                at = chooser.randrange(len(document.text))
                end = document.text.find("\n", at)
                if end - at >= 4 and document.text[at:end].strip():
                    yield document, at, end
                    break


def _prompts(engine: LocalEngine, documents: Sequence[Document]) -> Iterator[list[int]]:
    prompts = Prompts(engine.vocabulary, inspect(engine.model.path).fim)
    room = engine.context_length - TOKENS - LENGTH - 2
    for document, at, end in islice(_places(documents), PLACES):
        tokens = prompts.prompt(document.text[:at], document.text[end:], document.path, room)
        yield tokens or sorted(engine.vocabulary.end_tokens)[:1]


def _alone(path: Path, documents: Sequence[Document]) -> tuple[float, float]:
    """How many rests of lines the draft writes right by itself, and milliseconds for a token."""
    engine = LocalEngine(path)
    try:
        right = count = 0
        seconds, tokens = 0.0, 0
        prompts = _prompts(engine, documents)
        for (document, at, end), prompt in zip(_places(documents), prompts, strict=False):
            limit = len(engine.vocabulary.tokenize(document.text[at:end])) + 2
            chunks = engine.generate(prompt, limits=Limits(min(limit, TOKENS)), speculate=False)
            text = "".join(chunk.text for chunk in chunks)
            right += text.split("\n", 1)[0] == document.text[at:end]
            count += 1
            seconds += (engine.statistics.total_ms - engine.statistics.prefill_ms) / 1e3
            tokens += engine.statistics.tokens
    finally:
        engine.close()
    return round(right / max(1, count), 4), round(1e3 * seconds / max(1, tokens), 3)
