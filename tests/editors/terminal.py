"""Editors in a terminal of their own, set up as docs/editors.md says."""

from __future__ import annotations

import contextlib
import os
import re
import select
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.editors.common import PYTHON, ROOT

try:
    import fcntl
    import pty
    import struct
    import termios
except ImportError:  # Windows
    pty = None  # type: ignore[assignment]


def need(**there: object) -> None:
    """Skip a test, or fail where ``$CI`` is set, unless all that it needs is there."""
    models = len(list((ROOT / "codespec" / "data").glob("*.gguf")))
    there = {**there, "the embedded models": models >= 2, "pseudo-terminals (not on Windows)": pty}
    missing = ", ".join(what for what, found in there.items() if not found)
    if missing:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"missing: {missing}")


def recipe(heading: str, language: str, index: int = 0) -> str:
    """A block of code of docs/editors.md: the first (or another) in a language, under a heading."""
    text = (ROOT / "docs" / "editors.md").read_text("utf-8")
    section = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    assert section is not None, f"docs/editors.md has no section {heading}"
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", section[1], re.DOTALL | re.MULTILINE)
    assert len(blocks) > index, f"docs/editors.md has fewer blocks of {language} under {heading}"
    return str(blocks[index])


def environment(folder: Path) -> dict[str, str]:
    """That of somebody with an empty home and the codespec of this checkout on the path."""
    program = folder / "bin" / "codespec"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{PYTHON}" -m codespec "$@"\n')
    program.chmod(0o755)
    names = ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME")
    homes = {name: str(folder / "home" / name.lower()) for name in names} | {"HOME": str(folder / "home")}
    (folder / "home").mkdir()
    return {
        **os.environ,
        **homes,
        "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "CODESPEC_OFFER_AFTER_S": "1e9",
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
    }


class Terminal:
    """A program in a terminal of 100 columns and 24 rows."""

    def __init__(self, command: list[str], cwd: Path, env: dict[str, str]) -> None:
        self._keyboard, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
        self._process = subprocess.Popen(
            command,
            cwd=cwd,
            env=env,
            stdin=other,
            stdout=other,
            stderr=other,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # Emacs opens /dev/tty
        )
        os.close(other)
        self._output = b""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        """Programs wait once nobody reads what they write."""
        with contextlib.suppress(OSError):  # the other side is closed
            while self._process.poll() is None:
                if select.select([self._keyboard], [], [], 0.2)[0]:
                    self._output = (self._output + os.read(self._keyboard, 65536))[-100_000:]

    def type(self, keys: str) -> None:
        os.write(self._keyboard, keys.encode())

    def wait(self, condition: Callable[..., object], timeout: float = 90.0) -> None:
        end = time.monotonic() + timeout
        while not condition():
            assert self._process.poll() is None, f"the editor has ended:\n{self.written()[-3000:]}"
            assert time.monotonic() < end, f"not in time; the latest that it wrote:\n{self.written()[-3000:]}"
            time.sleep(0.05)

    def repeat(self, keys: str, condition: Callable[..., object]) -> None:
        """Wait for something, and press keys every 20 seconds: an editor may give up waiting while the models load."""
        pressed = time.monotonic()

        def holds() -> object:
            nonlocal pressed
            if time.monotonic() > pressed + 20:
                pressed = time.monotonic()
                self.type(keys)
            return condition()

        self.wait(holds, 120)

    def written(self) -> str:
        """The latest that it wrote, without control sequences."""
        text = self._output.decode("utf-8", "replace")
        return re.sub(r"\x1b(\[[0-9;?>=]*[a-zA-Z]|[()][A-Z0-9]|[=>]|\][^\x07]*\x07)", "", text)

    def close(self) -> None:
        """End it, and what it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGTERM)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._reader.join(5)
        os.close(self._keyboard)


@contextlib.contextmanager
def running(command: list[str], cwd: Path, env: dict[str, str]) -> Iterator[Terminal]:
    terminal = Terminal(command, cwd, env)
    try:
        yield terminal
    finally:
        terminal.close()


def program(variable: str, *names: str) -> str:
    """An editor: what the variable names first, or the first of these programs that is on the path; empty where
    none is."""
    named = os.environ.get(variable, "").split(os.pathsep)[0]
    return next(filter(None, map(shutil.which, [named] if named else names)), "")
