"""Shards of examples, made of a corpus and of the versions before of some of its packages."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from pathlib import Path

from tokenizers import Tokenizer
from tqdm import tqdm

from benchmarks.training.edits.alike import alike
from benchmarks.training.edits.examples import Example, made
from benchmarks.training.edits.rows import row_of, write_shard
from benchmarks.training.edits.source import EDITED, KEYWORDS, Names, Source, source_of
from codespec.train.corpus import CorpusDocument, is_held_out
from codespec.train.rows import Row

OF_FILE = 6
"""Examples of one file in a round."""

OF_SHARD = 150
"""Files of a shard."""

OF_PACKAGE = 500
"""Examples of real edits of one package at most."""

REAL = 0.5
"""Of them for one that is made, at most."""

Version = Mapping[tuple[str, str], CorpusDocument]
"""The documents of a version of packages, by package and path."""


def by_place(documents: Iterable[CorpusDocument]) -> Version:
    """Documents by package and path."""
    return {(each.package, each.path): each for each in documents}


def make(
    out: Path, documents: Sequence[CorpusDocument], previous: Sequence[Version], tokenizer: Tokenizer, count: int
) -> None:
    """Fill the folder ``out`` with shards of about ``count`` made examples and real ones among them; those that are
    there already stay. The same documents give the same shards.

    Args:
        previous: the versions before, the latest first.

    Raises:
        ValueError: no edits can be made in these documents.
    """
    out.mkdir(parents=True, exist_ok=True)
    kept = [each for each in documents if not is_held_out(each.package) and each.language in EDITED]
    parts = list(_parts(kept, max(1, count // OF_FILE)))
    real: list[Row] | None = None
    names: Names | None = None
    for number, part in enumerate(tqdm(parts, desc="examples", unit=" shards")):
        path = out / f"shard-{number:04d}.npz"
        if path.exists() and names is not None:
            continue
        sources = [found for each in part if (found := source_of(each)) is not None]
        names = names or _names(sources)
        if path.exists():
            continue
        rnd = random.Random(number)
        rows = [row for source in sources for row in islice(_rows(source, rnd, names, tokenizer), OF_FILE)]
        real = _real(kept, previous, tokenizer) if real is None else real
        rows += real[number :: len(parts)][: round(REAL * len(rows))]
        rnd.shuffle(rows)
        if rows:
            write_shard(path, rows)
    if not any(out.glob("shard-*.npz")):
        raise ValueError("no edits can be made in the corpus; it has no Python, JavaScript, TypeScript, Go, C or Rust")


def _parts(documents: Sequence[CorpusDocument], count: int) -> Iterator[list[CorpusDocument]]:
    """Files of all languages by their shares, as often as needed."""
    order = sorted(documents, key=lambda each: random.Random(f"{each.package} {each.path}").random())
    taken: Counter[str] = Counter()
    chosen = []
    for each in order:
        if taken[each.language] < max(1.0, EDITED[each.language].share * count):
            taken[each.language] += 1
            chosen.append(each)
    while chosen and len(chosen) < count:
        chosen += chosen[: count - len(chosen)]
    for start in range(0, len(chosen), OF_SHARD):
        yield chosen[start : start + OF_SHARD]


def _names(sources: Iterable[Source]) -> Names:
    kinds = ("name", "attribute", "type")
    return Names(
        each.text for source in sources for each in source.found.names
        if each.kind in kinds and each.text not in KEYWORDS
    )  # fmt: skip


def _rows(source: Source, rnd: random.Random, names: Names, tokenizer: Tokenizer) -> Iterator[Row]:
    for _ in range(4 * OF_FILE):
        example = made(source, rnd, names)
        row = row_of(*example.prompt(), tokenizer) if example is not None else None
        if row is not None:
            yield row


def _real(documents: Sequence[CorpusDocument], previous: Sequence[Version], tokenizer: Tokenizer) -> list[Row]:
    packages: Counter[str] = Counter()
    rows = []
    for each in tqdm(documents, desc="real edits", unit=" files", disable=not previous):
        for example in islice(_between(each, previous), max(0, OF_PACKAGE - packages[each.package])):
            row = row_of(*example.prompt(), tokenizer)
            if row is not None:
                packages[each.package] += 1
                rows.append(row)
    random.Random(0).shuffle(rows)
    return rows


def _between(document: CorpusDocument, previous: Sequence[Version]) -> Iterator[Example]:
    """Examples of neighbouring versions of a document."""
    place = document.package, document.path
    versions = [document, *(version[place] for version in previous if place in version)]
    for number, (new, old) in enumerate(pairwise(versions)):
        if new.text != old.text:
            yield from alike(old, new, random.Random(f"{number} {document.path}"))
