"""The recipe of docs/editors.md for Vim, in a real Vim with the real server and the embedded models.

``$CODESPEC_VIM`` names another Vim than the one on the path.
"""

from __future__ import annotations

import json
import re
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.editors.common import LOOPS, ROOT, STUB
from tests.editors.terminal import Terminal, environment, need, program, recipe, running

VIM = program("CODESPEC_VIM", "vim")
SCREEN = (
    "map(range(1, &lines), {_, row -> join(map(range(1, &columns), {_, column -> screenstring(row, column)}), '')})"
)


INIT = recipe("Vim", "vim").replace("/path/to/codespec", str(ROOT))
STUBBED = f"""
let g:codespec_cmd = {json.dumps(STUB)}
let g:codespec_settings = {{'max_tokens': 20}}
"""
"""A server that completes a line that ends in ``two lines`` with two, others with ``<its end|20>``."""


def _can(condition: str) -> bool:
    if not VIM:
        return False
    command = [VIM, "-es", "--clean", "-c", f"if {condition} | quit! | else | cquit! | endif"]
    return subprocess.run(command, capture_output=True, timeout=60).returncode == 0


VIM_9 = _can("has('patch-9.0.0185') && has('job') && has('textprop')")
NEEDED = "Vim 9.0.0185 or later with +job and +textprop (apt-get install vim-nox)"


class Vim:
    """A Vim with one file open: keys go to its terminal, questions through a channel that it has opened to us."""

    def __init__(self, terminal: Terminal, listening: socket.socket, path: Path) -> None:
        self._terminal = terminal
        listening.settimeout(60)
        self._socket = listening.accept()[0]
        self._channel = self._socket.makefile("rw", encoding="utf-8")
        self.path = path

    def type(self, keys: str) -> None:
        self._terminal.type(keys)

    def wait(self, condition, timeout: float = 90.0) -> None:
        self._terminal.wait(condition, timeout)

    def ask(self, expression: str) -> Any:
        self._channel.write(json.dumps(["expr", expression, -1]) + "\n")
        self._channel.flush()
        return json.loads(self._channel.readline())[1]

    def buffer(self) -> list[str]:
        return self.ask("getline(1, '$')")

    def screen(self) -> list[str]:
        """What a person sees, without the last two lines."""
        self._channel.write(json.dumps(["redraw", ""]) + "\n")
        return [line.rstrip() for line in self.ask(SCREEN)][:-2]

    def messages(self) -> str:
        return self.ask("execute('messages')")

    def close(self) -> None:
        self._channel.close()
        self._socket.close()


@contextmanager
def editing(folder: Path, init: str, text: str) -> Iterator[Vim]:
    env = environment(folder)
    path = folder / "my project, 1" / "example.py"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    (folder / "home" / ".vimrc").write_text(init)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        command = [VIM, "-n", "--cmd", f"let g:test = ch_open('127.0.0.1:{port}')", str(path)]
        with running(command, path.parent, env) as terminal:
            vim = Vim(terminal, listening, path)
            try:
                yield vim
            finally:
                vim.close()


def test_the_embedded_models_complete(tmp_path):
    need(**{NEEDED: VIM_9})
    with editing(tmp_path, INIT, LOOPS) as vim:
        vim.type("GA(")
        vim.wait(lambda: vim.buffer()[4] == "    print(")
        vim.wait(lambda: vim.screen()[4].startswith("    print(") and vim.screen()[4] != "    print(", 120)
        assert vim.buffer() == (LOOPS[:-1] + "(").splitlines()
        shown = [line for line in vim.screen() if line != "~"]
        assert vim.ask("screenattr(5, 11)") != vim.ask("screenattr(5, 9)"), "ghost text looks like code"
        vim.type("\t")
        vim.wait(lambda: vim.buffer() != (LOOPS[:-1] + "(").splitlines())
        lines = vim.buffer()
        assert [line.rstrip() for line in lines] == shown
        vim.type("\x1b:write\r")
        vim.wait(lambda: vim.ask("&modified") == 0)
        assert vim.path.read_text().splitlines() == lines
        assert not re.search(r"\bE\d+:", vim.messages()), vim.messages()


def test_changes_reach_the_server(tmp_path):
    """The server completes a line with what it ends in, as far as it knows."""
    need(**{NEEDED: VIM_9})
    with editing(tmp_path, STUBBED + INIT, "one\ntwo\nthree\nfour\n") as vim:
        vim.type("A!")
        vim.wait(lambda: vim.screen()[0] == "one!<ne!|20>")
        vim.type("\t")
        vim.wait(lambda: vim.buffer()[0] == "one!<ne!|20>")
        vim.type("\x1bu")
        vim.wait(lambda: vim.buffer()[0] == "one!")
        vim.type(":2,3delete\r:%s/o/oo/g\rggyyp")
        vim.wait(lambda: vim.buffer() == ["oone!", "oone!", "foour"])
        vim.type("GAé")
        vim.wait(lambda: vim.screen()[2] == "fouré<uré|20>".replace("fou", "foou"))
        vim.type("\x1b:edit!\rGAx")
        vim.wait(lambda: vim.screen()[3] == "fourx<urx|20>")
        vim.type("\x1d")
        vim.wait(lambda: vim.screen()[3] == "fourx")
        vim.type("\ty")
        vim.wait(lambda: vim.buffer()[3].startswith("fourx") and vim.buffer()[3].endswith(("\ty", " y")))


def test_two_lines(tmp_path):
    need(**{NEEDED: VIM_9})
    with editing(tmp_path, STUBBED + INIT, "    two\nlast\n") as vim:
        vim.type("A lines")
        vim.wait(lambda: vim.screen()[:4] == ["    two linesone", "two", "", "last"])
        vim.type("\t!")
        vim.wait(lambda: vim.buffer() == ["    two linesone", "two", "!", "last"])


def test_a_server_that_dies(tmp_path):
    need(**{NEEDED: VIM_9})
    with editing(tmp_path, STUBBED + INIT, "one\n") as vim:
        vim.type("A!")
        vim.wait(lambda: vim.screen()[0] == "one!<ne!|20>")
        vim.ask("job_stop(job_info()[0], 'kill')")
        vim.wait(lambda: ":CodespecRestart starts it again" in vim.messages())
        vim.type("#")
        vim.wait(lambda: vim.buffer() == ["one!#"])
        vim.type("\x1b:CodespecRestart\rA?")
        vim.wait(lambda: vim.screen()[0] == "one!#?<!#?|20>")
        assert not re.search(r"\bE\d+:", vim.messages()), vim.messages()


def test_a_program_that_does_not_exist(tmp_path):
    need(**{NEEDED: VIM_9})
    with editing(tmp_path, "let g:codespec_cmd = ['no-such-codespec']\n" + INIT, "one\n") as vim:
        vim.wait(lambda: "codespec: there is no program no-such-codespec; install it, or" in vim.messages())
        vim.type("\rA\t!")
        vim.wait(lambda: vim.buffer()[0].startswith("one") and vim.buffer()[0].endswith("!"))
