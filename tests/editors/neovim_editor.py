"""A real Neovim with the plugin and a real server, driven as a person would: keys in, what is on the screen out."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.editors.common import ROOT
from tests.editors.neovim_screen import GHOST_COLOUR, Screen

PLUGIN = ROOT / "editors" / "neovim"

WITHIN_S = float(os.environ.get("CODESPEC_WAIT_S", "90"))
"""How long anything may take, on a machine that does much else."""

MISSING = [
    what
    for what, there in (
        ("Neovim (a program nvim, or $CODESPEC_NVIM)", bool(os.environ.get("CODESPEC_NVIM") or shutil.which("nvim"))),
        ("pynvim (pip install pynvim)", importlib.util.find_spec("pynvim") is not None),
        ("the embedded models", len(list((ROOT / "codespec" / "data").glob("*.gguf"))) >= 2),
    )
    if not there
]

STATUS = "return vim.inspect({ pcall(function() return require('codespec').status() end) })"

CACHE = Path(os.environ.get("CODESPEC_EDITORS") or ROOT / ".venv" / "editors")

NATIVE_FROM = (0, 12)


def programs() -> list[str]:
    """The Neovims to test: those in ``$CODESPEC_NVIM``, separated as in ``$PATH``, or the one on the path and the one
    that install.sh has unpacked."""
    named = os.environ.get("CODESPEC_NVIM", "").split(os.pathsep)
    return list(filter(None, named)) or list(filter(None, map(shutil.which, ("nvim", str(CACHE / "neovim" / "nvim")))))


def version(program: str) -> tuple[int, ...]:
    """Of a Neovim."""
    first = subprocess.run([program, "--version"], capture_output=True, text=True, check=True, timeout=60).stdout
    return tuple(int(part.split("-")[0]) for part in first.split()[1].lstrip("v").split("."))


class Editor:
    """A Neovim with one file open."""

    def __init__(self, nvim: Any, path: Path) -> None:
        self._nvim = nvim
        self.path = path
        self.screen = Screen()

    @property
    def nvim(self) -> Any:
        """Neovim, once it does not wait for more keys: until then it would not answer."""
        self.wait(lambda: not self._nvim.api.get_mode()["blocking"])
        return self._nvim

    def type(self, keys: str) -> None:
        """Press keys, written as in a mapping."""
        self._nvim.input(keys)

    def write(self, text: str) -> None:
        """Type a text."""
        self.type(text.replace("<", "<lt>").replace("\n", "<CR>"))

    def lua(self, code: str, *arguments: Any) -> Any:
        return self.nvim.exec_lua(code, *arguments)

    def command(self, command: str) -> None:
        self.nvim.command(command)

    def pump(self) -> None:
        """Take what has been drawn so far. Neovim answers this even while it asks the user something."""
        self._nvim.api.get_mode()
        drawn = self._nvim._session._pending_messages  # a public call would wait for another one
        while drawn:
            message = drawn.popleft()
            if message.name == "redraw":
                self.screen.apply(message.args)

    def rows(self) -> list[str]:
        """What the screen shows, without the lines that are empty at its end."""
        self.pump()
        rows = list(self.screen.latest.rows)
        while rows and not rows[-1]:
            rows.pop()
        return rows

    def row(self, number: int = 0) -> str:
        self.pump()
        return self.screen.latest.rows[number]

    def ghost(self) -> str:
        """The ghost text that is shown."""
        self.pump()
        return self.screen.latest.ghost

    def mode(self) -> str:
        return str(self._nvim.api.get_mode()["mode"])

    def buffer(self) -> list[str]:
        return list(self.nvim.current.buffer[:])

    def line(self) -> str:
        return str(self.nvim.current.line)

    def cursor(self) -> list[int]:
        """Row, from 1, and byte of the line."""
        return list(self.nvim.current.window.cursor)

    def messages(self) -> str:
        return str(self.nvim.command_output("messages"))

    def status(self) -> dict[str, Any]:
        return dict(self.lua("return require('codespec').status() or vim.empty_dict()"))

    def statusline(self) -> str:
        return str(self.lua("return require('codespec').statusline()"))

    def children(self) -> list[int]:
        """Processes that Neovim has started: the server."""
        return list(self.nvim.api.get_proc_children(self.nvim.funcs.getpid()))

    def saved(self) -> list[str]:
        """Leave Insert mode, save, and read the file."""
        self.type("<Esc>:write<CR>")
        self.wait(lambda: not self.nvim.current.buffer.options["modified"])
        return self.path.read_text().splitlines()

    def confirm(self) -> None:
        """Answer "Press ENTER", which comes with messages of several lines."""
        self.wait(lambda: self.mode() == "r")
        self.type("<CR>")
        self.wait(lambda: self.mode() != "r")

    def wait(self, condition: Callable[..., object], timeout: float = WITHIN_S) -> None:
        end = time.monotonic() + timeout
        while not condition():
            if time.monotonic() > end:
                mode = self._nvim.api.get_mode()
                status = "unknown" if mode["blocking"] else self._nvim.exec_lua(STATUS)
                raise AssertionError(f"not in time; {mode}; {status}; shown:\n" + "\n".join(self.rows()))
            time.sleep(0.01)

    def wait_for_ghost(self, text: str | None = None) -> str:
        """Wait for ghost text, or for this one."""
        self.wait(lambda: self.ghost() if text is None else self.ghost() == text)
        return self.screen.latest.ghost

    def wait_until_ready(self) -> None:
        """Wait until the models are loaded."""
        self.wait(lambda: self.status().get("state") in ("ready", "busy"))


def write_init(folder: Path, server: list[str], options: str = "", before: str = "", after: str = "") -> Path:
    """A configuration; ``options`` are more of `setup`, in Lua, ``before`` and ``after`` what is around that."""
    init = folder / "init.lua"
    command = ", ".join(map(json.dumps, server))
    init.write_text(
        f"vim.opt.runtimepath:prepend({json.dumps(str(PLUGIN))})\n"
        "vim.opt.shortmess:append('I')\n"
        "vim.opt.fillchars = { eob = ' ' }\n"
        f"for _, name in ipairs({{ 'CodespecGhostText', 'ComplHint' }}) do\n"
        f"  vim.api.nvim_set_hl(0, name, {{ fg = {GHOST_COLOUR} }})\n"
        "end\n"
        f"{before}\n"
        f"require('codespec').setup({{ cmd = {{ {command} }}, settings = {{ max_tokens = 20 }}, {options} }})\n"
        f"{after}\n"
    )
    return init


@dataclass(frozen=True)
class Kind:
    """A Neovim, and who draws in it: the plugin, or Neovim itself."""

    program: str
    version: tuple[int, ...]
    native: bool

    @property
    def name(self) -> str:
        number = ".".join(map(str, self.version))
        return f"{number}-native" if self.native else number


def kinds() -> list[Kind]:
    """All that are to be tested."""
    found = [] if MISSING else [(program, version(program)) for program in programs()]
    return [
        Kind(program, number, native)
        for program, number in found
        for native in ([False, True] if number >= NATIVE_FROM else [False])
    ]


@contextlib.contextmanager
def running(program: str, arguments: list[str], path: Path, within_s: float = 5 * WITHIN_S) -> Iterator[Editor]:
    """Neovim with an interface of 100 columns and 24 lines, which is ended after ``within_s``."""
    import pynvim

    nvim = pynvim.attach("child", argv=[program, "--embed", *arguments])
    # Neovim answers nothing while it asks the user something; a test must fail then, not wait.
    watchdog = threading.Timer(within_s, kill, (nvim.funcs.getpid(),))
    watchdog.daemon = True  # an interrupt may come while Neovim ends, and the tests' process waits for no timer then
    watchdog.start()
    try:
        nvim.ui_attach(100, 24, rgb=True, ext_linegrid=True)
        editor = Editor(nvim, path)
        editor.wait(lambda: editor.pump() or editor.screen.frames)
        yield editor
    finally:
        with contextlib.suppress(EOFError, OSError):  # it ends without an answer
            nvim.input("<C-c>")
            nvim.command("qall!", async_=True)
            while True:
                nvim.next_message()
        watchdog.cancel()
        close(nvim)


def close(nvim: Any) -> None:
    """Close the connection. pynvim itself closes its event loop at once, in which the pipes were still to be closed."""
    events = nvim._session.loop
    transports = [each for each in (events._transport, *events._to_close) if each is not None]

    async def pipes_are_closed() -> None:
        for each in transports:
            each.close()
        while any(getattr(each, "_pipe", None) is not None for each in transports):
            await asyncio.sleep(0.01)

    with contextlib.suppress(asyncio.TimeoutError):
        events._loop.run_until_complete(asyncio.wait_for(pipes_are_closed(), WITHIN_S))
    nvim.close()


def kill(process: int) -> None:
    """End a process as a crash does."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


@contextlib.contextmanager
def editing(
    kind: Kind,
    folder: Path,
    server: list[str],
    text: str,
    name: str = "example.py",
    options: str = "",
    within_s: float = 5 * WITHIN_S,
    **init: str,
) -> Iterator[Editor]:
    """Neovim with the plugin and a file of this text; nothing that it says may be an error of the plugin."""
    path = folder / name
    path.write_text(text)
    options = f"native = {json.dumps(kind.native)}, {options}"
    configuration = write_init(folder, server, options, **init)
    with running(kind.program, ["--clean", "-n", "-u", str(configuration), str(path)], path, within_s) as editor:
        yield editor
        said = editor.messages()
        assert not [error for error in ("E5108", "stack traceback", "Error detected", "deprecated") if error in said], (
            said
        )
