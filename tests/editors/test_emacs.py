"""The recipes of docs/editors.md for Emacs, in a real Emacs with the real server and the embedded models.

``$CODESPEC_EMACS`` names another Emacs than the one on the path.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.editors.common import LOOPS
from tests.editors.terminal import Terminal, environment, need, program, recipe, running

EMACS = program("CODESPEC_EMACS", "emacs")
CLIENT = program("CODESPEC_EMACSCLIENT", "emacsclient")


STARTED = """(seq-some (lambda (each) (and (eq (lsp--workspace-server-id each) 'codespec)
                               (eq (lsp--workspace-status each) 'initialized)))
                (lsp-workspaces))"""


class Emacs:
    """An Emacs with one file open: keys go to its terminal, questions through emacsclient."""

    def __init__(self, terminal: Terminal, socket: Path, path: Path) -> None:
        self._terminal = terminal
        self._socket = socket
        self.path = path

    def type(self, keys: str) -> None:
        self._terminal.type(keys)

    def written(self) -> str:
        return self._terminal.written()

    def wait(self, condition, timeout: float = 90.0) -> None:
        self._terminal.wait(condition, timeout)

    def repeat(self, keys: str, condition: Callable[[], object]) -> None:
        self._terminal.repeat(keys, condition)

    def ask(self, expression: str) -> Any:
        """What an expression is in the buffer of the file; None as long as Emacs does not answer."""
        code = f"(with-current-buffer (get-file-buffer {json.dumps(str(self.path))}) (json-encode {expression}))"
        command = [CLIENT, "-s", str(self._socket), "--eval", code]
        result = subprocess.run(command, capture_output=True, text=True, timeout=60)
        return json.loads(json.loads(result.stdout)) if result.returncode == 0 else None

    def buffer(self) -> str:
        return str(self.ask("(buffer-substring-no-properties (point-min) (point-max))"))

    def saved(self) -> str:
        self.type("\x18\x13")  # C-x C-s
        self.wait(lambda: self.ask("(if (buffer-modified-p) 1 0)") == 0)
        return self.path.read_text("utf-8")


@contextmanager
def editing(folder: Path, init: str) -> Iterator[Emacs]:
    env = environment(folder)
    path = folder / "project" / "example.py"
    path.parent.mkdir(exist_ok=True)
    path.write_text(LOOPS)
    (folder / "home" / ".emacs.d").mkdir()
    (folder / "home" / ".emacs.d" / "init.el").write_text(init)
    # Emacs 28 compiles what it loads for the first time, in the background, and opens a window for warnings.
    early = "(setq native-comp-deferred-compilation nil native-comp-async-report-warnings-errors nil)"
    (folder / "home" / ".emacs.d" / "early-init.el").write_text(early)
    socket = folder / "sockets" / "socket"
    socket.parent.mkdir(mode=0o700)
    serve = f'(setq server-socket-dir {json.dumps(str(socket.parent))} server-name "socket" inhibit-startup-screen t)'
    command = [EMACS, "-nw", "--eval", serve, "--funcall", "server-start", "+5:10", str(path)]
    with running(command, path.parent, env) as terminal:
        emacs = Emacs(terminal, socket, path)
        emacs.wait(lambda: socket.exists() and emacs.ask("1") == 1)
        yield emacs


def complete_at_point(emacs: Emacs) -> None:
    emacs.type("(")
    emacs.wait(lambda: emacs.buffer() == LOOPS[:-1] + "(\n")
    emacs.type("\x1b\t")
    emacs.repeat("\x1b\t", lambda: emacs.buffer() != LOOPS[:-1] + "(\n")


def accept_ghost_text(emacs: Emacs, shown: str) -> None:
    emacs.type("(")
    emacs.repeat("\x7f(", lambda: emacs.ask(f"(if {shown} 1 0)") == 1)
    emacs.type("\t")
    emacs.wait(lambda: emacs.buffer() != LOOPS[:-1] + "(\n")


def check_completed(emacs: Emacs) -> None:
    text = emacs.buffer()
    assert text.startswith(LOOPS[:-1] + "(")
    assert len(text.rstrip()) > len(LOOPS)
    assert emacs.saved() == text


def test_eglot(tmp_path):
    need_emacs("eglot")
    with editing(tmp_path, recipe("Emacs", "elisp")) as emacs:
        emacs.wait(lambda: emacs.ask("(if (eglot-current-server) 1 0)") == 1)
        if has("completion-preview"):
            accept_ghost_text(emacs, "completion-preview-active-mode")
        else:
            complete_at_point(emacs)
        check_completed(emacs)


def test_lsp_mode(tmp_path):
    need_emacs("lsp-mode")
    (tmp_path / "project" / ".git").mkdir(parents=True)
    with editing(tmp_path, recipe("Emacs", "elisp", 1)) as emacs:
        emacs.wait(lambda: "Do not ask again" in emacs.written())
        emacs.type("i")  # import the project
        emacs.wait(lambda: emacs.ask(f"(if {STARTED} 1 0)") == 1)
        if has("lsp-inline-completion"):
            accept_ghost_text(emacs, "(overlayp lsp-inline-completion--overlay)")
        else:
            complete_at_point(emacs)
        check_completed(emacs)


def need_emacs(package: str) -> None:
    need(
        **{
            "Emacs (apt-get install emacs-nox)": EMACS,
            "emacsclient (part of Emacs)": CLIENT,
            f"{package} (apt-get install elpa-{package})": has(package),
        }
    )


def has(feature: str) -> bool:
    """Whether Emacs has a library, from itself or from a package."""
    if not EMACS:
        return False
    command = [
        EMACS,
        "--batch",
        "--eval",
        f"(progn (package-initialize) (kill-emacs (if (locate-library {json.dumps(feature)}) 0 1)))",
    ]
    return subprocess.run(command, capture_output=True, timeout=60).returncode == 0
