"""Escape closes what VS Code shows of a name or a call before it drops a next edit."""

from __future__ import annotations

import pytest

from tests.editors.drawn_edits import MANUAL, offered, rename, wait_for


@pytest.fixture
def editor(window, both):
    editor = window("beside parameter hints", MANUAL, extensions=both)
    editor.wait_until_ready()
    return editor


def closes_first(editor, widget) -> None:
    """See that Escape closes a widget, and that the next one drops the edit."""
    editor.press("Escape")
    editor.wait(lambda: widget.count() == 0, "it is closed")
    wait_for(editor, ["count"], "total", "Tab: apply")
    editor.press("Escape")
    wait_for(editor, [])


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
    closes_first(editor, hints)
    editor.save(path)


def test_escape_closes_references_first(editor):
    path = offered(editor)
    editor.press("Shift+F12")
    peek = editor.page.locator(".reference-zone-widget")
    peek.locator(".view-lines").click()
    wait_for(editor, [])  # it is drawn there
    editor.picture("references")
    closes_first(editor, peek)
    editor.save(path)
