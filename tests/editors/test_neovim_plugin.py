"""The Neovim plugin beside the user's own configuration, and where something is missing."""

from __future__ import annotations

import json

import pytest

from tests.editors.common import PYTHON, STUB
from tests.editors.neovim_editor import editing
from tests.editors.neovim_fixtures import folder, kind

__all__ = ["folder", "kind"]

SHOWN = "<bcd|20>"


@pytest.mark.parametrize(
    "mapping",
    [
        "vim.keymap.set('i', '<Tab>', 'mine')",
        "vim.keymap.set('i', '<Tab>', function() return 'mine' end, { expr = true })",
        "vim.keymap.set('i', '<Tab>', function() vim.api.nvim_put({ 'mine' }, 'c', false, true) end)",
        "vim.cmd('imap <Tab> <Plug>(other)'); vim.keymap.set('i', '<Plug>(other)', 'mine')",
        "vim.cmd([[inoremap <expr> <Tab> 'mi' .. 'ne']])",
        "vim.cmd('autocmd FileType python inoremap <buffer> <Tab> mine')",
    ],
)
def test_a_key_that_is_mapped_keeps_its_mapping_where_nothing_is_shown(kind, folder, mapping):
    with editing(kind, folder, STUB, "abc\n", before=mapping) as editor:
        editor.type("Ad")
        editor.wait_for_ghost(SHOWN)
        editor.type("<Tab>")
        editor.wait(lambda: editor.buffer() == ["abcd" + SHOWN])
        editor.type("<C-]><Tab>")
        editor.wait(lambda: editor.buffer() == ["abcd" + SHOWN + "mine"])


def test_keys_are_themselves_where_nothing_is_shown(kind, folder):
    # <C-]> expands abbreviations, and so does <Tab>.
    before = "vim.cmd('iabbrev ab expanded')"
    with editing(kind, folder, STUB, "nothing\n", options="auto_trigger = false,", before=before) as editor:
        editor.wait(lambda: editor.lua("return vim.fn.maparg('<Tab>', 'i')") != "")
        editor.type("oab<C-]>|ab<Tab>|")
        # From 0.11 on Neovim itself maps <Tab>, and what a mapping types expands nothing.
        last = "expanded|expanded   |" if kind.version < (0, 11) else "expanded|ab |"
        editor.wait(lambda: editor.buffer() == ["nothing", last])


def test_other_keys_and_plug_mappings(kind, folder):
    options = "keys = { accept = '<C-l>', dismiss = false },"
    after = "vim.keymap.set('i', '<C-e>', '<Plug>(codespec-dismiss)', { remap = true })"
    with editing(kind, folder, STUB, "abc\n", options=options, after=after) as editor:
        editor.type("Ad")
        editor.wait_for_ghost(SHOWN)
        editor.type("<C-e>")
        editor.wait(lambda: not editor.ghost())
        editor.type("<Tab>e")
        editor.wait_for_ghost("<  e|20>")
        editor.type("<C-l>")
        editor.wait(lambda: editor.buffer() == ["abcd    e<  e|20>"])


def test_asking_by_a_key_only(kind, folder):
    with editing(kind, folder, STUB, "abc\n", options="auto_trigger = false,") as editor:
        editor.wait_until_ready()
        editor.type("Ad")
        editor.wait(lambda: editor.line() == "abcd" and editor.mode() == "i")
        if kind.native:  # which can be told to show something once it has asked itself
            editor.lua("vim.wait(400)")
        editor.type("<M-Bslash>")
        editor.wait_for_ghost(SHOWN)
        editor.type("e")
        editor.wait(lambda: editor.line() == "abcde" and not editor.ghost())


def test_accepting_is_one_step_of_undo_and_is_repeated(kind, folder):
    with editing(kind, folder, STUB, "abc\nabc\n") as editor:
        editor.type("Ad")
        editor.wait_for_ghost(SHOWN)
        editor.type("<Tab>e<Esc>")
        editor.wait(lambda: editor.mode() == "n" and editor.line() == "abcd" + SHOWN + "e")
        editor.type("j.")
        editor.wait(lambda: editor.buffer()[1] == "abcd" + SHOWN + "e")
        editor.type("uu")
        editor.wait(lambda: editor.buffer() == ["abcd" + SHOWN, "abc"])
        editor.type("u")
        editor.wait(lambda: editor.buffer() == ["abcd", "abc"])


def test_the_menu_of_completions_has_precedence(kind, folder):
    with editing(kind, folder, STUB, "abcde\nabcfg\nabc\n") as editor:
        editor.type("GA")
        editor.wait_for_ghost("<abc|20>")
        editor.type("<C-n>")
        editor.wait(lambda: editor.nvim.funcs.pumvisible() and not editor.ghost())
        editor.type("<C-p><C-e>")
        editor.wait_for_ghost("<abc|20>")
        editor.type("<Tab>")
        editor.wait(lambda: editor.buffer() == ["abcde", "abcfg", "abc<abc|20>"])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_characters_of_several_bytes_and_columns(kind, folder, encoding):
    before = (
        "local make = vim.lsp.protocol.make_client_capabilities\n"
        "vim.lsp.protocol.make_client_capabilities = function()\n"
        "  local capabilities = make()\n"
        f"  capabilities.general = {{ positionEncodings = {{ '{encoding}' }} }}\n"
        "  return capabilities\n"
        "end"
    )
    with editing(kind, folder, STUB, "\té𝕏中 = (])\n", before=before) as editor:
        editor.type("$iö𝕏")
        editor.wait_for_ghost("<]ö𝕏|20>")
        assert editor.row().lstrip() == "é𝕏中 = (]ö𝕏<]ö𝕏|20>)"
        editor.write("<")
        editor.wait_for_ghost("]ö𝕏|20>")
        editor.type("<M-Right>")
        editor.wait(lambda: editor.buffer() == ["\té𝕏中 = (]ö𝕏<])"])
        editor.type("<Tab>")
        editor.wait(lambda: editor.buffer() == ["\té𝕏中 = (]ö𝕏<]ö𝕏|20>)"])
        client = "require('codespec.server').client(require('codespec.server').sessions()[1])"
        assert editor.lua(f"return {client}.offset_encoding") == encoding
        assert editor.saved() == ["\té𝕏中 = (]ö𝕏<]ö𝕏|20>)"]


def test_two_windows_on_a_buffer(kind, folder):
    with editing(kind, folder, STUB, "abc\nlast\n") as editor:
        editor.command("split")
        editor.type("Ad")
        editor.wait_for_ghost()
        editor.type("<C-o><C-w>j")
        editor.wait(lambda: not editor.ghost())
        editor.type("<Esc>GA!")
        editor.wait_for_ghost()
        editor.type("<Tab>")
        editor.wait(lambda: editor.buffer() == ["abcd", "last!<st!|20>"])


def test_buffers_that_are_no_files_are_left_alone(kind, folder):
    with editing(kind, folder, STUB, "abc\n", options="filetypes = { '*' },") as editor:
        editor.wait_until_ready()
        found = editor.lua(
            """
            local prompt = vim.api.nvim_create_buf(false, true)
            vim.bo[prompt].buftype = 'prompt'
            vim.bo[prompt].filetype = 'python'
            local scratch = vim.api.nvim_create_buf(false, true)
            vim.api.nvim_open_win(scratch, true, { relative = 'editor', row = 2, col = 2, width = 20, height = 3 })
            vim.bo[scratch].filetype = 'python'
            local help = vim.fn.bufadd('help.txt')
            vim.bo[help].buftype = 'help'
            local status = require('codespec').status
            return { status(prompt) == nil, status(scratch) == nil, status(help) == nil }
            """
        )
        assert found == [True, True, True]
        editor.type("<C-w>cq:i")
        editor.wait(lambda: editor.lua("return vim.fn.getcmdwintype()") == ":")
        assert editor.status() == {}
        editor.type("<Esc>:quit<CR>")


def test_a_file_that_is_too_large_is_left_alone(kind, folder):
    with editing(kind, folder, STUB, "abc\n" * 400, options="max_file_kib = 1,") as editor:
        editor.wait(lambda: editor.lua("return #require('codespec.tell').logged()") > 0)
        editor.type(":Codespec log<CR>")
        editor.wait(lambda: "example.py is larger than max_file_kib" in "\n".join(editor.buffer()))
        assert editor.children() == []


def test_wrong_options_are_named_and_the_others_used(kind, folder):
    options = "cmdd = {}, debounce_ms = 'fast', keys = { accept = '<C-l>', akcept = '<C-x>', next = 7 },"
    with editing(kind, folder, STUB, "abc\n", options=options) as editor:
        editor.wait(lambda: "there is no option cmdd" in "".join(editor.rows()))
        editor.type("<CR>")
        said = editor.messages()
        assert "debounce_ms must be a number of milliseconds" in said
        assert "keys.akcept is unknown; there are accept, accept_line, accept_word, dismiss, drop_edit" in said
        assert "keys.next must be a key" in said
        editor.type("Ad")
        editor.wait_for_ghost(SHOWN)
        editor.type("<C-l>")
        editor.wait(lambda: editor.buffer() == ["abcd" + SHOWN])


def test_a_program_that_does_not_exist(kind, folder):
    with editing(kind, folder, ["no-such-codespec"], "abc\n") as editor:
        remedy = "codespec: no program no-such-codespec: install it or set cmd (:help codespec-missing)"
        editor.wait(lambda: remedy in editor.messages())
        assert editor.statusline() == "codespec: failed"
        editor.type("Ad<Tab>")
        editor.type("<Esc>:edit! other.py<CR>")
        editor.wait(lambda: editor.status())
        assert editor.messages().count("no-such-codespec") == 1
        editor.type(":checkhealth codespec<CR>")
        editor.wait(lambda: "`pip install .` in codespec's folder" in "\n".join(editor.buffer()))


def test_a_python_that_is_gone(kind, folder):
    program = folder / "codespec"
    program.write_text("#!/no/such/python\n")
    program.chmod(0o755)
    with editing(kind, folder, [str(program)], "abc\n") as editor:
        editor.wait(lambda: "codespec cannot be run: is its Python gone?" in editor.messages())
        assert editor.statusline() == "codespec: failed"


def test_a_server_that_ends_at_once_says_why(kind, folder):
    with editing(kind, folder, [PYTHON, "-m", "no_such_module"], "abc\n") as editor:
        editor.confirm()  # it is a long message
        editor.wait(lambda: "No module named no_such_module" in editor.messages())
        editor.wait(lambda: editor.statusline() == "codespec: failed")


def test_a_server_that_crashes_again_and_again_is_given_up(kind, folder):
    after = "require('codespec.server').back_off_s = 0.01"
    with editing(kind, folder, STUB, "abc\n", after=after) as editor:
        seen = set()
        for _ in range(6):
            editor.wait(lambda: set(editor.children()) - seen and editor.status().get("draft"))
            (server,) = set(editor.children()) - seen
            seen.add(server)
            editor.lua("vim.loop.kill(..., 9)", server)
        editor.wait(lambda: "given up after 5 crashes (signal 9)" in "".join(editor.rows()))
        editor.type("<CR>")
        assert editor.statusline() == "codespec: failed"
        editor.type(":Codespec restart<CR>Ad")
        editor.wait_for_ghost(SHOWN)


def test_nothing_is_loaded_before_it_is_used(kind, folder):
    init = "vim.g.none = 1"
    with editing(kind, folder, STUB, "abc\n", before=init) as editor:
        assert editor.nvim.funcs.exists(":Codespec") == 2
        assert "codespec" in editor.lua("return vim.fn.maparg('<Plug>(codespec-accept)', 'i')")
        loaded = editor.lua(
            "local found = {}; for name in pairs(package.loaded) do"
            " if name:find('^codespec%.') then table.insert(found, name) end end; return found"
        )
        assert not {"codespec.health", "codespec.command", "codespec.trace"} & set(loaded)


def test_the_command_completes_its_arguments(kind, folder):
    with editing(kind, folder, STUB, "abc\n") as editor:
        editor.wait_until_ready()

        def completed(line):
            return editor.nvim.funcs.getcompletion(line, "cmdline")

        names = ["draft", "edit", "grammar", "log", "models", "pause", "restart", "resume", "snooze", "status", "trace"]
        assert completed("Codespec ") == names
        assert completed("Codespec re") == ["restart", "resume"]
        assert completed("Codespec pause ") == ["buffer", "language", "all"]
        assert completed("Codespec draft ")[:2] == ["auto", "none"]
        assert completed("Codespec grammar none ") == ["python", "all", "file"]
        editor.type(":Codespec nonsense<CR>")
        editor.wait(lambda: "there is no :Codespec nonsense (:help :Codespec)" in "".join(editor.rows()))


def test_status_and_health(kind, folder):
    with editing(kind, folder, STUB, "abc\n") as editor:
        editor.type("Ad")
        editor.wait_for_ghost(SHOWN)
        editor.type("<Esc>:Codespec<CR>")
        editor.wait(lambda: {"language: python", "target: stub"} <= set(editor.rows()))
        editor.type("q:checkhealth codespec<CR>")
        editor.wait(lambda: "target: stub" in "\n".join(editor.buffer()))
        report = "\n".join(editor.buffer())
        assert "Neovim " + ".".join(map(str, kind.version)) in report
        assert "the server is ready" in report
        assert "ERROR" not in report, report


def test_the_help_has_its_tags(kind, folder):
    with editing(kind, folder, STUB, "abc\n") as editor:
        editor.lua("vim.cmd('helptags ' .. vim.fn.fnameescape(...))", str(make_help(folder)))
        editor.command(f"set runtimepath+={folder / 'help'}")
        editor.command("set eventignore=FileType")  # Debian packs the colours' parser apart
        for tag in ("codespec", "codespec-options", "codespec-missing", ":Codespec", "codespec.statusline()"):
            editor.command(f"help {tag}")
            assert editor.lua("return vim.fn.expand('%:t')") == "codespec.txt", tag


def make_help(folder):
    from tests.editors.neovim_editor import PLUGIN

    copied = folder / "help" / "doc"
    copied.mkdir(parents=True)
    (copied / "codespec.txt").write_text((PLUGIN / "doc" / "codespec.txt").read_text())
    return copied


def test_every_option_is_in_the_help_and_the_readme(kind, folder):
    from tests.editors.neovim_editor import PLUGIN

    with editing(kind, folder, STUB, "abc\n") as editor:
        defaults = editor.lua("return require('codespec.options').defaults")
    for text in ((PLUGIN / "doc" / "codespec.txt").read_text(), (PLUGIN / "README.md").read_text()):
        assert [name for name in [*defaults, *defaults["keys"], "native"] if name not in text] == []
        assert json.dumps(defaults["debounce_ms"]) in text
