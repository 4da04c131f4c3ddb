"""Sets of tasks: read, or made of files and folders."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from benchmarks.infill import doctests, human_eval
from benchmarks.infill.cut import cut, read_file
from benchmarks.infill.outcome import judges
from benchmarks.infill.task import KINDS, PACKED, PLAIN, Task, read, read_lines
from benchmarks.progress import Say
from codespec.languages import Language, by_path
from codespec.protocols import CodespecError

DEFAULT_LANGUAGES = ("python", "javascript", "go", "rust", "c")
PER_FILE = 2
"""Gaps of a kind in one file at most."""
PER_TESTED_FILE = 10
"""The same where examples test them, since few files have any."""
DEFAULT_COUNT = 100
_FOLDERS = frozenset(
    {"test", "tests", "testing", "__pycache__", "vendor", "third_party", "dist", "build", "node_modules"}
)
# Tests, what programs wrote, and declarations alone.
_FILES = re.compile(r"^(?:test_|conftest)|[_.-]test\.|\.spec\.|\.min\.|\.d\.|\.pyi$|\.h$", re.IGNORECASE)


def tasks_of(
    paths: Sequence[Path],
    languages: Sequence[str],
    kinds: Sequence[str],
    count: int,
    seed: int,
    say: Say,
    tested: bool = False,
) -> list[Task]:
    """The tasks of sets (also those made of HumanEval's problems), and those made of files and folders.

    Args:
        languages, kinds: empty takes all.
        count: of each kind in each language; 0 takes all of a set, and ``DEFAULT_COUNT`` of files.
        tested: whether files give gaps in Python functions alone whose examples test them.

    Raises:
        CodespecError: there are none.
    """
    sets = [path for path in paths if path.name.endswith((PLAIN, PACKED))]
    sources = [path for path in paths if path not in sets]
    found = [
        task
        for path in sets
        for task in from_file(path, seed)
        if (not languages or task.language in languages) and (not kinds or task.kind in kinds)
    ]
    found = sample(found, count, seed) if count else found
    if sources:
        languages = ["python"] if tested else languages or DEFAULT_LANGUAGES
        found += made(sources, languages, kinds or KINDS, count or DEFAULT_COUNT, seed, say, tested)
    if not found:
        raise CodespecError(f"no tasks in {', '.join(map(str, paths))}: name a set (.jsonl), or files and folders")
    return found


def from_file(path: Path, seed: int) -> list[Task]:
    """The tasks of a set, or of gaps in the problems of HumanEval.

    Raises:
        CodespecError: the file cannot be read.
    """
    lines = read_lines(path)
    if lines and all(map(human_eval.is_problem, lines)):
        return list(human_eval.tasks(lines, seed))
    return read(path)


def sample(tasks: Sequence[Task], count: int, seed: int) -> list[Task]:
    """``count`` of each language and kind, in their order."""
    groups: dict[tuple[str, str], list[int]] = {}
    for number, task in enumerate(tasks):
        groups.setdefault((task.language, task.kind), []).append(number)
    chosen = {
        number
        for key, numbers in groups.items()
        for number in random.Random(f"{seed} {key}").sample(numbers, min(count, len(numbers)))
    }
    return [task for number, task in enumerate(tasks) if number in chosen]


def made(
    sources: Sequence[Path],
    languages: Sequence[str],
    kinds: Sequence[str],
    count: int,
    seed: int,
    say: Say,
    tested: bool = False,
) -> Iterator[Task]:
    """``count`` gaps of each kind in each language, from as many folders below ``sources`` as there are, in turn."""
    files = by_language(sources, languages)
    judged = judges({language.id for language in files}, say)
    for language, packages in files.items():
        chooser = random.Random(f"{seed} {language.id}")
        judge = judged[language.id]
        left = dict.fromkeys(kinds, count)
        seen: set[str] = set()
        for package, path in in_turn(packages, chooser):
            if not any(left.values()):
                break
            text = read_file(path)
            if text is None or (judge is not None and judge(text, path)):
                continue
            for kind in kinds:
                for task in _gaps(path, text, language, kind, left[kind], tested, chooser):
                    if task.canonical_solution.strip() not in seen:
                        seen.add(task.canonical_solution.strip())
                        left[kind] -= 1
                        name = f"{package}/{path.name}:{task.prompt.count(chr(10)) + 1}"
                        yield replace(task, task_id=f"{kind}/{language.id}/{name}", package=package)
            say(f"{language.id}: {count * len(kinds) - sum(left.values())}/{count * len(kinds)} tasks made")


def _gaps(
    path: Path, text: str, language: Language, kind: str, count: int, tested: bool, chooser: random.Random
) -> Iterator[Task]:
    if tested:
        return islice(doctests.tasks(path, text, kind, chooser), min(PER_TESTED_FILE, count))
    return cut(path.name, text, language, kind, min(PER_FILE, count), chooser)


def by_language(sources: Sequence[Path], languages: Sequence[str]) -> dict[Language, dict[str, list[Path]]]:
    """The files of each language, by the folder right below a source that they lie in."""
    found: dict[Language, dict[str, list[Path]]] = {}
    for source in sources:
        for path in sorted(source.rglob("*")) if source.is_dir() else [source]:
            language = by_path(path.name)
            inner = path.relative_to(source).parts if source.is_dir() else (path.name,)
            if language.id not in languages or not language.parser or not path.is_file():
                continue
            if _FOLDERS.isdisjoint(part.lower() for part in inner[:-1]) and not _FILES.search(path.name):
                package = inner[0] if len(inner) > 1 else source.name
                found.setdefault(language, {}).setdefault(package, []).append(path)
    return dict(sorted(found.items(), key=lambda item: languages.index(item[0].id)))


def in_turn(packages: dict[str, list[Path]], chooser: random.Random) -> Iterator[tuple[str, Path]]:
    """The files in random order, of one package after another."""
    left = {name: chooser.sample(files, len(files)) for name, files in sorted(packages.items())}
    while left:
        for name in chooser.sample(sorted(left), len(left)):
            yield name, left[name].pop()
            if not left[name]:
                del left[name]
