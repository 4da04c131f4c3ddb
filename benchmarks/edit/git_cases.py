"""Cases from the history of a repository: the first hunk of a commit is given, the next one near it is wanted."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from difflib import SequenceMatcher
from pathlib import Path

from benchmarks.edit.case import Case
from codespec.edits.lines import lines_of
from codespec.edits.request import RecentEdit
from codespec.languages import PLAIN, by_path
from codespec.protocols import CodespecError

MOST_COMMITS = 2_000
NEAR = 10
"""Lines between the hunk that is given and one that is wanted."""
MOST_LINES = 12
"""Of a hunk; larger ones nobody could predict."""
CONTEXT = 3
LARGEST = 200_000
"""Characters of a file."""


def git_cases(folder: Path) -> Iterator[Case]:
    """The newest commits first, merges left out.

    Raises:
        CodespecError: it is no git repository, or git is missing.
    """
    for commit in _git(folder, "log", "--no-merges", "--format=%H", f"-{MOST_COMMITS}").split():
        for line in _git(folder, "diff-tree", "-r", "--no-commit-id", "--diff-filter=M", "--raw", commit).splitlines():
            about, _, path = line.partition("\t")
            _, _, old, new, _ = about.split()
            if by_path(path) == PLAIN or path.startswith('"'):
                continue
            before, after = (_git(folder, "cat-file", "blob", blob) for blob in (old, new))
            if max(len(before), len(after)) <= LARGEST and "\r" not in before + after:
                yield from _cases(f"{folder.name}@{commit[:9]}", path, before, after)


def _cases(package: str, path: str, before: str, after: str) -> Iterator[Case]:
    """Each hunk with a next one near: the text has all hunks up to it."""
    old, new = lines_of(before), lines_of(after)
    blocks = [each[1:] for each in SequenceMatcher(None, old, new, autojunk=False).get_opcodes() if each[0] != "equal"]
    for low, high, new_low, new_high in blocks:
        text = [*new[:new_high], *old[high:]]
        following = [each for each in blocks if each[0] >= high and each[0] < high + NEAR and each[1] <= high + NEAR]
        if not following or max(high - low, new_high - new_low) > MOST_LINES:
            continue
        if any(max(each[1] - each[0], each[3] - each[2]) > MOST_LINES for each in following):
            continue
        last = following[-1]
        updated = [*new[: last[3]], *old[last[1] :]]
        recent = RecentEdit(
            path, new_low, "".join(old[low:high]), "".join(new[new_low:new_high]),
            "".join(text[max(0, new_low - CONTEXT) : new_low]), "".join(text[new_high : new_high + CONTEXT]),
        )  # fmt: skip
        cursor = sum(map(len, text[:new_high])) - (1 if new_high > new_low else 0)
        yield Case("git", package, path, by_path(path).id, "".join(text), max(0, cursor), (recent,), "".join(updated))


def _git(folder: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, check=True, timeout=60)
    except FileNotFoundError:
        raise CodespecError("git is missing") from None
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        raise CodespecError(f"{folder}: git {arguments[0]} failed ({error})") from None
    return done.stdout.decode("utf-8", "replace")
