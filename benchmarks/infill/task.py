"""Tasks of filling in, in the format of HumanEval-Infilling: JSON lines, plain or in gzip."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from codespec.protocols import CodespecError

SINGLE, MULTI, SPAN = "single-line", "multi-line", "random-span"
KINDS = (SINGLE, MULTI, SPAN)
PLAIN, PACKED = ".jsonl", ".jsonl.gz"

_KIND_OF = {"SingleLineInfilling": SINGLE, "MultiLineInfilling": MULTI, "RandomSpanInfilling": SPAN}


@dataclass(frozen=True)
class Task:
    """A text with a gap. The first six fields are those of HumanEval-Infilling.

    Attributes:
        prompt, suffix: what stands before the gap and behind it.
        canonical_solution: what its author wrote there.
        test: a program that follows the filled text; empty where nothing tests it.
        entry_point: the name that the test calls ``check`` with; empty where the test says all by itself.
        language: LSP identifier.
        path: of the file that the text comes from, or what it could be called.
        package: where the file comes from.
        cursor: ``start`` of the line, or behind its ``indentation``; ``within`` for a span.
    """

    task_id: str
    entry_point: str
    prompt: str
    suffix: str
    canonical_solution: str
    test: str
    language: str = "python"
    kind: str = SINGLE
    path: str = "task.py"
    package: str = ""
    cursor: str = "start"

    @property
    def indentation(self) -> str:
        """The blanks that the solution begins with, line breaks aside."""
        text = self.canonical_solution
        return text[: len(text) - len(text.lstrip(" \t"))]


def read(path: Path) -> list[Task]:
    """The tasks of a file.

    Raises:
        CodespecError: it cannot be read, or holds something else.
    """
    found = []
    for number, fields in enumerate(read_lines(path), 1):
        try:
            found.append(_task(fields))
        except (KeyError, TypeError, ValueError) as error:
            raise CodespecError(f"{path}, line {number}: no task of filling in ({error!r})") from error
    return found


def read_lines(path: Path) -> list[Any]:
    """The values of a file of JSON lines, which may be compressed.

    Raises:
        CodespecError: it cannot be read.
    """
    try:
        data = path.read_bytes()
        text = (gzip.decompress(data) if path.name.endswith(".gz") else data).decode()
        return [json.loads(line) for line in text.split("\n") if line.strip()]
    except (OSError, ValueError, EOFError) as error:
        raise CodespecError(f"{path}: cannot be read as JSON lines ({error})") from error


def write(path: Path, tasks: Iterable[Task]) -> None:
    """Write tasks as ``read`` reads them; compressed where the name ends in ``.gz``."""
    data = "".join(json.dumps(asdict(task)) + "\n" for task in tasks).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(data, mtime=0) if path.name.endswith(".gz") else data)


def _task(fields: dict[str, Any]) -> Task:
    known = {name: fields[name] for name in Task.__dataclass_fields__ if name in fields}
    if not all(isinstance(value, str) for value in known.values()):
        raise TypeError("every field is a text")
    known.setdefault("kind", next((kind for name, kind in _KIND_OF.items() if name in fields["task_id"]), SINGLE))
    task = Task(**known)
    if "cursor" not in known and task.kind == SPAN:
        task = replace(task, cursor="within")
    return with_own_line_end(task)


def with_own_line_end(task: Task) -> Task:
    """The same gap in whole lines, its last line break behind the cursor, as an editor has it on an empty line."""
    if task.kind == SPAN or not task.canonical_solution.endswith("\n"):
        return task
    return replace(task, canonical_solution=task.canonical_solution[:-1], suffix="\n" + task.suffix)


def behind_indentation(task: Task) -> Task:
    """The same gap with the cursor behind the indentation of its first line."""
    blanks = task.indentation
    return replace(
        task,
        prompt=task.prompt + blanks,
        canonical_solution=task.canonical_solution[len(blanks) :],
        cursor="indentation",
    )
