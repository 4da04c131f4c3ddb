"""Judges of renames, which share nothing with what makes offers.

| language | judge |
|---|---|
| Python | ``ast`` and ``symtable`` |
| JavaScript, TypeScript | the TypeScript compiler's language service |
| Go | ``go/types`` |
"""

from __future__ import annotations

import builtins
import json
import os
import shutil
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from benchmarks.quality.judges import FOLDER
from benchmarks.renames.python_judge import Place, places_of
from codespec.errors import CodespecError

VARIABLES = frozenset(
    {"alias", "class", "const", "enum", "function", "interface", "let", "local class", "local function", "local var",
     "module", "parameter", "type", "type parameter", "using", "var"}
)  # fmt: skip
"""Kinds of what the TypeScript compiler renames, but for members."""
HERE = Path(__file__).parent


@dataclass(frozen=True)
class Rename:
    """A rename that was begun.

    Attributes:
        path: of the file, whose folder may tell more of it.
        text: before it.
        place: of the one name that was replaced, in characters.
    """

    path: Path
    text: str
    place: int
    old: str
    new: str

    @property
    def begun(self) -> str:
        """The text after it."""
        return self.text[: self.place] + self.new + self.text[self.place + len(self.old) :]


@dataclass(frozen=True)
class Judged:
    """What a judge says of an offer.

    Attributes:
        wrong: places that are changed and are no use of the same thing, or are changed in another way than they should.
        missed: uses of the same thing that keep the old name.
        captured: whether the names stand for other things than before, though none is missed.
    """

    wrong: int
    missed: int
    captured: bool = False


class Judge(ABC):
    """Judges the renames of a language."""

    @abstractmethod
    def uses(self, rename: Rename) -> int:
        """How many other places there are to rename; 0 where what was renamed is no variable."""

    @abstractmethod
    def judged(self, rename: Rename, offered: dict[int, str]) -> Judged:
        """What an offer is worth.

        Args:
            offered: by the place of a name in the text before the rename, what is to stand there.
        """

    @abstractmethod
    def of_others(self, rename: Rename, changed: set[int]) -> int:
        """How many of the places that are changed, in the text before the rename, are other variables."""

    @abstractmethod
    def close(self) -> None:
        """End what the judge has started."""


class PythonJudge(Judge):
    """``symtable``."""

    def uses(self, rename: Rename) -> int:
        try:
            before, after = places_of(rename.text), places_of(rename.begun)
        except (SyntaxError, ValueError, LookupError, RecursionError):
            return 0
        variables = _changed(before, after)
        if not variables or None in variables or hasattr(builtins, rename.old):
            return 0
        return sum(each.variable in variables and each.text == rename.old for each in before) - 1

    def judged(self, rename: Rename, offered: dict[int, str]) -> Judged:
        before, begun = places_of(rename.text), places_of(rename.begun)
        try:
            final = places_of(_applied(rename, offered))
        except (SyntaxError, ValueError, LookupError):
            return Judged(len(offered), 0)
        if len(before) != len(final):
            return Judged(len(offered), 0)
        variables = _changed(before, begun)
        wrong = sum(
            old.text != new.text and (old.variable not in variables or new.text != rename.new)
            for old, new in zip(before, final, strict=True)
        )
        missed = sum(
            old.variable in variables and new.text == rename.old for old, new in zip(before, final, strict=True)
        )
        same = len({(one.variable, two.variable) for one, two in zip(before, final, strict=True)})
        captured = not missed and not same == len({e.variable for e in before}) == len({e.variable for e in final})
        return Judged(wrong, missed, captured)

    def of_others(self, rename: Rename, changed: set[int]) -> int:
        before, begun = places_of(rename.text), places_of(rename.begun)
        variables = _changed(before, begun)
        try:
            final = places_of(_applied(rename, dict.fromkeys(changed, rename.new)))
            pairs = list(zip(before, final, strict=True))
        except (SyntaxError, ValueError, LookupError):
            return len(changed)
        return sum(
            old.text != new.text and old.variable is not None and old.variable not in variables for old, new in pairs
        )

    def close(self) -> None:
        """Nothing is started."""


def _changed(before: Sequence[Place], after: Sequence[Place]) -> set[Any]:
    if len(before) != len(after):
        return set()
    return {old.variable for old, new in zip(before, after, strict=True) if old.text != new.text}


def _applied(rename: Rename, offered: dict[int, str]) -> str:
    text = rename.text
    for place, by in sorted({**offered, rename.place: rename.new}.items(), reverse=True):
        text = text[:place] + by + text[place + len(rename.old) :]
    return text


class _Program:
    """A program that answers lines of JSON."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    def ask(self, question: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question).encode() + b"\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate()


class _ByPlaces(Judge):
    """A judge of a program that tells the places of one thing."""

    _program: _Program

    def close(self) -> None:
        self._program.close()

    @abstractmethod
    def _places(self, path: Path, text: str, place: int) -> dict[int, tuple[str, str]]:
        """Of what stands at a place: all its places, with what stands before and behind the new name there."""

    def uses(self, rename: Rename) -> int:
        places = self._places(rename.path, rename.text, rename.place)
        return len(places) - 1 if rename.place in places else 0

    def _unknown(self, path: Path, text: str) -> list[int]:
        """Places of which the judge cannot tell anything."""
        return []

    def of_others(self, rename: Rename, changed: set[int]) -> int:
        own = self._places(rename.path, rename.text, rename.place)
        return sum(place in self._places(rename.path, rename.text, place) for place in changed if place not in own)

    def judged(self, rename: Rename, offered: dict[int, str]) -> Judged:
        places = self._places(rename.path, rename.text, rename.place)
        wanted = {place: before + rename.new + behind for place, (before, behind) in places.items()}
        unknown = self._unknown(rename.path, rename.text)
        wrong = sum(wanted.get(place) != text for place, text in offered.items() if place not in unknown)
        missed = len(wanted.keys() - offered.keys() - {rename.place})
        if wrong or missed:
            return Judged(wrong, missed)
        final = self._places(rename.path, _applied(rename, offered), _moved(rename, offered, rename.place))
        moved = {_moved(rename, offered, place) for place in places}
        return Judged(0, 0, captured=set(final) != moved)


def _moved(rename: Rename, offered: dict[int, str], place: int) -> int:
    """Where the new name stands after an offer."""
    grown = sum(len(by) - len(rename.old) for at, by in {**offered, rename.place: rename.new}.items() if at < place)
    return place + grown + offered.get(place, "").rfind(rename.new) * (place in offered)


class TypeScriptJudge(_ByPlaces):
    """The TypeScript compiler.

    Raises:
        CodespecError: it or node is missing.
    """

    def __init__(self) -> None:
        folder = Path(os.environ.get(FOLDER, ".venv/judges")) / "node_modules" / "typescript"
        if shutil.which("node") is None or not folder.is_dir():
            raise CodespecError("node and TypeScript are missing: make judges")
        self._program = _Program(["node", str(HERE / "judge_rename.js"), str(folder.resolve())])
        self._known = lru_cache(4)(self._asked)

    def _places(self, path: Path, text: str, place: int) -> dict[int, tuple[str, str]]:
        return self._known(path, text, place)

    def _asked(self, path: Path, text: str, place: int) -> dict[int, tuple[str, str]]:
        units = text.encode("utf-16-le")
        offset = len(text[:place].encode("utf-16-le")) // 2
        answer = self._program.ask({"name": path.name, "text": text, "offset": offset})
        if not answer or answer["kind"] not in VARIABLES:
            return {}
        name = _word_at(text, place)
        found = {
            len(units[: 2 * start].decode("utf-16-le")): (prefix, suffix)
            for start, _, prefix, suffix in answer["places"]
        }
        return {at: each for at, each in found.items() if text.startswith(name, at)}


def _word_at(text: str, place: int) -> str:
    end = place
    while end < len(text) and (text[end].isalnum() or text[end] in "_$"):
        end += 1
    return text[place:end]


class GoJudge(_ByPlaces):
    """``go/types``.

    Raises:
        CodespecError: Go is missing.
    """

    def __init__(self, folder: Path) -> None:
        if shutil.which("go") is None:
            raise CodespecError("go is missing: apt install golang-go")
        program = folder / "judge_rename"
        done = subprocess.run(
            ["go", "build", "-o", str(program), str(HERE / "judge_rename.go")], capture_output=True, text=True
        )
        if done.returncode:
            raise CodespecError(f"the judge of Go does not build: {done.stderr[:200]}")
        self._program = _Program([str(program)])
        self._known = lru_cache(4)(self._groups)

    def _places(self, path: Path, text: str, place: int) -> dict[int, tuple[str, str]]:
        group = next((each for each in self._known(path, text)[1:] if place in each), ())
        return dict.fromkeys(group, ("", ""))

    def _unknown(self, path: Path, text: str) -> list[int]:
        return self._known(path, text)[0]

    def _groups(self, path: Path, text: str) -> list[list[int]]:
        data = text.encode()
        answer = self._program.ask({"path": str(path.resolve()), "text": text}) or [[]]
        return [[len(data[:start].decode()) for start in group] for group in answer]
