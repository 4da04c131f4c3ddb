"""The Neovim plugin in a real Neovim: what is on the screen, what is in the buffer, what is saved.

``$CODESPEC_NVIM`` names another Neovim than the one on the path, ``$CODESPEC_PYTHON`` another Python for the server.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
NVIM = os.environ.get("CODESPEC_NVIM") or shutil.which("nvim")
PYTHON = os.environ.get("CODESPEC_PYTHON", sys.executable)
REAL = [PYTHON, "-m", "codespec", "serve"]
STUB = [PYTHON, str(ROOT / "tests" / "lsp" / "stub_server.py")]
"""Completes a line that ends in ``two lines`` with two, ``nothing`` with nothing, others with ``<its end|20>``."""

MISSING = [
    what
    for what, there in (
        ("Neovim (a program `nvim`, or $CODESPEC_NVIM)", NVIM is not None),
        ("pynvim (pip install pynvim)", importlib.util.find_spec("pynvim") is not None),
        ("the embedded models", len(list((ROOT / "codespec" / "data").glob("*.gguf"))) >= 2),
    )
    if not there
]

pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"missing: {', '.join(MISSING)}")

SCREEN = """
local rows = {}
vim.cmd('redraw')
for row = 1, vim.o.lines do
  local cells = {}
  for column = 1, vim.o.columns do
    cells[column] = vim.fn.screenstring(row, column)
  end
  rows[row] = table.concat(cells):gsub('%s+$', '')
end
return rows
"""


class Editor:
    """A Neovim with one file open."""

    def __init__(self, nvim: Any, path: Path) -> None:
        self._nvim = nvim
        self.path = path

    def type(self, keys: str) -> None:
        self._nvim.input(keys)

    def screen(self) -> list[str]:
        return self._nvim.exec_lua(SCREEN)

    def buffer(self) -> list[str]:
        return self._nvim.current.buffer[:]

    def messages(self) -> str:
        return self._nvim.command_output("messages")

    def saved(self) -> list[str]:
        self.type("<Esc>:write<CR>")
        self.wait(lambda: not self._nvim.current.buffer.options["modified"])
        return self.path.read_text().splitlines()

    def wait(self, condition: Callable[[], object], timeout: float = 30.0) -> None:
        end = time.monotonic() + timeout
        while not condition():
            assert time.monotonic() < end, "\n".join(["not in time, on the screen is", *self.screen()])
            time.sleep(0.02)

    def wait_for_ghost_text(self) -> None:
        """Wait until the screen shows more than the buffer holds."""
        self.wait(lambda: self.screen()[: len(self.buffer())] != self.buffer())


def write_init(folder: Path, server: list[str]) -> Path:
    init = folder / "init.lua"
    command = ", ".join(map(json.dumps, server))
    init.write_text(
        f"vim.opt.runtimepath:prepend({json.dumps(str(ROOT / 'editors' / 'neovim'))})\n"
        "vim.opt.shortmess:append('I')\n"
        "vim.opt.fillchars = { eob = ' ' }\n"
        f"require('codespec').setup{{ cmd = {{ {command} }}, settings = {{ max_tokens = 20 }} }}\n"
    )
    return init


@contextlib.contextmanager
def editing(folder: Path, server: list[str], text: str) -> Iterator[Editor]:
    import pynvim

    path = folder / "example.py"
    path.write_text(text)
    argv = [NVIM, "--embed", "--clean", "-n", "-u", str(write_init(folder, server)), str(path)]
    nvim = pynvim.attach("child", argv=argv)
    # Neovim answers nothing while it asks the user something; a test must fail then, not wait.
    watchdog = threading.Timer(90, os.kill, (nvim.funcs.getpid(), signal.SIGKILL))
    watchdog.start()
    try:
        nvim.ui_attach(100, 24, rgb=True, ext_linegrid=True)
        editor = Editor(nvim, path)
        yield editor
        assert "rror" not in editor.messages(), editor.messages()
    finally:
        with contextlib.suppress(EOFError, OSError):  # it ends without an answer
            nvim.command("qall!")
        watchdog.cancel()
        nvim.close()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty home, and the codespec of this checkout."""
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "CODESPEC_DATA"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("CODESPEC_OFFER_AFTER_S", "1e9")
    return tmp_path


LOOPS = "for i in range(10):\n    print(i)\n\nfor j in range(10):\n    print\n"


def test_the_embedded_models_complete(folder):
    with editing(folder, REAL, LOOPS) as editor:
        editor.type("GA(")
        editor.wait_for_ghost_text()
        assert editor.buffer()[4] == "    print("
        shown = editor.screen()[4]
        assert shown.startswith("    print(")
        editor.type("<Tab>")
        editor.wait(lambda: editor.buffer()[4].rstrip() == shown)
        lines = editor.buffer()
        assert lines[:4] == LOOPS.splitlines()[:4]
        assert editor.saved() == lines
        editor.type("u")
        editor.wait(lambda: editor.buffer()[4:] == ["    print("])


def test_two_lines(folder):
    with editing(folder, STUB, "two\nlast\n") as editor:
        editor.type("A lines")
        editor.wait_for_ghost_text()
        editor.wait(lambda: editor.screen()[:4] == ["two linesone", "two", "", "last"])
        assert editor.buffer() == ["two lines", "last"]
        editor.type("<Tab>!")
        editor.wait(lambda: editor.buffer() == ["two linesone", "two", "!", "last"])
        assert editor.saved() == ["two linesone", "two", "!", "last"]


def test_in_the_middle_of_a_line(folder):
    with editing(folder, STUB, "é = f(x)\n") as editor:
        editor.type("$iyz")
        editor.wait(lambda: editor.screen()[0] == "é = f(xyz<xyz|20>)")
        editor.type("<Tab>")
        editor.wait(lambda: editor.buffer() == ["é = f(xyz<xyz|20>)"])
        editor.type("!")
        editor.wait(lambda: editor.buffer() == ["é = f(xyz<xyz|20>!)"])


def test_dismissed_then_tab_is_a_tab(folder):
    with editing(folder, STUB, "abc\n") as editor:
        editor.type("Ad")
        editor.wait(lambda: editor.screen()[0] == "abcd<bcd|20>")
        editor.type("<C-]>")
        editor.wait(lambda: editor.screen()[0] == "abcd")
        editor.type("<Tab>e")
        editor.wait(lambda: editor.buffer() == ["abcd    e"])
        editor.wait(lambda: editor.screen()[0] == "abcd    e<  e|20>")
        editor.type("<Esc>")
        editor.wait(lambda: editor.screen()[0] == "abcd    e")
        assert editor.saved() == ["abcd    e"]


def test_a_program_that_does_not_exist(folder):
    init = write_init(folder, ["no-such-codespec"])
    command = [NVIM, "--headless", "--clean", "-n", "-u", str(init), "-c", "qall!"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert "codespec: there is no program no-such-codespec; install it, or" in result.stderr
