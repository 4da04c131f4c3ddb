"""The Neovim plugin in a real Neovim: what is on the screen, then what is in the buffer, then what is saved.

``$CODESPEC_NVIM`` names the Neovims to test, separated as in ``$PATH``, instead of the one on the path;
``$CODESPEC_PYTHON`` another Python for the server. With a Neovim of 0.12 or newer every test runs twice: with the
plugin's own ghost text, and with Neovim's own inline completion.
"""

from __future__ import annotations

import copy
import json
import os
import re
import signal
import subprocess

import pytest

from tests.editors.common import CALLS, PYTHON, REAL, ROOT, STUB, WHY_NOTHING
from tests.editors.neovim_editor import editing
from tests.editors.neovim_fixtures import folder, kind
from tests.editors.neovim_picture import animate, draw

__all__ = ["folder", "kind"]


def stub_says(folder, text):
    """Whether the stand-in has said something on standard error, which Neovim keeps in a log."""
    return any(text in log.read_text(errors="replace") for log in folder.rglob("lsp.log"))


# The real server with the embedded models. What they will say cannot be known: what is shown is what counts.


def test_the_embedded_models_complete(kind, folder):
    with editing(kind, folder, REAL, CALLS) as editor:
        editor.type("GA(")
        ghost = editor.wait_for_ghost()
        assert editor.buffer()[4] == "    last = total("
        assert editor.rows()[4] == f"    last = total({ghost.splitlines()[0]}"
        editor.type("<Tab>")
        editor.wait(lambda: editor.buffer()[4] != "    last = total(")
        lines = editor.buffer()
        assert "\n".join(lines).rstrip() == CALLS.rstrip() + "(" + ghost
        assert editor.saved() == lines
        editor.type("u")
        editor.wait(lambda: editor.buffer()[4:] == ["    last = total("])


SHAPES = """class Point:
    def __init__(self, x, y):
        self.x = x
        self.y = y

    def __repr__(self):
        return f"Point({self.x}, {self.y})"

    def """
TYPED = ("__eq__(self, other):<CR>", "<CR><CR><C-d>def __add__(self, other):<CR>")
"""Into it, with a completion after each."""


@pytest.mark.skipif(
    "CODESPEC_PICTURES" not in os.environ, reason="makes docs/neovim.svg where $CODESPEC_PICTURES is set"
)
def test_picture(kind, folder, smollm2):
    """Ghost text from the real model as somebody types, with the time that it took."""
    before = "vim.o.background = 'dark'; vim.o.termguicolors = true; vim.o.laststatus = 2"
    before += "; vim.api.nvim_set_hl(0, 'Normal', { fg = 0xd8dee9, bg = 0x1f232b })"
    after = "vim.o.statusline = \" %t%=%{v:lua.require'codespec'.statusline()} \""
    options = f"settings = {{ target = {{ path = {json.dumps(str(smollm2))} }} }}"
    frames = []
    with editing(kind, folder, REAL, SHAPES, "point.py", options, before=before, after=after) as editor:

        def shot(seconds):
            frames.append((copy.deepcopy(editor.screen), seconds))

        editor.command("resize 15")
        editor.wait(lambda: "ready" in "".join(editor.rows()))
        editor.type("GA")
        for keys in TYPED:
            for key in re.findall("<[^>]+>|.", keys):
                editor.type(key)
                editor.buffer()  # answered once the key is there
                shot(0.12)
            editor.wait_for_ghost()
            shot(2.0)
            editor.type("<Tab>")
            editor.wait(lambda: not editor.ghost())
            shot(1.0)
        animate(frames, ROOT / "docs" / "neovim.svg", 16)


def test_swapping_the_draft(kind, folder):
    with editing(kind, folder, REAL, CALLS) as editor:
        editor.type("GA(")
        ghost = editor.wait_for_ghost()
        editor.wait(lambda: editor.statusline() == "codespec: ready" and editor.status()["draft"] == "draft-python")
        editor.type("<Esc>")
        for draft in ("draft-go", "none"):
            editor.type(f":Codespec draft {draft}<CR>")
            editor.wait(lambda draft=draft: editor.status()["draft"] == draft)
            editor.wait(lambda draft=draft: f"draft {draft} for python" in editor.messages())
            editor.type("A")
            assert editor.wait_for_ghost() == ghost  # a draft never changes the text
            editor.type("<Esc>")
            editor.wait(lambda: not editor.ghost())
        editor.type(":Codespec draft no-such-draft<CR>")
        editor.wait(lambda: "no-such-draft" in "".join(editor.rows()[20:]))
        editor.confirm()  # it is a long message
        assert editor.status()["draft"] == "none"
        editor.type("A<Tab>")
        assert editor.saved() == editor.buffer()


def test_choosing_a_json_grammar(kind, folder):
    with editing(kind, folder, REAL, '{"name": "codespec", "numbers": [1, 2\n', "some.json") as editor:
        editor.type(":Codespec grammar json<CR>")
        editor.wait(lambda: "grammar json for json" in editor.messages())
        editor.type("A,")
        ghost = editor.wait_for_ghost()
        editor.wait(lambda: editor.status()["grammar"] == "json")
        editor.type("<Tab>")
        editor.wait(lambda: len("\n".join(editor.buffer())) > len('{"name": "codespec", "numbers": [1, 2,'))
        text = "\n".join(editor.buffer())
        assert text.rstrip() == '{"name": "codespec", "numbers": [1, 2,' + ghost
        editor.saved()
        command = [PYTHON, "-m", "codespec", "grammar", "accepts", "json", str(editor.path), "--json"]
        result = subprocess.run(command, capture_output=True, text=True, timeout=120)
        (found,) = json.loads(result.stdout)
        lines = editor.path.read_text().splitlines(keepends=True)
        # It may be unfinished, but no more than that.
        assert found["accepted"] or (found["line"], found["column"]) >= (len(lines), len(lines[-1])), result.stdout


def test_pausing(kind, folder):
    with editing(kind, folder, REAL, CALLS) as editor:
        editor.type("GA(")
        ghost = editor.wait_for_ghost()
        for scope in ("", "language", "all"):
            editor.type(f"<C-o>:Codespec pause {scope}<CR>")
            editor.wait(lambda: not editor.ghost())
            assert editor.statusline().startswith("codespec: paused")
            editor.type("1<BS>")
            editor.wait(lambda: editor.line() == "    last = total(")
            assert not editor.ghost()
            editor.type("<C-o>:Codespec resume<CR>")
            editor.wait(lambda: "resumed" in editor.messages() and "paused" not in editor.statusline())
            editor.type("1<BS>")
            editor.wait_for_ghost(ghost)
            editor.command("messages clear")
        editor.type("<C-o>:Codespec snooze 0.05<CR>")
        editor.wait(lambda: not editor.ghost() and editor.statusline().startswith("codespec: paused"))
        editor.wait(lambda: "resumed" in editor.messages() and "paused" not in editor.statusline())
        editor.type("1<BS>")
        editor.wait_for_ghost(ghost)
        editor.command("messages clear")
        editor.type("<C-o>:Codespec snooze never<CR>")
        editor.wait(lambda: "never: must be a number of minutes" in editor.messages())


def test_the_server_crashes_and_comes_back(kind, folder):
    with editing(kind, folder, REAL, CALLS) as editor:
        editor.type("GA(")
        ghost = editor.wait_for_ghost()
        (server,) = editor.children()
        os.kill(server, signal.SIGKILL)
        editor.wait(lambda: "the server has crashed (signal 9); it is started again in 1 s" in editor.messages())
        assert not editor.ghost()
        assert editor.buffer()[4] == "    last = total("
        assert editor.mode() == "i"
        editor.wait(lambda: editor.children() not in ([], [server]))
        editor.wait_until_ready()
        editor.type("1<BS>")
        editor.wait_for_ghost(ghost)
        editor.type("<Tab>")
        editor.wait(lambda: editor.buffer()[4] != "    last = total(")
        assert editor.saved() == editor.buffer()


# The real server with a stand-in for the models, whose text is known.


def test_several_lines(kind, folder):
    with editing(kind, folder, STUB, "two\nlast\n") as editor:
        editor.type("A lines")
        editor.wait_for_ghost("one\ntwo")
        assert editor.rows()[:4] == ["two linesone", "two", "", "last"]
        assert editor.buffer() == ["two lines", "last"]
        editor.type("<Tab>!")
        editor.wait(lambda: editor.buffer() == ["two linesone", "two", "!", "last"])
        assert editor.saved() == ["two linesone", "two", "!", "last"]


def test_in_the_middle_of_a_line(kind, folder):
    with editing(kind, folder, STUB, "é = f(x)\n") as editor:
        editor.type("$iyz")
        editor.wait_for_ghost("<xyz|20>")
        assert editor.rows()[0] == "é = f(xyz<xyz|20>)"
        editor.type("<Tab>")
        editor.wait(lambda: editor.buffer() == ["é = f(xyz<xyz|20>)"])
        editor.type("!")
        editor.wait(lambda: editor.buffer() == ["é = f(xyz<xyz|20>!)"])
        assert editor.saved() == ["é = f(xyz<xyz|20>!)"]


def test_several_lines_in_the_middle_of_a_line(kind, folder):
    with editing(kind, folder, STUB, "f(two)\nlast\n") as editor:
        editor.type("$i lines")
        editor.wait_for_ghost("one\ntwo")
        if not kind.native:  # Neovim itself leaves the rest of the line where it is
            assert editor.rows()[:4] == ["f(two linesone", "two", ")", "last"]
        editor.type("<Tab>")
        editor.wait(lambda: editor.buffer() == ["f(two linesone", "two", ")", "last"])
        assert editor.cursor() == [3, 0]
        assert editor.saved() == ["f(two linesone", "two", ")", "last"]


def test_accepting_by_word(kind, folder):
    with editing(kind, folder, STUB, "abc\n") as editor:
        editor.type("Ad")
        editor.wait_for_ghost("<bcd|20>")
        for text, rest in (("abcd<", "bcd|20>"), ("abcd<bcd", "|20>"), ("abcd<bcd|", "20>"), ("abcd<bcd|20", ">")):
            editor.type("<M-Right>")
            editor.wait(lambda text=text: editor.line() == text)
            assert editor.ghost() == rest
            assert editor.row() == "abcd<bcd|20>"
        editor.wait(lambda: stub_says(folder, "accepted '<'"))
        editor.wait(lambda: stub_says(folder, "accepted 'bcd'"))
        assert editor.saved() == ["abcd<bcd|20"]
        assert not editor.ghost()


def test_accepting_by_line(kind, folder):
    with editing(kind, folder, STUB, "two\nlast\n") as editor:
        editor.type("A lines")
        editor.wait_for_ghost("one\ntwo")
        editor.type("<M-C-Right>")
        editor.wait(lambda: editor.buffer() == ["two linesone", "last"])
        assert editor.ghost() == "two"
        editor.type("<M-C-Right>")
        editor.wait(lambda: editor.buffer() == ["two linesone", "two", "last"])
        assert editor.cursor() == [2, 3]
        assert editor.saved() == ["two linesone", "two", "last"]


def test_going_through_alternatives(kind, folder):
    with editing(kind, folder, STUB, "abc\n") as editor:
        editor.type("Ad")
        editor.wait_for_ghost("<bcd|20>")
        for keys, index, ghost in (
            ("<M-]>", 2, "<bcd|20>!"),
            ("<M-]>", 3, "<bcd|20>!!"),
            ("<M-]>", 1, "<bcd|20>"),
            ("<M-[>", 3, "<bcd|20>!!"),
            ("<M-[>", 2, "<bcd|20>!"),
        ):
            editor.type(keys)
            editor.wait_for_ghost(ghost)
            editor.wait(lambda ghost=ghost, index=index: editor.row() == f"abcd{ghost} ({index}/3)")
        assert editor.buffer() == ["abcd"]
        editor.type("<Tab>")
        editor.wait(lambda: editor.buffer() == ["abcd<bcd|20>!"])
        editor.wait(lambda: stub_says(folder, "accepted '<bcd|20>!'"))
        assert editor.saved() == ["abcd<bcd|20>!"]


def test_it_tells_how_long_it_took(kind, folder):
    if kind.native:
        pytest.skip("Neovim draws")
    with editing(kind, folder, STUB, "abc\n", options="show_latency = true") as editor:
        editor.type("Ad")
        editor.wait_for_ghost("<bcd|20>")
        editor.wait(lambda: re.fullmatch(r"abcd<bcd\|20> \d+ ms", editor.row()))
        editor.type("<M-]>")
        editor.wait(lambda: re.fullmatch(r"abcd<bcd\|20>! \(2/3\) \d+ ms", editor.row()))


def test_dismissed_then_tab_is_a_tab(kind, folder):
    with editing(kind, folder, STUB, "abc\n") as editor:
        editor.type("Ad")
        editor.wait_for_ghost("<bcd|20>")
        editor.type("<C-]>")
        editor.wait(lambda: not editor.ghost())
        editor.type("<Tab>e")
        editor.wait(lambda: editor.buffer() == ["abcd    e"])
        editor.wait_for_ghost("<  e|20>")
        editor.type("<Esc>")
        editor.wait(lambda: editor.row() == "abcd    e")
        assert editor.saved() == ["abcd    e"]
        found = editor.lua(
            "local server = require('codespec.server'); local client = server.client(server.sessions()[1]);"
            "return server.call(client, 'request_sync', 'workspace/executeCommand',"
            "{ command = 'codespec.status', arguments = { 'python' } }, 20000).result.statistics.python.rejected"
        )
        assert found == 1


def test_typing_along_does_not_flicker(kind, folder):
    with editing(kind, folder, STUB, "abc\n") as editor:
        editor.type("Ad")
        editor.wait_for_ghost("<bcd|20>")
        first = len(editor.screen.frames)
        for count, key in enumerate("<bcd|20", start=1):
            editor.write(key)
            editor.wait(lambda count=count: editor.ghost() == "<bcd|20>"[count:])
        typed = [frame for frame in editor.screen.frames[first:] if frame.rows[0]]
        assert len(typed) >= 7
        assert {frame.rows[0] for frame in typed} == {"abcd<bcd|20>"}
        assert {frame.ghost for frame in typed} <= {"<bcd|20>"[count:] for count in range(8)}
        assert editor.saved() == ["abcd<bcd|20"]


def test_it_stays_where_the_editor_indents_the_line_anew(kind, folder):
    with editing(kind, folder, STUB, "abc\n       \n") as editor:
        editor.type("jA ")
        editor.wait_for_ghost("<   |20>")
        first = len(editor.screen.frames)
        # As where a closing bracket is typed at a line's start in many languages.
        editor.lua("vim.api.nvim_set_current_line('    <'); vim.api.nvim_win_set_cursor(0, { 2, 5 })")
        editor.wait(lambda: editor.ghost() == "   |20>")
        if not kind.native:
            assert {frame.ghost for frame in editor.screen.frames[first:]} <= {"<   |20>", "   |20>"}
        assert editor.saved() == ["abc", "    <"]


def test_it_looks_the_same_behind_a_bracket_that_is_marked(kind, folder):
    if kind.native:
        pytest.skip("Neovim itself draws it in the colours of the bracket")
    with editing(kind, folder, STUB, "(x)\n") as editor:
        editor.type("A ")
        editor.wait_for_ghost("<x) |20>")
        editor.type("<BS>")
        editor.wait_for_ghost("<(x)|20>")


def test_typing_something_else_hides_it_at_once(kind, folder, monkeypatch):
    with editing(kind, folder, STUB, "abc\n") as editor:
        editor.type("Ad")
        editor.wait_for_ghost("<bcd|20>")
        first = len(editor.screen.frames)
        editor.write("x")
        editor.wait_for_ghost("<cdx|20>")
        frames = {(frame.rows[0], frame.ghost) for frame in editor.screen.frames[first:]}
        assert frames <= {("abcd<bcd|20>", "<bcd|20>"), ("abcdx", ""), ("abcdx<cdx|20>", "<cdx|20>")}


def test_a_stale_answer_never_shows(kind, folder, monkeypatch):
    monkeypatch.setenv("STUB_STEP_S", "1.5")
    with editing(kind, folder, STUB, "a\n") as editor:
        editor.wait_until_ready()
        editor.type("Ab")
        # The answer to this is on its way when the next key comes.
        editor.wait(lambda: stub_says(folder, "begin example.py"))
        editor.type("c")
        editor.wait_for_ghost("<abc|20>")
        assert {frame.ghost for frame in editor.screen.frames} == {"", "<abc|20>"}
        editor.type("d<Esc>")
        editor.wait(lambda: editor.mode() == "n" and not editor.ghost())
        count = len(editor.screen.frames)
        editor.type("o")
        editor.wait_for_ghost()
        assert not {"<abc|20>", "<bcd|20>"} & {frame.ghost for frame in editor.screen.frames[count:]}


def test_a_server_that_is_still_loading(kind, folder, monkeypatch):
    monkeypatch.setenv("STUB_LOAD_S", "6")
    after = "vim.o.statusline = \"%{v:lua.require'codespec'.statusline()}\""
    with editing(kind, folder, STUB, "abc\n", after=after) as editor:
        editor.type("Ad")
        editor.wait(lambda: "codespec: loading" in "\n".join(editor.rows()))
        editor.wait(lambda: "loading the model" in editor.messages())
        assert not editor.ghost()
        editor.wait(lambda: "the model is loaded" in editor.messages())
        editor.wait(
            lambda: "codespec: ready" in "\n".join(editor.rows()) or "codespec: busy" in "\n".join(editor.rows())
        )
        editor.wait_for_ghost("<bcd|20>")
        assert editor.saved() == ["abcd"]


def test_a_model_that_cannot_be_loaded(kind, folder, monkeypatch):
    monkeypatch.setenv("STUB_LOAD_ERROR", "the file is no model; choose another target")
    with editing(kind, folder, STUB, "abc\n") as editor:
        editor.wait(lambda: "codespec: the file is no model; choose another target" in editor.messages())
        editor.wait(lambda: editor.statusline() == "codespec: failed")
        editor.type("Ad<Tab>")
        assert editor.saved() == ["abcd    "]


def test_it_says_that_a_file_is_private(kind, folder, artifacts):
    after = "vim.o.statusline = \"%{v:lua.require'codespec'.statusline()}\""
    with editing(kind, folder, STUB, "x\n", "secrets.yaml", after=after) as editor:
        editor.type("Ay")
        editor.wait(lambda: editor.statusline() == "codespec: private file")
        editor.wait(lambda: "codespec: private file" in "".join(editor.rows()))
        draw(editor.screen, artifacts / f"neovim-{kind.name}-private.svg", 24)


def test_it_says_why_nothing_is_shown(kind, folder, monkeypatch, artifacts):
    monkeypatch.setenv("STUB_STEP_S", "0.03")
    after = "vim.o.statusline = \"%{v:lua.require'codespec'.statusline()}\""
    with editing(kind, folder, STUB, "x\n", after=after) as editor:
        editor.type("Aunfitting")
        editor.wait(lambda: editor.statusline().endswith(": did not fit"))
        editor.wait(lambda: "did not fit" in "".join(editor.rows()))
        draw(editor.screen, artifacts / f"neovim-{kind.name}-nothing.svg", 24)
        editor.type("<Esc>:Codespec status<CR>")
        editor.wait(lambda: any("does not fit what follows the cursor" in row for row in editor.rows()))
        editor.type("q:Codespec trace<CR>")
        editor.wait(lambda: any("Nothing of it was shown." in row for row in editor.rows()))
        editor.type("q")
        for text, short in WHY_NOTHING.items():
            editor.type(f"o{text}")
            editor.wait(lambda short=short: editor.statusline() == f"codespec: {short}")
            editor.wait(lambda short=short: f"codespec: {short}" in "".join(editor.rows()))
            draw(editor.screen, artifacts / f"neovim-{kind.name}-{short.replace(' ', '-')}.svg", 24)
            editor.type("<Esc>")
        editor.type("osteps=99")
        editor.wait(lambda: editor.statusline().endswith(": reading 40/100"))
        editor.wait_for_ghost()
        editor.wait(lambda: editor.statusline() == "codespec: ready")
