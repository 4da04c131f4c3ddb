"""The window of VS Code that a test types in and looks at."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.editors.code_server import WAIT_S, CodeServer, wait_until
from tests.editors.common import ROOT

LIST_MS = WAIT_S * 1_000 / 3
"""For an entry of a list, before the list is brought up again."""

STATUS = ".statusbar-item[id='codespec.codespec.codespec.status']"

SETTLED_S = 1.5
"""What is shown unchanged for so long will stay."""

# What a person sees in the lines of the editor, ghost text included, from the top; without white space at their ends.
LINES = """(ghosts) => {
  const editor = document.querySelector('.editor-instance .monaco-editor');
  const text = (line) => {
    const node = line.cloneNode(true);
    const shown = node.querySelectorAll('.ghost-text-decoration, .ghost-text-decoration-preview');
    if (!ghosts) shown.forEach((each) => each.remove());
    return node.textContent.replace(/\\u00a0/g, ' ').replace(/[\\u200b\\u200c]/g, '').trimEnd();
  };
  const lines = [...(editor?.querySelectorAll('.view-lines .view-line') ?? [])]
    .map((line) => [line.getBoundingClientRect().top, text(line)]);
  return lines.sort((a, b) => a[0] - b[0]).map((each) => each[1]);
}"""

GHOST = """() => {
  const text = (node) => node.textContent.replace(/\\u00a0/g, ' ').replace(/[\\u200b\\u200c]/g, '');
  const within = document.querySelector('.editor-instance .monaco-editor');
  if (!within) return '';
  const visible = (node) => node.getClientRects().length > 0;
  const inline = [...within.querySelectorAll('.ghost-text-decoration, .ghost-text-decoration-preview')].filter(visible);
  const more = [...within.querySelectorAll('.view-zones .suggest-preview-text > .view-line')];
  return [inline.map(text).join(''), ...more.map(text)].join('\\n');
}"""

BACKGROUND = """() => {
  return getComputedStyle(document.querySelector('.monaco-workbench')).getPropertyValue('--vscode-editor-background');
}"""

# Notes what is shown in every frame, until told to stop.
RECORD = f"""() => {{
  const ghost = {GHOST};
  const frames = (window.codespecFrames = []);
  window.codespecRecording = true;
  const step = () => {{
    frames.push(ghost());
    if (window.codespecRecording) requestAnimationFrame(step);
  }};
  requestAnimationFrame(step);
}}"""


class Editor:
    """A browser window with one workspace."""

    def __init__(self, page: Any, server: CodeServer, artifacts: Path) -> None:
        self.page, self.server, self.artifacts = page, server, artifacts
        self._number = self._configured = 0
        page.set_default_timeout(WAIT_S * 1_000)
        page.goto(f"http://127.0.0.1:{server.port}/?folder={server.workspace}")
        page.locator(".monaco-workbench").wait_for()
        page.locator(".explorer-viewlet").wait_for()

    def open(self, name: str, text: str) -> Path:
        """Create a file and open it, with the cursor at its beginning."""
        path = self.server.workspace / name
        path.write_bytes(text.encode())
        # Not by the explorer: it shows only as many files as there is room for.
        self._choose_from(lambda: self.press("Control+P"), str(path), name)
        self.page.locator(f".tab.active[data-resource-name='{name}']").wait_for()
        self.wait(lambda: self.lines()[:1] == [text.split("\n")[0].rstrip()], f"{name} is open")
        self.focus()
        return path

    def close_all(self) -> None:
        """Close all files, which are saved."""
        self.press("Control+K", "Control+W")
        self.wait(lambda: self.page.locator(".tab").count() == 0, "all files are closed")

    def focus(self) -> None:
        self.page.locator(".editor-instance .view-lines").first.click(position={"x": 300, "y": 250})
        self.press("Control+Home")

    def type(self, text: str, delay_ms: float = 0) -> None:
        self.page.keyboard.type(text, delay=delay_ms)

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def lines(self) -> list[str]:
        """The lines on the screen; those of ghost text behind the first are not among them."""
        return self.page.evaluate(LINES, True)

    def document(self) -> list[str]:
        """The lines on the screen without ghost text."""
        return self.page.evaluate(LINES, False)

    def accept(self) -> None:
        """Press Tab, and wait until the document holds what was shown. More may be offered at once: whether there is
        ghost text does not tell."""
        before = self.document()
        self.press("Tab")
        self.wait(lambda: self.document() != before, "what was shown is accepted")

    def ghost(self) -> str:
        """The ghost text on the screen; empty if there is none."""
        return self.page.evaluate(GHOST)

    def wait(self, condition: Callable[[], Any], what: str | Callable[[], str], timeout: float = WAIT_S) -> Any:
        try:
            return wait_until(condition, what, timeout)
        except AssertionError as error:
            self.picture("failed")
            shown = f"on the screen: {self.lines()}\nghost text: {self.ghost()!r}"
            raise AssertionError(f"{error}\n{shown}\n{self.server.extension_log[-6000:]}") from None

    def wait_for_ghost(self, text: str | None = None) -> str:
        """Wait until there is this ghost text; without one until there is some and it stays as it is: an answer for
        what was typed before the last key may be shown until that for all of it comes."""
        if text is None:
            return self.wait(self._settled, "ghost text that stays")
        self.wait(lambda: self.ghost() == text, f"the ghost text {text!r}")
        return text

    def _settled(self) -> str:
        found, end = self.ghost(), time.monotonic() + SETTLED_S
        while found and time.monotonic() < end and self.ghost() == found:
            time.sleep(0.05)
        return found if found and self.ghost() == found and time.monotonic() >= end else ""

    def wait_for_no_ghost(self) -> None:
        self.wait(lambda: not self.ghost(), "no ghost text")

    def save(self, path: Path) -> str:
        """Save, and give what is then in the file."""
        self.press("Control+S")
        self.wait(lambda: self.page.locator(".tab.active.dirty").count() == 0, "the file is saved")
        return path.read_bytes().decode()

    def record(self) -> None:
        """Note the ghost text of every frame from now on."""
        self.page.evaluate(RECORD)

    def frames(self) -> list[str]:
        """The ghost text of every frame since ``record``."""
        return self.page.evaluate("() => { window.codespecRecording = false; return window.codespecFrames; }")

    def use_theme(self, name: str) -> None:
        """Choose the colours, and wait until they are there."""
        before = self.page.evaluate(BACKGROUND)
        self.run("Preferences: Color Theme")
        self.page.locator(".quick-input-list .monaco-list-row", has_text="Modern").first.wait_for()
        self.page.keyboard.insert_text(name)
        self.choose(name)
        self.wait(lambda: self.page.evaluate(BACKGROUND) != before, f"the colours of {name}")

    def run(self, title: str) -> None:
        """Run a command of the command palette."""
        self._choose_from(lambda: self.press("F1"), title, title)

    def open_menu(self, entry: str) -> None:
        """Click on the status bar's entry and choose one of the menu."""
        self._choose_from(self.page.locator(STATUS).click, "", entry)

    def _choose_from(self, show: Callable[[], None], text: str, label: str) -> None:
        """Choose an entry of a list that ``show`` brings up, where ``text`` is typed. A list goes away when something
        else takes the focus, such as a panel that is still being opened: a person would then bring it up again."""
        from playwright.sync_api import TimeoutError

        end = time.monotonic() + WAIT_S
        while True:
            try:
                show()
                if text:
                    self.page.locator(".quick-input-widget input").first.wait_for(timeout=LIST_MS)
                    self.page.keyboard.insert_text(text)
                return self.choose(label, LIST_MS)
            except TimeoutError:
                if time.monotonic() > end:
                    self.picture("failed")
                    raise
                self.press("Escape")

    def choose(self, label: str, timeout_ms: float = WAIT_S * 1_000) -> None:
        """Choose the entry of the open list that has this text."""
        self.page.locator(".quick-input-list .monaco-list-row", has_text=label).first.click(timeout=timeout_ms)

    def configure(self, settings: Mapping[str, Any]) -> None:
        """Write the settings of codespec, and wait until the window has read them, which its title tells."""
        self._configured += 1
        title = f"settings {self._configured}"
        self.server.write({**settings, "window.title": title})
        self.wait(lambda: self.page.title() == title, "the settings are read")

    def status(self) -> str:
        """The entry of the status bar."""
        item = self.page.locator(STATUS)
        return item.inner_text().replace("\u00a0", " ").strip() if item.count() else ""

    def told(self) -> str:
        """What a screen reader says of that entry; the hint over it has the same lines."""
        return self.page.locator(f"{STATUS} [aria-label]").first.get_attribute("aria-label") or ""

    def wait_until_ready(self) -> None:
        self.wait(lambda: "·" in self.status(), "the models are loaded")

    def picture(self, name: str) -> Path:
        """Keep what is on the screen."""
        self._number += 1
        path = self.artifacts / f"{self._number:02}-{name}.png"
        self.page.mouse.move(500, 500)  # no hint of what lies below it
        self.page.screenshot(path=str(path))
        return path

    def publish(self, name: str, **part: float) -> None:
        """Keep what is on the screen, or a part of it, as a picture of the documentation, where that is asked for."""
        if os.environ.get("CODESPEC_PICTURES"):
            self.page.mouse.move(150, 400)  # where it opens no hint
            self.page.screenshot(path=str(ROOT / "docs" / name), clip=part or None)
