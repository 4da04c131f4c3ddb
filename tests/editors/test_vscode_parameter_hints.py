"""Escape closes what VS Code shows of a call before it drops a next edit."""

from __future__ import annotations

from code_server import VSIX, install_extension
from drawn_edits import MANUAL, rename, wait_for
from other_extension import package


def test_escape_closes_parameter_hints_first(window, programs, tmp_path):
    for vsix in (VSIX[-1], package(tmp_path)):
        install_extension(vsix, tmp_path / "extensions")
    editor = window("beside parameter hints", MANUAL, extensions=tmp_path / "extensions")
    editor.wait_until_ready()
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
