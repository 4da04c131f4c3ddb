"""``python -m benchmarks sources``: how much of real files a shipped grammar takes, whole and as they are."""

from __future__ import annotations

import ast
import functools
import importlib
import json
import random
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from codespec.grammar import Grammar, byte_tokenizer, indentation
from codespec.grammar.check import expected
from codespec.languages import LANGUAGES
from codespec.protocols import CodespecError, GrammarState

SECONDS = 30.0
"""For one file; what takes longer counts as refused."""
MAX_BYTES = 8 * 1024 * 1024
_SLICE = 1024  # bytes between two looks at the clock
_SEED = 1

Judge = Callable[[bytes], bool]


@dataclass(frozen=True)
class Verdict:
    """What became of one file; line and column from 1, 0 where accepted."""

    file: str
    accepted: bool
    bytes: int
    seconds: float
    line: int = 0
    column: int = 0
    text: str = ""
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.reason}\n    {self.text}"


def run(name: str, paths: list[Path], limit: int | None, out: Path | None, judged: bool = True) -> int:
    """Feed the files of a language under ``paths`` to its grammar, print what was refused and a summary.

    A file counts only if a whole-file parser of the language finds no fault in it (``judged``); where none is
    installed, every file counts. ``limit`` takes a fixed random sample. ``out`` receives ``sources-NAME.json``.

    Raises:
        CodespecError: there is no such grammar, or no file.
    """
    short = name.partition(":")[0]
    _load(name, None)  # an unknown grammar is one error, not one for each file
    accept = judge(short) if judged else None
    if judged and accept is None:
        print(f"no parser for {short} is installed: every file counts", file=sys.stderr)
    candidates = collect(short, paths)
    random.Random(_SEED).shuffle(candidates)
    verdicts: list[Verdict] = []
    for path in candidates:
        if limit is not None and len(verdicts) >= limit:
            break
        content = _readable(path)
        if content is not None and (accept is None or accept(content)):
            verdicts.append(test(name, path, content))
            _progress(verdicts, limit or len(candidates))
    if not verdicts:
        raise CodespecError(f"no {short} file that its parser accepts; name other folders, or use --no-judge")
    for verdict in sorted(verdicts, key=lambda each: each.file):
        if not verdict.accepted:
            print(verdict)
    summary = summarize(name, verdicts, accept is not None)
    print(json.dumps({key: value for key, value in summary.items() if key != "refused"}, indent=1))
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / f"sources-{short}.json").write_text(json.dumps(summary, indent=1) + "\n", "utf-8")
    return 0


def collect(name: str, paths: Iterable[Path]) -> list[Path]:
    """The files to test: those named, and those of the language's suffixes in the folders named.

    Raises:
        CodespecError: a path does not exist.
    """
    suffixes = tuple(
        suffix for each in LANGUAGES.values() if name in (each.grammar, each.id) for suffix in each.suffixes
    ) or (f".{name}",)
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = (each for each in path.rglob("*") if each.suffix.lower() in suffixes and each.is_file())
            found += sorted(inside)
        elif path.is_file():
            found.append(path)
        else:
            raise CodespecError(f"{path}: no such file or folder; check the path")
    return found


def _readable(path: Path) -> bytes | None:
    try:
        content = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
        content.decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    return content if len(content) <= MAX_BYTES else None


def test(name: str, path: Path, content: bytes) -> Verdict:
    """The verdict of a grammar (``NAME`` or ``NAME:START``) on a file."""
    text = content.decode("utf-8")
    started = perf_counter()
    taken = 0
    try:
        # Compiled before the clock starts: one compilation serves every file of the same indentations.
        state = _grammar(name, text).state(byte_tokenizer())
        started = perf_counter()
        for taken in _feed(state, content):
            if perf_counter() - started > SECONDS:
                return _refused(path, content, taken, perf_counter() - started, f"not done in {SECONDS:.0f} s")
        seconds = perf_counter() - started
        if taken == len(content) and state.can_end:
            return Verdict(str(path), True, len(content), seconds)
        return _refused(path, content, taken, seconds, f"expected {expected(state)}")
    except CodespecError as error:
        return _refused(path, content, taken, perf_counter() - started, str(error))


def _feed(state: GrammarState, content: bytes) -> Iterator[int]:
    """How many bytes were taken, after each slice; the last value is short where a byte was refused."""
    taken = 0
    yield taken
    while taken < len(content):
        part = content[taken : taken + _SLICE]
        count = state.accept(part)
        taken += count
        yield taken
        if count < len(part):
            return


def _refused(path: Path, content: bytes, taken: int, seconds: float, reason: str) -> Verdict:
    before = content[:taken].decode("utf-8", "ignore")
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    lines = content.decode("utf-8").split("\n")
    return Verdict(str(path), False, len(content), seconds, line, column, lines[line - 1].strip()[:120], reason)


def _grammar(name: str, text: str) -> Grammar:
    plain = _load(name, None)
    return _load(name, indentation.detect(text)) if plain.leveled else plain


@functools.lru_cache(64)
def _load(name: str, found: tuple[str, ...] | None) -> Grammar:
    short, _, start = name.partition(":")
    return Grammar.load(short, start=start or None, levels=found)


def summarize(name: str, verdicts: list[Verdict], judged: bool) -> dict[str, Any]:
    """The figures of a run; bytes per second of accepted files, compilation not counted."""
    accepted = [each for each in verdicts if each.accepted]
    seconds = sum(each.seconds for each in accepted)
    return {
        "grammar": name,
        "judged": judged,
        "files": len(verdicts),
        "accepted": len(accepted),
        "accepted_percent": round(100 * len(accepted) / len(verdicts), 2),
        "bytes": sum(each.bytes for each in accepted),
        "bytes_per_second": round(sum(each.bytes for each in accepted) / seconds) if seconds else None,
        "refused": [asdict(each) for each in verdicts if not each.accepted],
    }


def _progress(verdicts: list[Verdict], total: int) -> None:
    if len(verdicts) % 25 == 0 or sys.stderr.isatty():
        share = sum(each.accepted for each in verdicts) / len(verdicts)
        end = "" if sys.stderr.isatty() else "\n"
        print(f"\r{len(verdicts)}/{total} accepted {share:.1%}", end=end, file=sys.stderr, flush=True)


def judge(name: str) -> Judge | None:
    """What says whether a file is of the language at all; None where no parser is installed."""
    own: dict[str, Judge] = {"python": _is_python, "json": _is_json, "jsonl": _is_jsonl, "toml": _is_toml}
    return own.get(name) or _tree_sitter(name)


def _is_python(content: bytes) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(content)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    return True


def _is_json(content: bytes) -> bool:
    try:
        json.loads(content, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return False
    return True


def _no_constant(name: str) -> None:
    raise ValueError(name)  # NaN and Infinity, which Python takes and JSON does not have


def _is_jsonl(content: bytes) -> bool:
    return all(_is_json(line) for line in content.split(b"\n") if line.strip())


def _is_toml(content: bytes) -> bool:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        tomllib.loads(content.decode("utf-8"))
    except (ValueError, RecursionError):
        return False
    return True


def _tree_sitter(name: str) -> Judge | None:
    """No ERROR and no MISSING node in tree-sitter's tree."""
    try:
        from tree_sitter import Language, Parser

        module = importlib.import_module(f"tree_sitter_{ {'jsonc': 'json', 'shell': 'bash'}.get(name, name) }")
    except ImportError:
        return None
    language = getattr(module, "language", None) or getattr(module, f"language_{name}")
    parser = Parser(Language(language()))
    return lambda content: not parser.parse(content).root_node.has_error
