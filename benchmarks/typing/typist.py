"""A person who types a passage: with pauses, mistakes, and the keys that take what is right."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from benchmarks.capacity.sessions import KEY_MS, KEY_SIGMA
from benchmarks.latency.typing import key_presses
from benchmarks.typing.passages import Passage
from benchmarks.typing.verdicts import Verdict, is_flicker, verdict

REST_S = 1.6
"""A pause in which a person looks at what is shown."""
AT_A_LINE, BEHIND_A_SIGN, ELSEWHERE = 0.35, 0.12, 0.02
"""Shares of the keys behind which the typist rests: where a line begins, behind one of ``SIGNS``, and anywhere else."""
SIGNS = "([{=,.: "
MISTAKE = 1 / 60
"""Of the keys."""
LOOK_S = 0.04
"""Between two looks at the screen."""
SETTLED_S = 0.06
"""Behind a key: editors draw what is left of a text a frame or two after it."""


class Window(Protocol):
    """An editor that shows ghost text."""

    def open(self, name: str, passage: Passage) -> None:
        """Open a file without the passage, the cursor where it begins, in a line that is empty."""

    def type(self, text: str) -> None:
        """Press keys."""

    def erase(self) -> None:
        """Press Backspace."""

    def accept(self, text: str) -> bool:
        """Press Tab; whether ``text`` was put in. What else came, such as lines below the window, is undone."""

    def ghost(self) -> str:
        """What is shown beside the text."""

    def why(self) -> str:
        """What the status says."""

    def save(self) -> str:
        """Save the document, close it, and give the file's text."""


@dataclass(frozen=True)
class Pause:
    """One rest, and what was on the screen at its end.

    Attributes:
        wanted: the author's text from there on, its beginning.
        shown: the ghost text.
        after_ms: from the last key until the text that was shown at the end came; None where none was.
        why: the status, where nothing was shown.
    """

    path: str
    row: int
    typed: str
    wanted: str
    shown: str
    verdict: Verdict
    after_ms: float | None
    why: str = ""


@dataclass
class Record:
    """What happened in all passages.

    Attributes:
        keys: that were pressed.
        saved: characters that Tab put in.
        flicker: texts that went away, or were replaced, though they were right so far; each as before, typed, now.
        wrong: files that did not hold what was typed.
    """

    pauses: list[Pause] = field(default_factory=list)
    keys: int = 0
    saved: int = 0
    flicker: list[tuple[str, str, str]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


class Typist:
    """Types passages in a window.

    Args:
        pauses: the typist stops after so many.
    """

    def __init__(self, window: Window, seed: int, pauses: int, say: Callable[[str], None]) -> None:
        self._window, self._wanted, self._say = window, pauses, say
        self._random = random.Random(seed)
        self.record = Record()
        self._seen: tuple[int, str] = (0, "")

    @property
    def done(self) -> bool:
        return len(self.record.pauses) >= self._wanted

    def type(self, passage: Passage, name: str) -> None:
        """Type one passage to its end."""
        window, text = self._window, passage.typed
        window.open(name, passage)
        place, self._seen = 0, (0, "")
        taken = 0  # characters that Tab put in, of the keys to come
        for whole in key_presses(text):
            key, taken = whole[taken:], max(0, taken - len(whole))
            if not key:
                continue
            if self._random.random() < MISTAKE and key.isalpha():
                self._press(partial(window.type, "q" if key != "q" else "x"), text, None)
                self._press(window.erase, text, None)
            place += len(key)
            self._press(partial(window.type, key), text, place)
            if self._rests(key) and not self.done:
                taken = self._rest(passage, place)
                place += taken
        saved = window.save()
        if saved != passage.before + text + (passage.after or "\n"):
            self.record.wrong.append(f"{passage.path}: {saved[len(passage.before) :][: len(text) + 80]!r}")

    def _rests(self, key: str) -> bool:
        share = AT_A_LINE if key[0] == "\n" else BEHIND_A_SIGN if key[-1] in SIGNS else ELSEWHERE
        return self._random.random() < share

    def _press(self, press: Callable[[], None], text: str, place: int | None) -> None:
        """Press a key, then look at the screen until the next one is due; a wrong key may change all (``None``)."""
        due = time.monotonic() + self._random.lognormvariate(0, KEY_SIGMA) * KEY_MS / 1e3
        press()
        self.record.keys += 1
        if place is None:
            self._seen = (self._seen[0], "")
        time.sleep(SETTLED_S)
        while place is not None:
            self._look(text, place)
            if time.monotonic() + LOOK_S > due:
                break
            time.sleep(LOOK_S)
        time.sleep(max(0.0, due - time.monotonic()))

    def _look(self, text: str, place: int) -> str:
        shown = self._window.ghost()
        before, was = self._seen
        if is_flicker(was, text[before:place], shown):
            self.record.flicker.append((was, text[before:place], shown))
        self._seen = (place, shown)
        return shown

    def _rest(self, passage: Passage, place: int) -> int:
        """Rest, note what is shown, and take it where it is right: how many characters were put in."""
        began, came, last = time.monotonic(), None, ""
        while time.monotonic() - began < REST_S:
            shown = self._look(passage.typed, place)
            if shown != last:
                came, last = time.monotonic() - began, shown
            time.sleep(LOOK_S)
        wanted = (passage.typed + passage.after)[place:]
        found = verdict(last, wanted)
        why = "" if last.strip() else self._window.why()
        after = None if came is None or not last.strip() else came * 1e3
        line = passage.row + passage.typed.count("\n", 0, place) + 1
        typed = (passage.before + passage.typed[:place])[-80:]
        self.record.pauses.append(Pause(str(passage.path), line, typed, wanted[:200], last, found, after, why))
        self._say(f"{len(self.record.pauses)}/{self._wanted} pauses, {self.record.keys} keys")
        left = passage.typed[place:]
        # A text that has just become another one would be put in instead.
        if found == "good" and left.startswith(last) and len(last) > 1 and self._window.ghost() == last:
            if not self._window.accept(last):
                return 0
            self.record.saved += len(last)
            self._seen = (place + len(last), "")
            return len(last)
        return 0
