"""What a language's own program says of a text, where it is installed: ``gofmt`` of Go, ``rustfmt`` of Rust.

It reads the document from standard input and runs nothing of it. It starts at the root of the file system, so that it
finds no settings of the workspace, such as a ``rust-toolchain.toml`` that names another compiler.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import accumulate
from pathlib import Path
from typing import ClassVar

from codespec.early_errors.walk import EarlyError

SECONDS = 2.0
"""After which a program that has not answered is ended."""
MOST_BYTES = 200_000
"""Of a document that a program is asked about; a larger one takes too long for every text."""
NO_ANSWER = "the program gave no answer"
_TOKEN = re.compile(rb"\s{0,9999}\S?")


@dataclass(frozen=True)
class Program:
    """A program that judges a document.

    Attributes:
        command: its name and arguments.
        place: of an error in what it writes to standard error: groups ``line`` and ``column``, from 1, and ``kind``.
        characters: whether columns count characters; else bytes.
    """

    command: tuple[str, ...]
    place: re.Pattern[bytes]
    characters: bool = False

    @property
    def installed(self) -> bool:
        """Whether it can be asked."""
        return bool(_path(self.command[0]))

    def errors(self, data: bytes) -> list[EarlyError] | None:
        """The errors of a document; None where it gives no answer."""
        if len(data) > MOST_BYTES:
            return None
        try:
            done = subprocess.run(
                [_path(self.command[0]), *self.command[1:]],
                input=data, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=SECONDS, cwd=Path.cwd().anchor,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired):
            return None
        if done.returncode < 0:  # it crashed
            return None
        lines = data.split(b"\n")
        starts = list(accumulate((len(line) + 1 for line in lines), initial=0))
        found = []
        for match in self.place.finditer(done.stderr):
            line, column = int(match["line"]) - 1, int(match["column"]) - 1
            if line < len(lines):
                if self.characters:
                    column = len(lines[line].decode("utf-8", "replace")[:column].encode())
                found.append(EarlyError(match["kind"].decode("utf-8", "replace"), *[starts[line] + column] * 2))
        return found


GOFMT = Program(
    ("gofmt", "-e"),
    re.compile(rb"^<standard input>:(?P<line>\d{1,9}):(?P<column>\d{1,9}): (?P<kind>[^\n]+)", re.MULTILINE),
)
RUSTFMT = Program(
    ("rustfmt", "--edition", "2021", "--check", "--color", "never", "--config-path", os.devnull),
    re.compile(
        rb"^error(?:\[E\d+\])?: (?P<kind>[^\n]+)\n *--> <stdin>:(?P<line>\d{1,9}):(?P<column>\d{1,9})", re.MULTILINE
    ),
    characters=True,
)


@cache
def _path(name: str) -> str:
    """Where a program is; empty where it is not installed."""
    path = shutil.which(name)
    # On Windows one in the current folder, which may be anybody's repository, would come first.
    return path if path and Path(path).is_absolute() else ""


class ProgramErrors:
    """The errors that texts bring into a document at one position, as a program sees them.

    Args:
        data: the document as it is, UTF-8.
        place: byte offset at which texts are inserted.
    """

    program: ClassVar[Program]

    def __init__(self, root: object, data: bytes, place: int, path: str) -> None:
        self._data, self._place = data, place

    @classmethod
    def of_all(cls, root: object, data: bytes, path: str) -> set[EarlyError]:
        """The errors of a whole document."""
        return set(cls.program.errors(data) or ()) if cls.program.installed else set()

    def added(self, root: object, data: bytes, strict: bool) -> list[EarlyError]:
        """The errors that come with a text. Where the document has errors as it is, nobody knows what they hide
        elsewhere: only those in the text, or at what follows it, count.

        Args:
            data: the document with the text, UTF-8.
            strict: whether errors that were there before count, too, if the text touches them.
        """
        if self._before is None:
            return []
        end = self._place + len(data) - len(self._data)
        after = self.program.errors(data)
        if after is None:
            return [EarlyError(NO_ANSWER, self._place, end)]
        if not self._before:
            return after
        follows = _TOKEN.match(data, end)
        reach = follows.end() if follows else end
        touching = [error for error in after if self._place <= error.start <= reach]
        if strict:
            return touching
        size = end - self._place
        known = {(error.kind, error.start + (size if error.start >= self._place else 0)) for error in self._before}
        return [error for error in touching if (error.kind, error.start) not in known]

    @cached_property
    def _before(self) -> list[EarlyError] | None:
        """Of the document as it is; None where the program does not judge it."""
        return self.program.errors(self._data) if self.program.installed else None


class GoErrors(ProgramErrors):
    """Errors of Go files that ``gofmt`` reports."""

    program = GOFMT


class RustErrors(ProgramErrors):
    """Errors of Rust files that ``rustfmt`` reports."""

    program = RUSTFMT
