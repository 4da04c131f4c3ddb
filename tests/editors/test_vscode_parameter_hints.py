"""Escape closes what VS Code shows of a name or a call before it drops a next edit."""

from __future__ import annotations

import pytest
from code_server import VSIX, install_extension
from drawn_edits import MANUAL, rename, wait_for
from other_extension import package


@pytest.fixture(scope="module")
def extensions_of_both(programs, tmp_path_factory):
    """A folder with an extension that knows names and calls beside ours."""
    folder = tmp_path_factory.mktemp("both")
    for vsix in (VSIX[-1], package(folder)):
        install_extension(vsix, folder / "extensions")
    return folder / "extensions"


@pytest.fixture
def editor(window, extensions_of_both):
    editor = window("beside parameter hints", MANUAL, extensions=extensions_of_both)
    editor.wait_until_ready()
    return editor


def test_escape_closes_parameter_hints_first(editor):
    path = rename(editor)
    editor.press("End")
    editor.type(" # f(nothing")  # behind which the server completes nothing
    editor.press("Control+Shift+Space")
    hints = editor.page.locator(".parameter-hints-widget.visible")
    hints.wait_for()
    editor.press("Alt+N")
    wait_for(editor, ["count"], "total", "Tab: apply")
    assert hints.count() == 1
    editor.press("Escape")
    editor.wait(lambda: hints.count() == 0, "the hints are closed")
    wait_for(editor, ["count"], "total", "Tab: apply")
    editor.press("Escape")
    wait_for(editor, [])
    editor.save(path)


def test_escape_closes_references_first(editor):
    path = rename(editor)
    editor.press("Alt+N")
    wait_for(editor, ["count"], "total", "Tab: apply")
    editor.press("Shift+F12")
    peek = editor.page.locator(".reference-zone-widget")
    peek.locator(".view-lines").click()
    wait_for(editor, [])  # it is drawn there
    editor.picture("references")
    editor.press("Escape")
    editor.wait(lambda: peek.count() == 0, "the references are closed")
    wait_for(editor, ["count"], "total", "Tab: apply")
    editor.press("Escape")
    wait_for(editor, [])
    editor.save(path)
