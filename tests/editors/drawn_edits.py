"""Next edits on the screen of VS Code: what is drawn, and in which colours."""

from __future__ import annotations

import base64
import itertools
import json
import time
from pathlib import Path
from typing import Any

from tests.editors.common import STUB

TEXT = "count = 0\nfor x in items:\n    count += 1\nprint(count)\n"
MANUAL = {"codespec.command": STUB}
AUTOMATIC = {**MANUAL, "codespec.edits.mode": "automatic"}
_NUMBERS = itertools.count(1)

PREFIX = "pairnothing"
"""Of the snippet in the window that tests of next edits share; the server completes nothing behind it."""

# It has two tab stops and the end, behind which the server completes nothing.
_SNIPPETS = {"pair": {"prefix": PREFIX, "body": ["<${1:one} ${2:two}>nothing"]}}

# What is struck out, and what is drawn beside other text, from the top.
DRAWN = """() => {
  const cell = document.activeElement?.closest('.notebookOverlay .monaco-editor')?.querySelector('.view-lines');
  const within = cell ?? document.querySelector('.editor-instance .monaco-editor .view-lines');
  const plain = (text) => text.replace(/\\u00a0/g, ' ');
  const found = { gone: [], come: [] };
  const spans = [...(within?.querySelectorAll('.view-line > span span') ?? [])];
  spans.sort((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top);
  for (const span of spans) {
    const struck = getComputedStyle(span).textDecorationLine.includes('line-through');
    if (struck && span.textContent) found.gone.push(plain(span.textContent));
    for (const where of ['::before', '::after']) {
      const text = getComputedStyle(span, where).content;
      if (text.startsWith('"')) found.come.push(plain(text.slice(1, -1)).trim());
    }
  }
  return found;
}"""

# Where texts that go and that come are on the screen: those that stand alone in their element.
_BOXES = """() => {
  const within = document.querySelector('.editor-instance .monaco-editor .view-lines');
  const found = { gone: [], come: [] };
  for (const span of within.querySelectorAll('.view-line > span span')) {
    const { x, y, width, height } = span.getBoundingClientRect();
    const struck = getComputedStyle(span).textDecorationLine.includes('line-through');
    if (struck && span.textContent) found.gone.push({ x, y, width, height });
    const before = getComputedStyle(span, '::before').content;
    if (!span.textContent && before.startsWith('"')) found.come.push({ x, y, width, height });
  }
  return found;
}"""

# The colour that most pixels of a picture have, as the browser itself decodes it.
_COLOUR = """async (picture) => {
  const bytes = Uint8Array.from(atob(picture), (each) => each.charCodeAt(0));
  const image = await createImageBitmap(new Blob([bytes], { type: 'image/png' }));
  const context = new OffscreenCanvas(image.width, image.height).getContext('2d');
  context.drawImage(image, 0, 0);
  const { data } = context.getImageData(0, 0, image.width, image.height);
  const counts = new Map();
  for (let at = 0; at < data.length; at += 4) {
    const colour = data.slice(at, at + 3).join();
    counts.set(colour, (counts.get(colour) ?? 0) + 1);
  }
  return [...counts].sort((a, b) => b[1] - a[1])[0][0].split(',').map(Number);
}"""

# A colour of the theme, as the browser reads it: red, green, blue, and how much of what lies below it covers.
_THEME = """(name) => {
  const probe = document.querySelector('.monaco-workbench').appendChild(document.createElement('i'));
  probe.style.backgroundColor = `var(--vscode-${name})`;
  const [red, green, blue, alpha] = getComputedStyle(probe).backgroundColor.match(/[\\d.]+/g).map(Number);
  probe.remove();
  return [red, green, blue, alpha ?? 1];
}"""


def open_editor(window: Any) -> Any:
    """The window that tests of next edits share, without the files of the test before, where an edit may be next, too.
    Half a minute, after which it is seen what was taken back, is four seconds there."""
    files = {".vscode/pair.code-snippets": json.dumps(_SNIPPETS)}
    editor = window("edits", MANUAL, environment={"CODESPEC_EDIT_CHECK_S": "4"}, files=files)
    editor.wait_until_ready()
    editor.close_all()
    return editor


def name(suffix: str = ".py", stem: str = "edited") -> str:
    """Of a file that is not there yet."""
    return f"{stem}{next(_NUMBERS)}{suffix}"


def rename(editor: Any, text: str = TEXT, suffix: str = ".py") -> Path:
    """Open a file and rename what its first line begins with; the ghost text that this brings is dismissed."""
    path = editor.open(name(suffix), text)
    editor.press(*["Shift+ArrowRight"] * 5)
    editor.type("total")
    editor.wait_for_ghost()
    editor.press("Escape")
    editor.wait_for_no_ghost()
    return path


def offered(editor: Any, text: str = TEXT, suffix: str = ".py") -> Path:
    """Open a file, rename, and have the next use of the name drawn as the next edit."""
    path = rename(editor, text, suffix)
    editor.press("Alt+N")
    wait_for(editor, ["count"], "total", "Tab: apply")
    return path


def drawn(editor: Any) -> dict[str, list[str]]:
    return editor.page.evaluate(DRAWN)


def wait_for(editor: Any, gone: list[str], *come: str) -> None:
    """Wait until just these texts are struck out, and just these are drawn beside others."""
    wanted = {"gone": gone, "come": list(come)}
    editor.wait(lambda: drawn(editor) == wanted, lambda: f"drawn: {wanted}, not {drawn(editor)}")


def never_drawn(editor: Any, seconds: float) -> None:
    """See that nothing is drawn for so long."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = drawn(editor)
        assert found == {"gone": [], "come": []}, f"drawn: {found}, with {end - time.monotonic():.2f} s to go"
        time.sleep(0.05)


def colours(editor: Any) -> dict[str, list[list[int]]]:
    """The backgrounds of texts that go and that come, as the pixels on the screen show them: red, green and blue."""
    return {kind: [_colour(editor, box) for box in boxes] for kind, boxes in editor.page.evaluate(_BOXES).items()}


def expected(editor: Any, name: str) -> list[float]:
    """A colour of the theme over the background of the editor."""
    *below, _ = editor.page.evaluate(_THEME, "editor-background")
    *above, alpha = editor.page.evaluate(_THEME, name)
    return [alpha * new + (1 - alpha) * old for new, old in zip(above, below, strict=True)]


def _colour(editor: Any, box: dict[str, float]) -> list[int]:
    inside = {"x": box["x"] + 1, "y": box["y"] + 2, "width": box["width"] - 2, "height": box["height"] - 4}
    picture = base64.b64encode(editor.page.screenshot(clip=inside)).decode()
    return editor.page.evaluate(_COLOUR, picture)
