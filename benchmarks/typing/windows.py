"""The editors to type in, driven by what the editors' tests drive them with: keys in, what is on the screen out."""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.infill.infill import new_user
from benchmarks.typing.passages import Passage
from benchmarks.typing.typist import Window
from codespec.protocols import CodespecError

EDITORS = ("vscode", "neovim")
_HELP = "`make test-editors` installs all of it"

LONGEST_S = 4 * 3600.0
"""After which an editor is ended."""
# Indentation is typed by the typist; an editor that puts in its own, or closes brackets, would type another text.
_NEOVIM = "vim.cmd('filetype plugin indent off')\nvim.o.autoindent = false\nvim.o.formatoptions = ''"
_VSCODE = {
    "editor.autoIndent": "none",
    "editor.autoClosingBrackets": "never",
    "editor.autoClosingQuotes": "never",
    "editor.autoSurround": "never",
    "editor.formatOnType": False,
}


@contextlib.contextmanager
def window(editor: str, settings: Mapping[str, Any], pictures: Path) -> Iterator[Window]:
    """An editor that has just been installed, with codespec in it.

    Args:
        settings: of codespec, as tables.
        pictures: a folder for what was on the screen when something failed.

    Raises:
        CodespecError: it is not there.
    """
    with (_vscode if editor == "vscode" else _neovim)(settings, pictures) as found:
        yield found


@contextlib.contextmanager
def _neovim(settings: Mapping[str, Any], _pictures: Path) -> Iterator[Window]:
    neovim_editor: Any = import_module("tests.editors.neovim_editor")
    kinds = neovim_editor.kinds()
    if not kinds:
        raise CodespecError(f"missing: {', '.join(neovim_editor.MISSING)}; {_HELP}")
    kind = max((each for each in kinds if not each.native), key=lambda each: each.version)
    options = f"settings = vim.json.decode({json.dumps(json.dumps(settings))})"
    with tempfile.TemporaryDirectory(prefix="codespec-typing-") as home, new_user():
        opened = neovim_editor.editing(
            kind, Path(home), _SERVER, "", "empty.py", options, within_s=LONGEST_S, before=_NEOVIM
        )
        with opened as editor:
            editor.wait_until_ready()
            yield Neovim(editor, Path(home))


_SERVER = [sys.executable, "-m", "codespec", "serve"]


def _dotted(settings: Mapping[str, Any], before: str = "codespec.") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in settings.items():
        found |= _dotted(value, f"{before}{name}.") if isinstance(value, Mapping) else {before + name: value}
    return found


class Neovim:
    """Neovim, as a ``Window``."""

    def __init__(self, editor: Any, folder: Path) -> None:
        self._editor, self._folder = editor, folder

    def open(self, name: str, passage: Passage) -> None:
        """As ``Window.open``."""
        editor = self._editor
        editor.path = self._folder / name
        editor.path.write_bytes((passage.before + (passage.after or "\n")).encode())
        editor.command(f"edit {editor.path}")
        editor.nvim.current.window.cursor = (passage.row + 1, 0)
        editor.type("i")
        editor.wait(lambda: editor.mode() == "i")

    def type(self, text: str) -> None:
        """As ``Window.type``; a tab is put in, not pressed: pressed it would accept."""
        self._editor.write(text.replace("\t", "\x16\t"))

    def erase(self) -> None:
        """As ``Window.erase``."""
        self._editor.type("<BS>")

    def accept(self, text: str) -> bool:
        """As ``Window.accept``."""
        editor = self._editor
        before, (row, column) = editor.buffer(), editor.cursor()
        line = before[row - 1].encode()
        wanted = "\n".join([*before[: row - 1], line[:column].decode() + text + line[column:].decode(), *before[row:]])
        editor.type("<Tab>")
        editor.wait(lambda: editor.buffer() != before)
        if "\n".join(editor.buffer()) == wanted:
            return True
        editor.lua("local lines, row, column = ...\n"
                   "vim.api.nvim_buf_set_lines(0, 0, -1, true, lines)\n"
                   "vim.api.nvim_win_set_cursor(0, { row, column })", before, row, column)  # fmt: skip
        return False

    def ghost(self) -> str:
        """As ``Window.ghost``."""
        return str(self._editor.ghost())

    def why(self) -> str:
        """As ``Window.why``."""
        return str(self._editor.statusline())

    def save(self) -> str:
        """As ``Window.save``."""
        self._editor.saved()
        self._editor.command("bwipeout")
        return str(self._editor.path.read_bytes().decode())


@contextlib.contextmanager
def _vscode(settings: Mapping[str, Any], pictures: Path) -> Iterator[Window]:
    conftest: Any = import_module("tests.editors.conftest")
    code_server: Any = import_module("tests.editors.code_server")
    vscode_window: Any = import_module("tests.editors.vscode_window")
    if missing := conftest.missing():
        raise CodespecError(f"missing: {', '.join(missing)}; {_HELP}")
    with tempfile.TemporaryDirectory(prefix="codespec-typing-") as home, contextlib.ExitStack() as stack:
        code_server.install_extension(code_server.VSIX[-1], Path(home))
        server = code_server.CodeServer(Path(home), {"codespec.command": _SERVER, **_VSCODE, **_dotted(settings)})
        stack.callback(server.close)
        chromium = conftest.Chromium()
        stack.callback(chromium.close)
        context = chromium.get().new_context(viewport={"width": 1000, "height": 620})
        stack.callback(context.close)
        editor = vscode_window.Editor(context.new_page(), server, pictures)
        editor.wait_until_ready()
        yield VisualStudioCode(editor)


class VisualStudioCode:
    """VS Code, as a ``Window``."""

    def __init__(self, editor: Any) -> None:
        self._editor = editor
        self._path = Path()

    def open(self, name: str, passage: Passage) -> None:
        """As ``Window.open``."""
        editor = self._editor
        self._path = editor.open(name, passage.before + (passage.after or "\n"))
        editor.press("Control+G")
        editor.page.locator(".quick-input-widget input").first.wait_for()
        editor.page.keyboard.insert_text(str(passage.row + 1))
        editor.press("Enter")
        place = editor.page.locator(".statusbar-item[id='status.editor.selection']")
        editor.wait(lambda: f"Ln {passage.row + 1}," in place.inner_text(), f"the cursor in line {passage.row + 1}")

    def type(self, text: str) -> None:
        """As ``Window.type``; white space at once, as the editor indents."""
        keyboard = self._editor.page.keyboard
        if text[0] == "\n":
            keyboard.press("Enter")
            text = text[1:]
        if text:
            keyboard.insert_text(text) if (text.isspace() and len(text) > 1) or "\t" in text else keyboard.type(text)

    def erase(self) -> None:
        """As ``Window.erase``."""
        self._editor.press("Backspace")

    def accept(self, text: str) -> bool:
        """As ``Window.accept``, but what came is not looked at: the document has more lines than the screen."""
        self._editor.accept()
        return True

    def ghost(self) -> str:
        """As ``Window.ghost``."""
        return str(self._editor.ghost())

    def why(self) -> str:
        """As ``Window.why``."""
        return str(self._editor.status())

    def save(self) -> str:
        """As ``Window.save``."""
        text = self._editor.save(self._path)
        self._editor.close_all()
        return str(text)
