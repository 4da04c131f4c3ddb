"""Next edits in a cell of a notebook in VS Code."""

from __future__ import annotations

import json

from tests.editors.drawn_edits import TEXT, drawn, name, open_editor


def notebook(*cells: str) -> str:
    """With cells of Python."""
    code = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    found = [{**code, "id": f"c{index}", "source": text.splitlines(True)} for index, text in enumerate(cells)]
    metadata = {"language_info": {"name": "python"}}
    return json.dumps({"cells": found, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5})


def source(path, cell: int) -> str:
    return "".join(json.loads(path.read_text())["cells"][cell]["source"])


def test_offered_and_applied_in_the_cell_and_in_the_next(window):
    editor = open_editor(window)
    path = editor.server.workspace / name(".ipynb")
    path.write_text(notebook(TEXT.rstrip("\n"), "print(count)"))
    editor.press("Control+P")
    editor.page.locator(".quick-input-widget input").first.wait_for()
    editor.page.keyboard.insert_text(str(path))
    editor.choose(path.name)
    editor.page.locator(f".tab.active[data-resource-name='{path.name}']").wait_for()
    cells = editor.page.locator(".notebookOverlay .cell-editor-container .view-lines:visible")
    cells.nth(1).wait_for()
    cells.first.click(position={"x": 5, "y": 5})
    editor.press("Control+Home", *["Shift+ArrowRight"] * 5)
    editor.type("nothing")  # behind which the server completes nothing
    editor.press("Alt+N")
    editor.wait(lambda: drawn(editor) == {"gone": ["count"], "come": ["nothing", "Tab: apply"]}, "an edit is offered")
    editor.picture("offered")
    editor.press("Tab")
    editor.wait(lambda: "nothing += 1" in cells.first.inner_text().replace("\u00a0", " "), "it is applied")
    editor.wait(lambda: drawn(editor)["gone"] == ["count"], "the one after it is offered")
    editor.press("Tab")
    editor.wait(lambda: "print(nothing)" in cells.first.inner_text(), "it is applied")
    editor.wait(lambda: not drawn(editor)["gone"], "that of the other cell is not offered here")
    cells.nth(1).click(position={"x": 5, "y": 5})
    editor.press("Alt+N")
    editor.wait(lambda: drawn(editor)["gone"] == ["count"], "it is offered there")
    editor.picture("next-cell")
    editor.press("Tab")
    editor.wait(lambda: "print(nothing)" in cells.nth(1).inner_text(), "it is applied")
    editor.save(path)
    assert source(path, 0) == TEXT.rstrip("\n").replace("count", "nothing")
    assert source(path, 1) == "print(nothing)"
