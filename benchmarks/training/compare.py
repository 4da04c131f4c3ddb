"""``python -m benchmarks compare``: what each draft of a run folder is worth in every language."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from benchmarks.training.trim_report import speeds
from codespec.languages import sharing_a_draft
from codespec.llama.context import Context
from codespec.llama.model import Model
from codespec.models.fim import fim_format
from codespec.models.index import GENERAL
from codespec.models.info import inspect
from codespec.models.registry import file_or_model
from codespec.protocols import CodespecError
from codespec.train import corpus, data
from codespec.train.corpus import CorpusDocument
from codespec.train.judge import LENGTH, GreedyAcceptance, accepted_of, judging_engine, line_ends, said_by_target
from codespec.train.own_thread import in_own_thread
from codespec.train.pipeline import spread

BEGINNING = 1200
"""Characters of a file that are read, of so many files of a language."""

FILES = 40

RESAMPLED = 2000
"""Times, with replacement: the bootstrap (Efron 1979)."""


def run(options: argparse.Namespace) -> int:
    """Print the table, and write it to ``acceptance.json``.

    Raises:
        CodespecError: the run folder lacks a target or drafts.
    """
    out: Path = options.out
    target = file_or_model(options.target) if options.target else out / "target.gguf"
    drafts = {_language(path): path for path in sorted(out.glob("draft-*.gguf"))}
    if not target.exists() or len(drafts) < 2:
        raise CodespecError(f"{out}: needs target.gguf, or --target, and two drafts at least, draft-LANGUAGE.gguf")
    if options.also and GENERAL not in drafts:
        raise CodespecError(f"--also {' '.join(options.also)}: needs the draft that is for them, draft-{GENERAL}.gguf")
    held_out = data.split(corpus.load(out))[1]
    languages = [*(each for each in drafts if each != GENERAL), *options.also]
    if none := [each for each in languages if not _documents(held_out, each, 1)]:
        raise CodespecError(f"{out}: no files are held out in {', '.join(none)}")

    def measured() -> tuple[dict[str, dict[str, GreedyAcceptance]], dict[str, float], dict[str, dict[str, float]]]:
        table = _acceptance(options, target, drafts, languages, held_out)
        speed = dict(zip(drafts, (round(ms, 3) for ms in speeds(target, list(drafts.values()))), strict=True))
        return table, speed, {path.stem: bits_per_byte(path, held_out) for path in (target, *options.beside)}

    table, speed, bits = in_own_thread(measured)
    summary: dict[str, Any] = {
        "length": LENGTH,
        "places": options.places,
        "tokens": options.tokens,
        "accepted": {language: {name: _figures(each) for name, each in of.items()} for language, of in table.items()},
        "ms_per_token": speed,
        "bits_per_byte": bits,
    }
    (out / "acceptance.json").write_text(json.dumps(summary, indent=1) + "\n", "utf-8")
    print(as_markdown(table, speed))
    for name, values in bits.items():
        print(f"\nbits per byte, {name}: " + ", ".join(f"{language} {value:.2f}" for language, value in values.items()))
    return 0


def _language(path: Path) -> str:
    """Of a draft: as its metadata says, else its name."""
    return next(iter(inspect(path).languages), path.stem.removeprefix("draft-"))


def _acceptance(
    options: argparse.Namespace,
    target: Path,
    drafts: dict[str, Path],
    languages: Sequence[str],
    held_out: Sequence[CorpusDocument],
) -> dict[str, dict[str, GreedyAcceptance]]:
    """Of each draft in each language."""
    table: dict[str, dict[str, GreedyAcceptance]] = {}
    engine = judging_engine(target)
    try:
        with tqdm(total=len(languages) * len(drafts), desc="compare") as bar:
            for language in languages:
                documents = _documents(held_out, language, options.places)
                places = [replace(each, tokens=options.tokens) for each in line_ends(documents, options.places)]
                said = list(said_by_target(engine, places))
                table[language] = {}
                for name, path in drafts.items():
                    table[language][name] = accepted_of(path, engine, said)
                    bar.update()
    finally:
        engine.close()
    return table


def bits_per_byte(path: Path, documents: Sequence[CorpusDocument]) -> dict[str, float]:
    """By language: of the beginnings of held-out files, read left to right. Comparable between vocabularies."""
    found = {}
    with Model(path) as model, Context(model, context_length=BEGINNING + 1) as context:
        sequence, vocabulary = context.sequence(), model.vocabulary
        separator = getattr(fim_format(model), "file_separator", None)
        start = [separator if separator is not None else min(vocabulary.end_tokens)]
        for language in sorted({each.language for each in documents}):
            nats, size = 0.0, 0
            for document in spread(documents, language)[:FILES]:
                tokens = start + vocabulary.tokenize(document.text[:BEGINNING])
                sequence.rollback(0)
                logits = np.concatenate([sequence.decode(tokens[at : at + 256]) for at in range(0, len(tokens), 256)])
                logits = logits[:-1].astype(np.float64)
                highest = logits.max(1, keepdims=True)
                totals = np.log(np.exp(logits - highest).sum(1)) + highest[:, 0]
                nats += float((totals - logits[np.arange(len(logits)), tokens[1:]]).sum())
                size += len(document.text[:BEGINNING].encode())
            found[language] = round(nats / math.log(2) / max(1, size), 3)
    return found


def _figures(found: GreedyAcceptance) -> dict[str, float]:
    return {
        "accepted": round(found.share, 4),
        "first": round(found.first_share, 4),
        "tokens_per_pass": round(found.tokens_per_pass, 3),
    }


def as_markdown(table: dict[str, dict[str, GreedyAcceptance]], speed: dict[str, float]) -> str:
    """Languages down, drafts across; the share of tokens accepted, and how the language's own does beside others, or
    the general one where it has none."""
    drafts = list(speed)
    head = ["held-out text", *drafts, "own : general", "own : best wrong"]
    rows = [" | ".join(head), "|".join(["---"] * len(head))]
    for language, found in table.items():
        name_of_own = language if language in found else GENERAL
        own = found[name_of_own]
        general = found.get(GENERAL) if name_of_own != GENERAL else None
        wrong = [each for name, each in found.items() if name not in (name_of_own, GENERAL)]
        best_wrong = max(wrong, key=lambda each: each.share, default=None)
        cells = [f"{found[name].share:.1%}" for name in drafts]
        rows.append(" | ".join([language, *cells, _ratio(own, general), _ratio(own, best_wrong)]))
    rows.append(" | ".join(["CPU ms for a token", *(f"{ms:.2f}" for ms in speed.values()), "", ""]))
    return "\n".join(f"| {row} |" for row in rows)


def _ratio(own: GreedyAcceptance, other: GreedyAcceptance | None) -> str:
    """Of what is accepted, with the interval that holds it nine times of ten, had other places been chosen."""
    if other is None or not other.share:
        return "–"
    chosen = np.random.default_rng(1).integers(len(own.at_places), size=(RESAMPLED, len(own.at_places)))
    ours, others = (np.array(each.at_places)[chosen].sum(1) for each in (own, other))
    with np.errstate(divide="ignore", invalid="ignore"):
        low, high = np.nanquantile(ours[:, 1] / ours[:, 0] / (others[:, 1] / others[:, 0]), (0.05, 0.95))
    return f"{own.share / other.share:.2f} ({low:.2f}–{high:.2f})"


def _documents(held_out: Sequence[CorpusDocument], language: str, count: int) -> list[CorpusDocument]:
    """Of the languages that share this draft, one of each package in turn."""
    return [each for name in sharing_a_draft(language) for each in spread(held_out, name)[:count]]
