"""What goes before next edits in VS Code: the menu of completions, snippets, ghost text of another extension."""

from __future__ import annotations

import time

import pytest

from tests.editors.drawn_edits import (
    AUTOMATIC,
    MANUAL,
    PREFIX,
    TEXT,
    drawn,
    name,
    never_drawn,
    open_editor,
    rename,
    wait_for,
)
from tests.editors.other_extension import GHOST

PAUSE_S = 1.5
"""After which an edit that comes by itself would be there."""


@pytest.fixture
def editor(window):
    return open_editor(window)


@pytest.fixture
def automatic(editor):
    editor.configure(AUTOMATIC)
    yield editor
    editor.configure(MANUAL)


def insert_pair(editor) -> None:
    """Put the snippet in behind the first line; its first tab stop is selected."""
    before = editor.document()[0]
    editor.press("End")
    editor.type(" #")
    editor.run("Snippets: Insert Snippet")
    editor.choose("pair")
    editor.wait(lambda: editor.document()[0] == f"{before} #<one two>nothing", "the snippet is there")
    # The extension hears of the selected tab stop after it is on the screen, on a busy machine long after. Whoever sees
    # it first types a moment later.
    time.sleep(PAUSE_S)


def first_line(editor, text: str) -> None:
    editor.wait(lambda: editor.document()[0] == text, f"the first line is {text!r}")


def test_tab_goes_to_the_next_tab_stop_of_a_snippet(editor):
    path = rename(editor)
    insert_pair(editor)
    editor.type("1")
    first_line(editor, "total = 0 #<1 two>nothing")
    editor.press("Alt+N")
    status = editor.page.locator(".statusbar")
    editor.wait(lambda: "no next edit within a snippet" in status.inner_text(), "the user is told why there is none")
    never_drawn(editor, PAUSE_S)
    editor.picture("refused")
    editor.press("Tab")
    editor.type("2")
    first_line(editor, "total = 0 #<1 2>nothing")
    editor.press("Tab", "Alt+N")
    wait_for(editor, ["count"], "total", "Tab: apply")
    editor.press("Tab")
    editor.wait(lambda: editor.document()[2] == "    total += 1", "it is applied")
    editor.press("Escape")
    editor.save(path)


def test_nothing_comes_by_itself_within_a_snippet(automatic):
    editor = automatic
    path = rename(editor)
    insert_pair(editor)
    for text in ("nothing", "nothing"):  # behind which the server completes nothing
        editor.type(text)
        editor.wait_for_no_ghost()  # of the keys before the last
        never_drawn(editor, PAUSE_S)
        editor.press("Tab")
    first_line(editor, "total = 0 #<nothing nothing>nothing")
    editor.type("nothing")
    wait_for(editor, ["count"], "total", "Tab: apply")
    editor.picture("behind-it")
    editor.press("Escape")
    editor.save(path)


def test_the_menu_takes_the_edit_off_the_screen(editor):
    path = rename(editor)
    editor.press("End")
    editor.type(f" {PREFIX}")
    editor.press("Alt+N")
    wait_for(editor, ["count"], "total", "Tab: apply")
    menu = editor.page.locator(".suggest-widget.visible")
    editor.press("Control+Space")
    menu.locator(".monaco-list-row", has_text=PREFIX).first.wait_for()
    wait_for(editor, [])
    editor.picture("menu")
    editor.press("Escape")
    editor.wait(lambda: menu.count() == 0, "the menu is closed")
    wait_for(editor, ["count"], "total", "Tab: apply")
    editor.press("Control+Space")
    menu.locator(".monaco-list-row", has_text=PREFIX).first.wait_for()
    editor.press("Alt+N")
    wait_for(editor, ["count"], "total", "Tab: apply")
    assert menu.count() == 0
    editor.press("Control+Space")
    menu.locator(".monaco-list-row", has_text=PREFIX).first.wait_for()
    wait_for(editor, [])
    editor.press("Tab")
    first_line(editor, "total = 0 <one two>nothing")
    assert editor.document()[2] == "    count += 1"
    editor.press("Escape", "Escape")
    editor.save(path)


def test_nothing_comes_by_itself_beside_the_menu(automatic):
    editor = automatic
    path = editor.open(name(), TEXT)
    editor.press(*["Shift+ArrowRight"] * 5)
    editor.type(PREFIX[:-1])
    menu = editor.page.locator(".suggest-widget.visible")
    editor.press("Control+Space")
    menu.locator(".monaco-list-row", has_text=PREFIX).first.wait_for()
    editor.type(PREFIX[-1])
    never_drawn(editor, PAUSE_S)
    menu.locator(".monaco-list-row", has_text=PREFIX).first.wait_for()
    editor.press("Escape")
    wait_for(editor, ["count"], PREFIX, "Tab: apply")
    editor.press("Escape")
    editor.save(path)


@pytest.fixture
def beside(window, both):
    """An editor where the other extension has ghost text, and ours has none, behind ``nothing``."""
    editor = window("beside another", MANUAL, extensions=both)
    editor.wait_until_ready()
    return editor


def with_ghost_text(editor):
    """Open a file, and rename what its first line begins with, which brings the other extension's ghost text."""
    path = editor.open(name(), TEXT)
    editor.press(*["Shift+ArrowRight"] * 5)
    editor.type("nothing")
    editor.wait_for_ghost(GHOST)
    return path


def test_the_key_hides_ghost_text_of_another_extension(beside):
    path = with_ghost_text(beside)
    never_drawn(beside, PAUSE_S)
    beside.press("Alt+N")
    wait_for(beside, ["count"], "nothing", "Tab: apply")
    assert not beside.ghost()
    beside.press("Alt+\\")
    beside.wait_for_ghost(GHOST)
    wait_for(beside, [])
    beside.press("Tab")
    first_line(beside, f"nothing{GHOST} = 0")
    assert beside.document()[2] == "    count += 1"
    beside.press("Escape")
    beside.save(path)


def test_tab_accepts_ghost_text_of_another_extension(beside):
    """VS Code tells nobody of it: an edit that comes by itself may stand beside it, but the key is not taken."""
    beside.configure(AUTOMATIC)
    path = with_ghost_text(beside)
    beside.wait(lambda: drawn(beside)["gone"] == ["count"], "the edit has come by itself")
    assert beside.ghost() == GHOST
    beside.picture("both")
    beside.press("Tab")
    first_line(beside, f"nothing{GHOST} = 0")
    assert beside.document()[2] == "    count += 1"
    beside.press("Escape")
    beside.save(path)
    beside.configure(MANUAL)
