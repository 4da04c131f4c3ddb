"""Next edits in a real Neovim: offered, gone to, applied, dropped, and never in the way of something else."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.editors.common import EDIT_MODEL, PRICES, REAL, ROOT, STUB
from tests.editors.neovim_editor import Editor, editing, running
from tests.editors.neovim_fixtures import folder, kind
from tests.editors.neovim_picture import draw

__all__ = ["folder", "kind"]

TEXT = "count = 0\nfor x in items:\n    count += 1\nprint(count)\n"
FAR = "count = 0\n" + "\n" * 60 + "print(count)\n"


def renamed(editor: Editor) -> None:
    """Rename the first word, and be in Normal mode on it."""
    editor.wait_until_ready()
    editor.type("ciwtotal")
    editor.wait(lambda: editor.line().startswith("total"))
    editor.type("<Esc>")
    editor.wait(lambda: editor.mode() == "n")


def offered(editor: Editor, row: int, text: str) -> None:
    """Wait until a row of the screen is this, but for the width of gaps."""
    editor.wait(lambda: editor.row(row).split() == text.split())


def drawn(kind, before: str, old: str, new: str, after: str) -> str:
    """How a replacement looks: before Neovim 0.10 what comes stands at the end of the line."""
    return f"{before}{old}{new}{after}" if kind.version >= (0, 10) else f"{before}{old}{after} {new}"


def picture(editor: Editor, artifacts, name: str) -> None:
    editor.pump()
    draw(editor.screen, artifacts / f"{name}.svg", 8)


def test_offered_and_applied_one_after_the_other(kind, folder, artifacts):
    with editing(kind, folder, STUB, TEXT) as editor:
        renamed(editor)
        assert editor.rows()[2] == "    count += 1", "on demand only"
        editor.type("<M-n>")
        offered(editor, 2, drawn(kind, "    ", "count", "total", " += 1") + "   Tab: apply")
        picture(editor, artifacts, f"neovim-{kind.name}-offered")
        editor.type("<Tab>")
        editor.wait(lambda: editor.buffer()[2] == "    total += 1")
        offered(editor, 3, drawn(kind, "print(", "count", "total", ")") + "   Tab: apply")
        editor.type("<Tab>")
        editor.wait(lambda: editor.buffer() == TEXT.replace("count", "total").splitlines())
        offered(editor, 3, "print(total)")
        assert editor.cursor() == [4, 11]
        editor.type("u")
        editor.wait(lambda: editor.buffer()[3] == "print(count)")
        editor.wait(lambda: editor.buffer()[2] == "    total += 1")


def test_gone_to_where_it_is_out_of_sight(kind, folder, artifacts):
    with editing(kind, folder, STUB, FAR) as editor:
        renamed(editor)
        editor.type("<M-n>")
        offered(editor, 0, "total = 0   Tab: jump to line 62")
        picture(editor, artifacts, f"neovim-{kind.name}-hint")
        editor.type("<Tab>")
        editor.wait(lambda: editor.cursor() == [62, 6])
        editor.wait(lambda: any(drawn(kind, "print(", "count", "total", ")") in row for row in editor.rows()))
        assert editor.buffer() == FAR.replace("count", "total", 1).splitlines()
        editor.type("<Tab>")
        editor.wait(lambda: editor.buffer() == FAR.replace("count", "total").splitlines())


def test_gone_to_where_it_is_just_below_the_screen(kind, folder):
    """The cursor is beside the edit, but that is not on the screen: nothing is applied that is not seen."""
    with editing(kind, folder, STUB, "count = 0\n\nprint(count)\n" + "\n" * 60) as editor:
        editor.wait_until_ready()
        editor.command("set scrolloff=0")
        editor.type("30O<Esc>gg30jzb")
        editor.wait(lambda: editor.line() == "count = 0")
        renamed(editor)
        editor.type("<M-n>")
        editor.wait(
            lambda: ["total", "=", "0", "Tab:", "jump", "to", "line", "33"] in [row.split() for row in editor.rows()]
        )
        editor.type("<Tab>")
        editor.wait(lambda: any("Tab: apply" in row for row in editor.rows()))
        assert editor.line() == "print(count)"
        editor.type("<Tab>")
        editor.wait(lambda: editor.line() == "print(total)")


@pytest.mark.parametrize("hide", ["set nowrap", "2fold | 2foldclose"])
def test_gone_to_where_it_is_on_the_screen_but_not_seen(kind, folder, hide):
    """Beside the window, or in a closed fold."""
    with editing(kind, folder, STUB, f"count = 0\n{'x' * 200} = count\n") as editor:
        editor.command(f"set foldminlines=0 | {hide}")
        renamed(editor)
        editor.type("<M-n>")
        offered(editor, 0, "total = 0   Tab: jump to line 2")
        editor.type("<Tab>")
        editor.wait(lambda: any(row.endswith("   Tab: apply") for row in editor.rows()))
        assert editor.line().endswith(" = count")
        editor.type("<Tab>")
        editor.wait(lambda: editor.line().endswith(" = total"))


def test_a_buffer_that_may_not_be_changed_is_left_alone(kind, folder):
    with offered_here(kind, folder) as editor:
        editor.command("set nomodifiable")
        editor.type("<Tab>j")
        editor.wait(lambda: editor.cursor()[0] == 2)
        offered(editor, 2, "    count += 1")


def test_a_file_that_is_read_anew_ends_it(kind, folder):
    with offered_here(kind, folder) as editor:
        editor.type(":edit!<CR>")
        offered(editor, 2, "    count += 1")
        assert not editor.lua("return require('codespec').is_edit_visible()")


def test_never_in_visual_mode(kind, folder):
    with offered_here(kind, folder) as editor:
        editor.type("v")
        offered(editor, 2, "    count += 1")
        editor.type("l<Esc>")
        offered(editor, 2, drawn(kind, "    ", "count", "total", " += 1") + "   Tab: apply")


def test_what_is_taken_back_within_half_a_minute_is_counted(kind, folder, monkeypatch):
    monkeypatch.setenv("CODESPEC_EDIT_CHECK_S", "4")
    with offered_here(kind, folder) as editor:
        editor.type("<Tab>")
        editor.wait(lambda: editor.buffer()[2] == "    total += 1")
        editor.type("u")
        editor.wait(lambda: editor.buffer()[2] == "    count += 1")
        editor.wait(lambda: counted(editor)["edits_reverted"] == 1)
        assert counted(editor)["edits_applied"] == 1


def counted(editor: Editor) -> dict[str, int]:
    """The statistics of Python."""
    found = editor.lua(
        "local server = require('codespec.server'); local client = server.client(server.sessions()[1]);"
        "return server.call(client, 'request_sync', 'workspace/executeCommand',"
        "{ command = 'codespec.status', arguments = { 'python' } }, 20000).result.statistics.python"
    )
    return dict(found)


def test_why_there_is_none(kind, folder):
    with editing(kind, folder, STUB, TEXT, options="settings = { edits = { mode = 'off' } },") as editor:
        renamed(editor)
        editor.type("<M-n>")
        editor.wait(lambda: "next edits are switched off (edits.mode = 'off')" in editor.messages())
    with editing(kind, folder, STUB, "nothing\n") as editor:
        editor.wait_until_ready()
        editor.type("<M-n>")
        editor.wait(lambda: "there is no next edit" in editor.messages())


def test_dropped_and_not_offered_again(kind, folder):
    with offered_here(kind, folder) as editor:
        editor.type("<Esc>")
        offered(editor, 2, "    count += 1")
        editor.type("<M-n>")
        offered(editor, 0, "total = 0   Tab: jump to line 4")
        offered(editor, 3, drawn(kind, "print(", "count", "total", ")"))
        editor.type("<Esc>")
        offered(editor, 0, "total = 0")
        editor.command("nnoremap <Tab> x")
        editor.type("0<Tab>")
        editor.wait(lambda: editor.line() == "otal = 0")


def test_never_beside_ghost_text(kind, folder):
    with offered_here(kind, folder) as editor:
        editor.type("a<M-Bslash>")
        editor.wait_for_ghost()
        offered(editor, 2, "    count += 1")
        line = editor.line()
        editor.type("<Tab>")
        editor.wait(lambda: editor.line() != line)
        assert editor.buffer()[1:] == TEXT.splitlines()[1:]
        both = [frame for frame in editor.screen.frames if frame.ghost and any("Tab:" in row for row in frame.rows)]
        assert not both, both[0].rows


def test_the_menu_goes_first(kind, folder):
    text = "count = 0\ncount += it\nprint(item, items)\n"
    with editing(kind, folder, STUB, text, options="auto_trigger = false,") as editor:
        renamed(editor)
        editor.type("jA<M-n>")
        offered(editor, 1, drawn(kind, "", "count", "total", " += it") + "   Tab: apply")
        editor.type("<C-n>")
        editor.wait(lambda: editor.nvim.funcs.pumvisible())
        editor.wait(lambda: not any("Tab: apply" in row for row in editor.rows()))
        editor.type("<Tab>")
        editor.wait(lambda: editor.line().startswith("count += item"))
        assert editor.buffer() == ["total = 0", editor.line(), "print(item, items)"]


def test_in_insert_mode(kind, folder):
    with editing(kind, folder, STUB, TEXT, options="auto_trigger = false,") as editor:
        renamed(editor)
        editor.type("A<M-n>")
        offered(editor, 2, drawn(kind, "    ", "count", "total", " += 1") + "   Tab: apply")
        editor.type("<Tab>")
        editor.wait(lambda: editor.buffer()[2] == "    total += 1")
        assert editor.mode() == "i"
        offered(editor, 3, drawn(kind, "print(", "count", "total", ")") + "   Tab: apply")
        editor.type("<C-]>")
        offered(editor, 3, "print(count)")
        assert editor.mode() == "i"


def test_a_snippet_goes_first(kind, folder):
    with editing(kind, folder, STUB, TEXT, options="auto_trigger = false,") as editor:
        if not editor.lua("return vim.snippet ~= nil"):
            pytest.skip("this Neovim has no snippets")
        renamed(editor)
        editor.type("A  # <Esc>a")
        editor.lua("vim.snippet.expand('${1:one} ${2:two}')")
        editor.type("<Esc>")
        editor.type("<M-n>")
        editor.wait(lambda: "no next edit within a snippet" in editor.messages())


def test_by_itself_where_the_settings_say_so(kind, folder):
    options = "auto_trigger = false, settings = { edits = { mode = 'automatic' } },"
    with editing(kind, folder, STUB, TEXT, options=options) as editor:
        editor.wait_until_ready()
        editor.wait(lambda: editor.status().get("edits_mode") == "automatic")
        editor.type("ciwtotal")
        offered(editor, 2, drawn(kind, "    ", "count", "total", " += 1") + "   Tab: apply")
        editor.type("s")
        offered(editor, 2, drawn(kind, "    ", "count", "totals", " += 1") + "   Tab: apply")
        editor.type("<Esc>:Codespec pause<CR>")
        offered(editor, 2, "    count += 1")


def test_characters_of_several_bytes(kind, folder):
    with editing(kind, folder, STUB, "é𝕏 = count\ncount = 1\n") as editor:
        editor.wait_until_ready()
        editor.type("j")
        renamed(editor)
        editor.type("<M-n>")
        offered(editor, 0, drawn(kind, "é𝕏 = ", "count", "total", "") + "   Tab: apply")
        editor.type("<Tab>")
        editor.wait(lambda: editor.buffer() == ["é𝕏 = total", "total = 1"])


def test_several_lines_stand_below_what_goes(kind, folder, artifacts):
    with editing(kind, folder, STUB, "first\ntwo lines\nreplaced\nlast\nend\n") as editor:
        editor.wait_until_ready()
        editor.type("<M-n>")
        for row, text in enumerate(("two lines", "one", "two", "replaced Tab: apply"), 1):
            offered(editor, row, text)
        picture(editor, artifacts, f"neovim-{kind.name}-added")
        editor.type("<Tab>")
        editor.wait(lambda: editor.buffer() == ["first", "two lines", "one", "two", "replaced", "last", "end"])
        for row, text in enumerate(("replaced Tab: apply", "last", "1", "2", "3", "end"), 4):
            offered(editor, row, text)
        picture(editor, artifacts, f"neovim-{kind.name}-replaced")
        editor.type("<Tab>")
        editor.wait(lambda: editor.buffer() == ["first", "two lines", "one", "two", "1", "\t2", "3", "end"])


@contextmanager
def offered_here(kind, folder) -> Iterator[Editor]:
    """An editor where the edit that follows from a rename is drawn beside it."""
    with editing(kind, folder, STUB, TEXT) as editor:
        renamed(editor)
        editor.type("<M-n>")
        offered(editor, 2, drawn(kind, "    ", "count", "total", " += 1") + "   Tab: apply")
        yield editor


@contextmanager
def offered_elsewhere(kind, folder) -> Iterator[Editor]:
    """An editor where the edit that follows from a rename is in another file."""
    (folder / ".git").mkdir()
    (folder / "other.py").write_text("import example\nexample.count\n")
    with editing(kind, folder, STUB, "count = 0\n", options="auto_trigger = false,") as editor:
        editor.wait_until_ready()
        editor.command(f"edit {folder / 'other.py'}")
        editor.command("set hidden | buffer 1")
        renamed(editor)
        editor.type("<M-n>")
        offered(editor, 0, "total = 0   Tab: jump to other.py, line 2")
        yield editor


def test_in_another_file(kind, folder):
    with offered_elsewhere(kind, folder) as editor:
        editor.type("<Tab>")
        offered(editor, 1, drawn(kind, "example.", "count", "total", "") + "   Tab: apply")
        assert editor.cursor() == [2, 8]
        editor.type("<Tab>")
        editor.wait(lambda: editor.buffer() == ["import example", "example.total"])


def test_in_another_file_where_the_window_has_to_keep_its_own(kind, folder):
    with offered_elsewhere(kind, folder) as editor:
        editor.command("set nohidden")
        editor.type("<Tab>")
        offered(editor, 1, drawn(kind, "example.", "count", "total", "") + "   Tab: apply")
        editor.type("<Tab>")
        editor.wait(lambda: editor.buffer() == ["import example", "example.total"])
        assert len(editor.nvim.windows) == 2


def test_a_change_where_it_was_asked_for_ends_an_edit_of_another_file(kind, folder):
    with offered_elsewhere(kind, folder) as editor:
        editor.type("0x")
        offered(editor, 0, "otal = 0")
        assert not editor.lua("return require('codespec').is_edit_visible()")


def test_nothing_is_said_in_buffers_without_its_keys(kind, folder):
    with editing(kind, folder, STUB, FAR) as editor:
        renamed(editor)
        editor.type("<M-n>")
        offered(editor, 0, "total = 0   Tab: jump to line 62")
        editor.type(":enew<CR>")
        editor.wait(lambda: editor.buffer() == [""])
        editor.lua("vim.wait(100)")
        assert not any("Tab: jump" in row for row in editor.rows())
        editor.type(":buffer 1<CR>")
        offered(editor, 0, "total = 0   Tab: jump to line 62")


def test_nothing_is_said_in_a_file_that_has_no_part_in_it(kind, folder):
    (folder / "third.py").write_text("x = 1\n")
    with editing(kind, folder, STUB, FAR, options="auto_trigger = false,") as editor:
        renamed(editor)
        editor.type("<M-n>")
        offered(editor, 0, "total = 0   Tab: jump to line 62")
        editor.command(f"set hidden | edit {folder / 'third.py'}")
        editor.wait(lambda: editor.status() and editor.line() == "x = 1")
        editor.type("A<Tab>y")
        editor.wait(lambda: editor.line().split() == ["x", "=", "1", "y"])
        assert not any("Tab: jump" in row for row in editor.rows())


def test_with_a_client_that_knows_edits_of_another_server(kind, folder, tmp_path):
    """The recipe of the documentation, and requests as sidekick.nvim makes them."""
    if kind.version < (0, 12):
        pytest.skip("sidekick.nvim wants Neovim 0.11.2")
    documentation = (ROOT / "docs" / "editors.md").read_text()
    (recipe,) = re.findall(r"```lua\n(vim.lsp.config\('codespec-copilot'.*?)```", documentation, re.DOTALL)
    init, path = folder / "init.lua", folder / "example.py"
    init.write_text(recipe.replace("{ 'codespec', 'serve' }", "{ " + ", ".join(map(json.dumps, STUB)) + " }"))
    path.write_text(TEXT)
    with running(kind.program, ["--clean", "-n", "-u", str(init), str(path)], path) as editor:
        editor.wait(lambda: editor.lua("return #vim.lsp.get_clients({ bufnr = 0 })") == 1)
        editor.wait(lambda: editor.lua("return vim.lsp.get_clients({ bufnr = 0 })[1].initialized == true"))
        editor.type("ciwtotal<Esc>")
        editor.wait(lambda: editor.line() == "total = 0" and editor.mode() == "n")
        editor.lua(
            """
            local client = vim.lsp.get_clients({ bufnr = 0 })[1]
            local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
            params.textDocument.version = vim.lsp.util.buf_versions[vim.api.nvim_get_current_buf()]
            params.context = { triggerKind = 2 }
            client:request('textDocument/copilotInlineEdit', params, function(_, result)
              local edit = result.edits[1]
              local change = { range = edit.range, newText = edit.text }
              vim.lsp.util.apply_text_edits({ change }, vim.uri_to_bufnr(edit.textDocument.uri), client.offset_encoding)
              client:exec_cmd(edit.command, { bufnr = 0 })
            end)
            """
        )
        editor.wait(lambda: editor.buffer()[2] == "    total += 1")


@pytest.mark.skipif(not EDIT_MODEL.is_file(), reason="there is no embedded model of next edits here")
def test_a_rename_with_the_embedded_model(kind, folder, artifacts):
    options = "auto_trigger = false, settings = { edits = { budget_ms = 20000 } },"
    with editing(kind, folder, REAL, PRICES, options=options) as editor:
        editor.wait_until_ready()
        editor.type("j^ciwsubtotal<Esc>")
        editor.wait(lambda: editor.line() == "    subtotal = 0" and editor.mode() == "n")
        editor.type("<M-n>")
        editor.wait(lambda: any("Tab: apply" in row for row in editor.rows()))
        picture(editor, artifacts, f"neovim-{kind.name}-rename")
        editor.type("<Tab>")
        editor.wait(lambda: editor.buffer() == PRICES.replace("count", "subtotal").splitlines())
