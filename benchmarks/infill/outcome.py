"""What an answer is worth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.infill.arms import Answer
from benchmarks.infill.sandbox import passes
from benchmarks.infill.task import SINGLE, Task
from benchmarks.quality.judges import JUDGED, Judge, judge_of
from codespec.languages import by_id
from codespec.protocols import CodespecError

COMPARED = 2_000
"""Characters of two texts that are compared, since the time is their product."""


@dataclass(frozen=True)
class Outcome:
    """One answer.

    Attributes:
        exact: whether it is the author's text, white space at the end of lines aside; of a single line, its first line.
        similarity: 1 less the edits per character of the longer text.
        parses: whether the filled text is well formed; None where nothing judges that here.
        passes: whether the task's test passes; None where it has none.
        first_line_passes: the same with the answer's first line alone, where one line is missing.
    """

    task_id: str
    language: str
    kind: str
    cursor: str
    wanted: str
    text: str
    reason: str
    ms: float
    exact: bool
    similarity: float
    parses: bool | None
    passes: bool | None
    first_line_passes: bool | None

    @property
    def empty(self) -> bool:
        """Whether nothing was put in."""
        return not self.text.strip()

    def as_json(self) -> dict[str, Any]:
        """The fields."""
        return {**asdict(self), "ms": round(self.ms, 1), "similarity": round(self.similarity, 3)}


def outcome(task: Task, answer: Answer, judge: Judge | None) -> Outcome:
    """Judge an answer. An empty one neither parses nor passes."""
    text, wanted = answer.text, task.canonical_solution
    filled = task.prompt + text + task.suffix
    empty = not text.strip()
    compared = text.partition("\n")[0] if task.kind == SINGLE else text
    passed = (not empty and passes(task, text)) if task.test else None
    shorter = task.test and task.kind == SINGLE and compared != text and compared.strip()
    return Outcome(
        task_id=task.task_id,
        language=task.language,
        kind=task.kind,
        cursor=task.cursor,
        wanted=wanted,
        text=text,
        reason=answer.reason,
        ms=answer.ms,
        exact=plain(compared) == plain(wanted),
        similarity=similarity(plain(compared), plain(wanted)),
        parses=None if judge is None else not empty and not judge(filled, Path(task.path)),
        passes=passed,
        first_line_passes=passes(task, compared) if shorter else passed,
    )


def plain(text: str) -> str:
    """Without white space at the ends of lines and of the text."""
    return "\n".join(line.rstrip() for line in text.split("\n")).rstrip()


def similarity(one: str, other: str) -> float:
    """1 for the same text, 0 for one without a character in common: 1 less Levenshtein's distance per character."""
    one, other = one[:COMPARED], other[:COMPARED]
    if not one or not other:
        return float(one == other)
    above = list(range(len(other) + 1))
    for row, left in enumerate(one, 1):
        line = [row]
        for column, right in enumerate(other, 1):
            line.append(min(above[column] + 1, line[-1] + 1, above[column - 1] + (left != right)))
        above = line
    return 1 - above[-1] / max(len(one), len(other))


def judges(languages: set[str], say: Callable[[str], None]) -> dict[str, Judge | None]:
    """What judges the files of each language; None, with a word to ``say``, where a program is missing."""
    found: dict[str, Judge | None] = dict.fromkeys(languages)
    for language in sorted(languages & JUDGED):
        try:
            found[language] = judge_of(by_id(language))
        except CodespecError as error:
            say(f"{language} is not judged: {error}")
    return found
