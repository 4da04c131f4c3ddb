"""What is typed: passages of files that nobody trained on, with the text around them."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.infill.cut import lines_of, read_file
from benchmarks.infill.sets import by_language, in_turn
from codespec.languages import Language
from codespec.protocols import CodespecError
from codespec.syntax.tree import syntax_tree

LINES = (6, 14)
"""Of a passage."""
CODE = 0.7
"""Of its lines are code, not comments, texts or rows of numbers."""
_NAME = re.compile(r"[^\W\d]\w")


@dataclass(frozen=True)
class Passage:
    """Lines of a file, without the line break behind the last.

    Attributes:
        before: ends with a line break.
        after: begins with one, or is empty where the file is new and ends with what is typed.
    """

    path: Path
    language: str
    before: str
    typed: str
    after: str

    @property
    def row(self) -> int:
        """The line that it begins in, from 0."""
        return self.before.count("\n")


def passages(sources: Sequence[Path], language: str, seed: int) -> Iterator[Passage]:
    """Passages of different files, from all folders in turn; every other one is the end of a new file.

    Raises:
        CodespecError: there is none, or a source is missing.
    """
    if missing := [str(path) for path in sources if not path.exists()]:
        raise CodespecError(f"no such file or folder: {', '.join(missing)}")
    chooser = random.Random(f"{seed} {language}")
    new = True
    found = by_language(sources, [language])
    for known, packages in found.items():
        for _, path in in_turn(packages, chooser):
            text = read_file(path)
            place = _place(text, known, chooser, new) if text is not None else None
            if text is None or place is None:
                continue
            start, end = place
            yield Passage(path, known.id, text[:start], text[start:end], "" if new else text[end:])
            new = not new
    if not found:
        raise CodespecError(f"no files of {language} in {', '.join(map(str, sources))}")


def _problems(text: str, language: Language) -> float:
    tree = syntax_tree(language, text)
    return tree.problems.count if tree is not None else 0


def _place(text: str, language: Language, chooser: random.Random, new: bool) -> tuple[int, int] | None:
    """Where a passage begins and ends; None where a file has none that is mostly code. People add to files that are in
    order: without a passage that is not the end of a ``new`` one, the file parses as it does with it."""
    found = lines_of(text, language)
    size = chooser.randint(*LINES)
    errors = math.inf if new else _problems(text, language)
    firsts = list(range(3, len(found.lines) - size))
    chooser.shuffle(firsts)
    for first in firsts[:50]:
        rows = range(first, first + size)
        code = [row for row in rows if _NAME.search(found.lines[row]) and row not in found.barred]
        ends = found.lines[first].strip() and found.lines[first + size - 1].strip()
        if ends and len(code) >= CODE * size and "\t\n" not in text and "\r" not in text:
            start, end = found.between(first, first + size - 1)
            if new or _problems(text[:start] + text[end:], language) <= errors:
                return start, end
    return None
