"""Typing sessions: insertions from the history of a repository, typed key by key at a typist's pace.

The pauses are those of ``benchmarks.capacity.sessions``. A line's indentation comes with the line end, as editors
write it. What is inserted is typed into a line of its own, which the typist has opened.
Whoever types the same sessions with the same seed presses the same keys at the same times.
"""

from __future__ import annotations

import asyncio
import random
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path
from time import perf_counter
from typing import Protocol

from benchmarks.capacity.sessions import BETWEEN_S, LAST_WAIT_S, LONGEST, SHORTEST, Pauses
from codespec.languages import Language, by_path
from codespec.protocols import CodespecError

COMMITS = 400
PAUSE_MS = 200.0
"""A pause this long before a key makes the request behind it one of kind ``thought``."""
_LARGEST_FILE = 100_000


@dataclass(frozen=True)
class Session:
    """One insertion: the text around it, and what was written."""

    path: str
    language: Language
    before: str
    typed: str
    after: str

    def key_presses(self) -> Iterator[str]:
        """What each key press adds, see ``key_presses``."""
        return key_presses(self.typed)


@dataclass
class Press:
    """One key, and what came of it before the next one. Times in milliseconds.

    Attributes:
        kind: ``along`` where what was shown goes on with the key, ``thought`` after a pause, else ``typing``.
        pressed: seconds on the clock of ``perf_counter``.
        asked: whether a request for this very place was made.
        waited: from that request to its answer; None where there was none, or the next key came first.
        from_key: from the key to the first answer for the place, wherever that came from; None where there was none.
        text: what was answered; may be empty.
        memory: whether the answer had been there before the key.
        place: line and column (UTF-16 units) behind the key.
    """

    kind: str
    pressed: float = 0.0
    asked: bool = False
    waited: float | None = None
    from_key: float | None = None
    text: str = ""
    memory: bool = False
    place: tuple[int, int] = (0, 0)

    def answer(self, text: str, asked_at: float | None = None) -> None:
        """Note an answer that came now, unless there was one."""
        now = perf_counter()
        if self.from_key is None:
            self.from_key = (now - self.pressed) * 1e3
            self.text = text
            self.waited = None if asked_at is None else (now - asked_at) * 1e3


class Plugin(Protocol):
    """An editor with something that completes. Everything happens in one event loop.

    Attributes:
        shown: the text that is offered at the cursor.
    """

    shown: str

    async def open(self, number: int, session: Session) -> None:
        """Open the session's document, the cursor where the insertion begins."""

    async def press(self, key: str, press: Press) -> None:
        """A key has put ``key`` into the text: notes in ``press`` what comes of it, until the next call."""

    async def close(self) -> None:
        """Save and close the document."""


@dataclass
class Typed:
    """What happened while sessions were typed."""

    presses: list[Press] = field(default_factory=list)


async def type_sessions(
    plugin: Plugin, chosen: Sequence[Session], seed: int, typed: Typed, say: Callable[[str], None]
) -> None:
    """Type all sessions, one after the other."""
    pauses = Pauses(seed)
    for number, session in enumerate(chosen, 1):
        say(f"session {number}/{len(chosen)}: {session.path}")
        await plugin.open(number, session)
        await _type(plugin, session, pauses, typed)
        await asyncio.sleep(LAST_WAIT_S)
        await plugin.close()
        await asyncio.sleep(BETWEEN_S)


async def _type(plugin: Plugin, session: Session, pauses: Pauses, typed: Typed) -> None:
    last = "\n"
    row, column = session.before.count("\n"), 0
    due = perf_counter()
    for key in session.key_presses():
        pause = pauses.before(last)
        due += pause / 1e3  # by the clock: what a plugin takes for itself does not slow the typist down
        await asyncio.sleep(max(0.0, due - perf_counter()))
        along = plugin.shown.startswith(key) and plugin.shown != key
        row, column = (row + 1, units(key[1:])) if key.startswith("\n") else (row, column + units(key))
        press = Press("along" if along else "thought" if pause >= PAUSE_MS else "typing", place=(row, column))
        typed.presses.append(press)
        press.pressed = perf_counter()
        await plugin.press(key, press)
        last = key[-1] if key.strip() else "\n"


def key_presses(text: str) -> Iterator[str]:
    """What each key adds: a character, or a line end with the indentation of the next line, which editors put in."""
    for match in re.finditer(r"\n[ \t]*|\A[ \t]+|.", text):
        yield match[0]


def units(text: str) -> int:
    """How many UTF-16 units a text has."""
    return len(text.encode("utf-16-le")) // 2


def sessions(repository: Path, count: int, seed: int) -> list[Session]:
    """Insertions from the latest commits of a repository, drawn at random.

    Raises:
        CodespecError: there is no such repository, or it has too few.
    """
    found: list[Session] = []
    for commit in _git(repository, "log", "--no-merges", f"-n{COMMITS}", "--format=%H").split():
        names = _git(repository, "diff-tree", "--no-commit-id", "-r", "--name-only", "--diff-filter=M", commit)
        for name in names.splitlines():
            language = by_path(name)
            if language.id == "plaintext":
                continue
            old, new = (_git(repository, "show", f"{each}:{name}") for each in (f"{commit}^", commit))
            found += _insertions(name, language, old, new)
        if len(found) >= 5 * count:
            break
    if len(found) < count:
        raise CodespecError(
            f"{repository}: {len(found)} insertions of {SHORTEST} to {LONGEST} characters, {count} wanted"
        )
    return random.Random(seed).sample(found, count)


def _git(repository: Path, *arguments: str) -> str:
    try:
        result = subprocess.run(
            ["git", "-C", str(repository), *arguments],
            capture_output=True,
            check=True,
            encoding="utf-8",
            errors="replace",
        )
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", "") or str(error)
        raise CodespecError(f"{repository}: no history to take sessions from ({said.strip()[:200]})") from None
    return result.stdout


def _insertions(name: str, language: Language, old: str, new: str) -> Iterator[Session]:
    if max(len(old), len(new)) > _LARGEST_FILE:
        return
    lines, others = new.splitlines(keepends=True), old.splitlines(keepends=True)
    for tag, _, _, start, end in SequenceMatcher(None, others, lines, autojunk=False).get_opcodes():
        added = "".join(lines[start:end])
        if tag == "insert" and SHORTEST <= len(added) <= LONGEST:
            # The line end of the last line is there before: the typist has opened a line to type in.
            typed = added.removesuffix("\n")
            after = added[len(typed) :] + "".join(lines[end:])
            yield Session(name, language, "".join(lines[:start]), typed, after)
