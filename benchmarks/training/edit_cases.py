"""Cases of packages that are held out from training, for ``python -m benchmarks edit``."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.training.edits import changes
from benchmarks.training.edits.alike import alike
from benchmarks.training.edits.examples import Example, Shares, made
from benchmarks.training.edits.making import by_place
from benchmarks.training.edits.source import Names, Source, source_of
from benchmarks.training.edits.versions import real
from codespec.errors import CodespecError
from codespec.languages import LANGUAGES
from codespec.train import corpus
from codespec.train.corpus import CorpusDocument, is_held_out

AROUND = 10
"""Lines of the window on each side."""

COUNT = 80
"""Of each kind and language."""

OF_PACKAGE = 20
"""Cases of one kind and one package at most."""

_NEAR = Shares(none=0.0, jump=0.0, around=AROUND)
_NONE = Shares(none=1.0, jump=0.0, around=AROUND)
_RENAMES: Sequence[tuple[float, changes.Maker]] = ((1.0, changes.rename_local),)
_CALLS: Sequence[tuple[float, changes.Maker]] = ((0.6, changes.add_parameter), (0.4, changes.change_calls))
_ANY: Sequence[tuple[float, changes.Maker]] = (
    (0.42, changes.rename_local),
    (0.08, changes.rename_global),
    (0.14, changes.rename_attribute),
    (0.06, changes.change_literal),
    (0.10, changes.add_parameter),
    (0.12, changes.change_calls),
)

COUNTED = {each.id: each.draft or each.id for each in LANGUAGES.values() if each.scopes}
"""As what the languages are counted whose names can be told apart."""


def cases(
    documents: Iterable[CorpusDocument], previous: Mapping[tuple[str, str], CorpusDocument], count: int
) -> Iterator[Example]:
    """Of each kind about ``count`` for each language; the same documents give the same cases.

    Args:
        previous: the version before of documents, by package and path.
    """
    held = [each for each in documents if is_held_out(each.package) and each.language in COUNTED]
    held.sort(key=lambda each: random.Random(f"{each.package} {each.path}").random())
    sources = [found for each in held if (found := source_of(each)) is not None]
    names = Names(each.text for source in sources for each in source.found.names if each.kind == "name")
    for kind, makers, shares in (
        ("rename", _RENAMES, _NEAR), ("parameter", _CALLS, _NEAR), ("none", _ANY, _NONE)
    ):  # fmt: skip
        yield from _made(kind, sources, names, makers, shares, count)
    yield from _real("real", real, held, previous, count, 3 * OF_PACKAGE)
    yield from _real("carried", alike, held, previous, count, OF_PACKAGE)


def _made(
    kind: str,
    sources: Sequence[Source],
    names: Names,
    makers: Sequence[tuple[float, changes.Maker]],
    shares: Shares,
    count: int,
) -> Iterator[Example]:
    languages: Counter[str] = Counter()
    packages: Counter[str] = Counter()
    for turn in range(3):
        for source in sources:
            document = source.document
            language = COUNTED[document.language]
            if languages[language] >= count or packages[document.package] >= OF_PACKAGE:
                continue
            rnd = random.Random(f"{kind} {turn} {document.package} {document.path}")
            found = next((each for _ in range(8) if (each := made(source, rnd, names, makers, shares))), None)
            if found is not None:
                languages[language] += 1
                packages[document.package] += 1
                yield _as(kind, found)


Between = Callable[[CorpusDocument, CorpusDocument, random.Random, int], Iterator[Example]]


def _real(
    kind: str,
    between: Between,
    held: Sequence[CorpusDocument],
    previous: Mapping[tuple[str, str], CorpusDocument],
    count: int,
    of_package: int,
) -> Iterator[Example]:
    languages: Counter[str] = Counter()
    packages: Counter[str] = Counter()
    for document in held:
        before = previous.get((document.package, document.path))
        if before is None or before.text == document.text:
            continue
        rnd = random.Random(document.path)
        for found in between(before, document, rnd, AROUND):
            language = COUNTED[document.language]
            if found.kind == "real" and languages[language] < count and packages[document.package] < of_package:
                languages[language] += 1
                packages[document.package] += 1
                yield _as(kind, found)


def _as(kind: str, example: Example) -> Example:
    return Example(**{**example.__dict__, "kind": kind})


def run(folder: Path, out: Path) -> int:
    """Write the cases of the run folder of a ``python -m benchmarks train-edit``, one JSON object a line.

    Raises:
        CodespecError: it has no corpus.
    """
    if not (folder / "corpus.jsonl.gz").exists():
        raise CodespecError(f"{folder}: no run folder of `python -m benchmarks train-edit`, with a corpus in it")
    before = folder / "previous"
    previous = by_place(corpus.load(before)) if before.exists() else {}
    lines = [json.dumps(asdict(each), ensure_ascii=False) for each in cases(corpus.load(folder), previous, COUNT)]
    out.write_text("".join(line + "\n" for line in lines), "utf-8")
    print(f"{out}: {len(lines)} cases")
    return 0
