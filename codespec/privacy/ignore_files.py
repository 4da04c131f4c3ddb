"""Which files ``.gitignore`` and ``.codespecignore`` exclude, decided as git decides it.

Whatever lies in an excluded folder is excluded; of the patterns that match, the last one of the innermost file counts.
Files of patterns are looked at again every second, and read again where they changed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from codespec.line_ends import without_lone_returns

GIT = ".gitignore"
OWN = ".codespecignore"

CHECK_S = 3.0
"""After which a change of a file of patterns counts."""
HOLD_S = CHECK_S / 3
"""How long what is known of such a file holds, how long an answer that was found from it, and how long what was made of
that answer: one after the other."""
LARGEST = 1 << 16
"""Bytes of a file of patterns; a larger one excludes everything beside and below it."""
DEEPEST = 64
"""Folders that a file may lie in; one that lies deeper is excluded."""
MOST_STARS = 3
"""In one part of a pattern, and ``**`` in all of it. What follows the last one does not count then: matching more
takes time that grows with a power of their number, and whoever wrote the file may be a stranger."""
MOST_PATTERNS = 2_000
"""On the way to a file; where there are more, it is excluded. Reading one takes 40 µs."""
MOST_FILES = 4096
"""Files that answers are kept for."""

_EXCLUDES_FILE = re.compile(r"^[ \t]*excludesfile[ \t]*=(.*)", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True)
class _Pattern:
    """One line of a file of patterns."""

    line: str
    compiled: GitIgnoreSpecPattern

    @property
    def excludes(self) -> bool:
        """False for a line that begins with ``!``, which takes an exclusion back."""
        return bool(self.compiled.include)

    def matches(self, path: str) -> bool:
        """Whether ``path`` is meant, which ends with ``/`` if it is a folder.

        pathspec's expressions also match whatever lies in a folder that is meant. Here only the path itself counts, as
        in git: whether its folders are excluded was decided before.
        """
        found = self.compiled.match_file(path)
        if found is None:
            return False
        if not found.match.re.pattern.startswith("^"):  # that of ``*``, ``**/`` and the like, which match any part
            return path.endswith("/") or not self.line.endswith("/")
        end: int = found.match.end()
        return end < len(path) if self.line.endswith("/**") else end == len(path)


@dataclass(frozen=True)
class _File:
    """A file of patterns as it was read.

    Attributes:
        stamp: None where there is no such file.
    """

    stamp: tuple[int, int] | None
    patterns: tuple[_Pattern, ...]


class IgnoreFiles:
    """Tells which files of workspaces one kind of ignore file excludes. Not for two threads at a time.

    Args:
        name: of the files of patterns, ``GIT`` or ``OWN``; with the first also git's own lists of what it excludes in
            one repository (``.git/info/exclude``) and everywhere (``core.excludesFile``) count.
        clock: seconds.
    """

    def __init__(self, name: str, clock: Callable[[], float] = monotonic) -> None:
        self._name, self._clock = name, clock
        self._read: dict[Path, tuple[float, _File]] = {}
        self._answers: dict[tuple[Path, Path | None], tuple[float, bool]] = {}

    def excludes(self, path: Path, folder: Path | None = None) -> bool:
        """Whether a file is excluded.

        Args:
            path: absolute; links are to be resolved before.
            folder: the workspace folder, whose patterns count, and so do those above it in its repository; None, or one
                that ``path`` is not in: the repository of the file, or its own folder.
        """
        now = self._clock()
        found = self._answers.get((path, folder))
        if found is None or not 0 <= now - found[0] < HOLD_S:
            if len(self._answers) >= MOST_FILES:
                self._answers.clear()
                self._read.clear()
            found = self._answers[path, folder] = now, self._decide(path, folder, now)
        return found[1]

    def _decide(self, path: Path, folder: Path | None, now: float) -> bool:
        at = _top(folder if folder is not None and path.is_relative_to(folder) else path.parent)
        parts = path.relative_to(at).parts
        if len(parts) > DEEPEST:
            return True
        if self._name == GIT and ".git" in parts:
            return True
        lists = [(at, each) for each in self._general(now)]  # the weakest first
        for index, part in enumerate(parts):
            lists += [(at, each) for each in self._in_folder(at, now)]
            if sum(len(patterns) for _, patterns in lists) > MOST_PATTERNS:
                return True
            at = at / part
            if _excluded(at, lists, folder=index < len(parts) - 1):
                return True
        return False

    def _general(self, now: float) -> Iterator[tuple[_Pattern, ...]]:
        if self._name == GIT:
            yield self._patterns(_everywhere(), now)

    def _in_folder(self, folder: Path, now: float) -> Iterator[tuple[_Pattern, ...]]:
        if self._name == GIT and (git := _git_folder(folder)) is not None:
            yield self._patterns(git / "info" / "exclude", now)
        yield self._patterns(folder / self._name, now)

    def _patterns(self, file: Path, now: float) -> tuple[_Pattern, ...]:
        known = self._read.get(file)
        if known is not None and 0 <= now - known[0] < HOLD_S:
            return known[1].patterns
        stamp = _stamp(file)
        if known is None or known[1].stamp != stamp:
            known = now, _File(stamp, tuple(_read(file)) if stamp is not None else ())
        self._read[file] = now, known[1]
        return known[1].patterns


def _excluded(path: Path, lists: list[tuple[Path, tuple[_Pattern, ...]]], folder: bool) -> bool:
    for base, patterns in reversed(lists):
        relative = path.relative_to(base).as_posix() + ("/" if folder else "") if patterns else ""
        for pattern in reversed(patterns):
            if pattern.matches(relative):
                return pattern.excludes
    return False


def _stamp(file: Path) -> tuple[int, int] | None:
    try:
        found = file.stat()
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size


def _read(file: Path) -> Iterator[_Pattern]:
    """The patterns of a file; one for everything where it is there and cannot be read, or is too large."""
    try:
        # is_file(), because opening a pipe of that name would wait for ever.
        if not file.is_file():
            return
        with file.open("rb") as stream:
            data = stream.read(LARGEST + 1)
    except FileNotFoundError:
        return
    except OSError:
        data = b"*"
    text = without_lone_returns(data.decode("utf-8-sig", "replace")) if len(data) <= LARGEST else "*"
    if sum(1 for line in text.split("\n") if line.strip() and not line.startswith("#")) > MOST_PATTERNS:
        text = "*"
    for line in text.split("\n"):
        line = _bounded(line.removesuffix("\r"))
        try:
            compiled = GitIgnoreSpecPattern(line)
        except (ValueError, re.error):  # git passes over such a line too
            continue
        if compiled.include is not None:
            yield _Pattern(line.rstrip(), compiled)


def _bounded(line: str) -> str:
    """A pattern that matches at least what ``line`` does, and fast; nothing for one that takes too much back."""
    parts = line.split("/")
    for index, part in enumerate(parts):
        stars = [match.end() for match in re.finditer(r"\*+", part)]
        if part != "**" and len(stars) > MOST_STARS:
            parts = [*parts[:index], part[: stars[MOST_STARS - 1]]]
            break
    folders = [index for index, part in enumerate(parts) if part == "**"]
    if len(folders) > MOST_STARS:
        parts = parts[: folders[MOST_STARS - 1] + 1]
    bounded = "/".join(parts)
    return "" if bounded != line and line.startswith("!") else bounded


def _top(folder: Path) -> Path:
    """The top folder of the repository that ``folder`` is in, or itself."""
    return next((each for each in (folder, *folder.parents) if _exists(each / ".git")), folder)


def _git_folder(folder: Path) -> Path | None:
    """Where the repository at ``folder`` keeps its own files; None where there is none."""
    git = folder / ".git"
    try:
        if git.is_dir():
            return git
        if not git.is_file():
            return None
        with git.open("rb") as stream:  # a worktree or a submodule
            line = stream.read(4096).decode("utf-8", "replace")
        found = folder / line.removeprefix("gitdir:").strip()
        common = found / "commondir"
        if not common.is_file():
            return found
        with common.open("rb") as stream:
            return found / stream.read(4096).decode("utf-8", "replace").strip()
    except (OSError, ValueError):
        return None


def _everywhere() -> Path:
    """The user's own list of what git excludes in all repositories; it need not exist."""
    home = Path(os.path.expanduser("~"))  # noqa: PTH111  # Path.home() raises where there is none
    settings = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "git"
    chosen = None
    for file in (settings / "config", home / ".gitconfig"):
        try:
            if file.is_file() and (found := _EXCLUDES_FILE.findall(file.read_text("utf-8", "replace")[:LARGEST])):
                chosen = found[-1].strip().strip('"')
        except OSError:
            continue
    return home / chosen.removeprefix("~/") if chosen else settings / "ignore"


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False
