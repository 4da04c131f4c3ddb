"""``python -m benchmarks grammar``: what operations on grammars cost over real vocabularies, beside other engines."""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from time import process_time, thread_time
from typing import Any

import numpy as np

from benchmarks.grammar.texts import texts_for
from codespec.grammar import Grammar, GrammarError, Tokenizer, cache, shipped
from codespec.grammar.compiled import THREAD
from codespec.llama.llguidance_tokenizer import tokenizer_from_vocab
from codespec.llama.model import Model
from codespec.protocols import CodespecError, GrammarState

TOKENS = 1000
"""Length of the walk; a shorter text is repeated as far as the grammar lets it."""
LEAST = 8


@dataclass
class Row:
    """Figures of one grammar under one engine; microseconds of processor time, compiling in milliseconds."""

    grammar: str
    vocabulary: str
    engine: str
    tokens: int = 0
    figures: dict[str, float] = field(default_factory=dict)
    error: str = ""


class Watch:
    """Times of one operation."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def __call__(self, operation: Callable[[], Any]) -> Any:
        began = thread_time()
        result = operation()
        self.times.append((thread_time() - began) * 1e6)
        return result

    def mean(self) -> float:
        """Microseconds on average."""
        return round(statistics.fmean(self.times), 2) if self.times else 0.0

    def quantile(self, part: float) -> float:
        """Microseconds that this part of the times stays under."""
        return round(float(np.quantile(self.times, part)), 2) if self.times else 0.0


def run(names: Sequence[str], vocabularies: Sequence[Path], out: Path | None, peers: bool) -> int:
    """Measure, print a table, write ``grammar.json`` and ``grammar.svg`` under ``out``.

    Raises:
        CodespecError: a vocabulary cannot be read, or there is no text to walk along.
    """
    rows: list[Row] = []
    for path in vocabularies or [default_vocabulary()]:
        with Model(path, vocabulary_only=True) as model:
            tokenizer = tokenizer_from_vocab(model.vocabulary)
            for name in names or list(shipped()):
                rows += measure_all(name, path, model, tokenizer, peers)
    print(table(rows))
    if out is not None:
        from benchmarks.plot import bars

        out.mkdir(parents=True, exist_ok=True)
        (out / "grammar.json").write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n", "utf-8")
        (out / "grammar.svg").write_text(bars("Mask per token, µs (mean)", _plotted(rows)), "utf-8")
    return 0


def default_vocabulary() -> Path:
    """The embedded target's."""
    from codespec.models.registry import EMBEDDED_TARGET

    return Path(EMBEDDED_TARGET)


def measure_all(name: str, path: Path, model: Model, tokenizer: Tokenizer, peers: bool) -> list[Row]:
    """The rows of one grammar over one vocabulary."""
    from benchmarks.grammar import engines as others

    label, _, file = name.partition("=")
    short = Path(label).stem
    print(f"{label} over {path.stem}, {tokenizer.size:,} tokens", file=sys.stderr, flush=True)
    row = Row(label, path.stem, "codespec")
    tokens: list[int] = []
    try:
        with _own_cache():
            grammar = load_timed(label, tokenizer, row, "cold")
            candidates = [Path(file).read_text("utf-8")] if file else texts_for(short)
            tokens = choose_text(grammar, tokenizer, model, candidates, label)
            classify_where_slow(grammar, tokenizer, tokens, row)
            grammar = load_timed(label, tokenizer, row, "cached")
        measure(grammar.state(tokenizer), tokenizer, tokens, row)
    except CodespecError as error:
        row.error = str(error)
    rows = [row]
    if peers and tokens and label.endswith(".gbnf"):
        source = Path(label).read_text("utf-8")
        for engine in others.ENGINES:
            print(f"  {engine}", file=sys.stderr, flush=True)
            answer = others.ask(engine, source, path, tokens)
            rows.append(Row(label, path.stem, engine, answer.pop("tokens", 0), answer, answer.pop("error", "")))
    return rows


@contextlib.contextmanager
def _own_cache() -> Iterator[None]:
    """An empty cache of grammars."""
    before = os.environ.get(cache.VARIABLE)
    with tempfile.TemporaryDirectory() as folder:
        os.environ[cache.VARIABLE] = folder
        try:
            yield
        finally:
            if before is None:
                del os.environ[cache.VARIABLE]
            else:
                os.environ[cache.VARIABLE] = before


def load_timed(name: str, tokenizer: Tokenizer, row: Row, kind: str) -> Grammar:
    """The grammar, and what it took until a state of it was there."""
    began = process_time()  # of all threads: the engine compiles on one with a deeper stack
    grammar = load_here(name)
    grammar.state(tokenizer)
    row.figures[f"compile_{kind}_ms"] = round((process_time() - began) * 1e3, 2)
    return grammar


def classify_where_slow(grammar: Grammar, tokenizer: Tokenizer, tokens: Sequence[int], row: Row) -> None:
    """Ask for masks; where they are slow a thread computes token classes: wait for it, and record what it took."""
    state = grammar.state(tokenizer)
    bits = np.zeros((tokenizer.size + 31) // 32, np.uint32)
    for token in tokens:
        state.mask_into(bits)
        state.accept([token])
        for thread in threading.enumerate():
            if thread.name == THREAD:
                began = process_time()
                thread.join()
                row.figures["token_classes_ms"] = round((process_time() - began) * 1e3, 2)
                return


def load_here(name: str) -> Grammar:
    """A shipped grammar or a file, compiled in this process."""
    if name in shipped():
        return Grammar.load(name)
    path = Path(name)
    kinds = {".gbnf": "gbnf", ".lark": "lark", ".json": "json"}
    if path.suffix not in kinds or not path.is_file():
        raise GrammarError(name, "neither a shipped grammar nor a file", f"shipped: {', '.join(shipped())}")
    return Grammar.from_source(kinds[path.suffix], path.read_text("utf-8"), name)


def choose_text(grammar: Grammar, tokenizer: Tokenizer, model: Model, texts: Sequence[str], name: str) -> list[int]:
    """Tokens of the text that goes furthest, repeated until there are enough or the grammar refuses.

    Raises:
        CodespecError: no text goes far enough to measure anything.
    """
    best: list[int] = []
    for text in texts:
        content = model.vocabulary.tokenize(text)
        times = max(1, TOKENS // max(1, len(content)) + 1)
        tokens = model.vocabulary.tokenize(text * times)[: TOKENS + 1]
        taken = grammar.state(tokenizer).accept(tokens)
        if taken > len(best):
            best = tokens[:taken]
        if taken > TOKENS:
            break
    if len(best) < LEAST:
        raise CodespecError(f"{name}: no text to walk along; name one: {name}=FILE")
    return best


def measure(state: GrammarState, tokenizer: Tokenizer, tokens: Sequence[int], row: Row) -> None:
    """Walk along ``tokens`` with every operation at each; fill in the row."""
    bits = np.zeros((tokenizer.size + 31) // 32, np.uint32)
    start = state.copy()
    for token in tokens:  # what is computed once per grammar, such as the states of its lexer
        start.mask_into(bits)
        start.accept([token])
    watches = {name: Watch() for name in ("mask", "allows", "accept", "rollback_1", "rollback_16", "copy")}
    for index, token in enumerate(tokens, 1):
        watches["mask"](lambda: state.mask_into(bits))
        watches["allows"](partial(state.allows, token))
        watches["accept"](partial(state.accept, [token]))
        if index % 8 == 0:
            watches["rollback_1"](lambda: state.rollback(1))
            state.accept([token])
        if index % 16 == 0:
            watches["rollback_16"](lambda: state.rollback(16))
            state.accept(list(tokens[index - 16 : index]))
    for _ in range(50):
        watches["copy"](state.copy)
    row.tokens = len(tokens)
    masks = watches["mask"]
    row.figures |= {"mask_mean": masks.mean(), "mask_p50": masks.quantile(0.5), "mask_p99": masks.quantile(0.99)}
    row.figures |= {name: watches[name].mean() for name in ("allows", "accept", "rollback_1", "rollback_16", "copy")}


COLUMNS = ["mask_mean", "mask_p50", "mask_p99", "allows", "accept", "rollback_1", "rollback_16", "copy",
           "compile_cold_ms", "compile_cached_ms", "token_classes_ms"]  # fmt: skip


def table(rows: Sequence[Row]) -> str:
    """Markdown."""
    head = ["grammar", "vocabulary", "engine", "tokens", *(name.replace("_", " ") for name in COLUMNS)]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in rows:
        cells = [f"{row.figures[name]:,.1f}" if name in row.figures else "–" for name in COLUMNS]
        if row.error:
            cells = [row.error[:120].replace("|", "/"), *[""] * (len(COLUMNS) - 1)]
        name = row.grammar.rpartition("/")[2]
        lines.append("| " + " | ".join([name, row.vocabulary, row.engine, str(row.tokens), *cells]) + " |")
    return "\n".join(lines)


def _plotted(rows: Sequence[Row]) -> list[tuple[str, str, float]]:
    return [
        (f"{row.grammar.rpartition('/')[2]}, {row.vocabulary.removeprefix('ggml-vocab-')}", row.engine,
         row.figures["mask_mean"])
        for row in rows
        if "mask_mean" in row.figures
    ]  # fmt: skip
