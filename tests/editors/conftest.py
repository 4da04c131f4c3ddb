"""Real editors: windows that tests share as long as they pass, pictures of what was on the screen, and repetition.

``$CODESPEC_ARTIFACTS`` names the folder for pictures, ``$CODESPEC_REPEAT`` how many times every test runs. With ``$CI``
set, a test whose programs are missing fails instead of being skipped.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.editors import code_server, other_extension
from tests.editors.common import ROOT
from tests.editors.vscode_window import Editor


def missing() -> list[str]:
    """What VS Code's tests lack on this machine."""
    return [
        what
        for what, there in (
            ("code-server and its Node (tests/editors/install.sh)", code_server.installed()),
            ("Chromium (a program `chromium`, or $CODESPEC_CHROMIUM)", bool(code_server.CHROMIUM)),
            ("playwright (pip install playwright)", importlib.util.find_spec("playwright") is not None),
            ("the packaged extension (npm run package in editors/vscode)", bool(code_server.VSIX)),
            ("the embedded models", len(list((ROOT / "codespec" / "data").glob("*.gguf"))) >= 2),
        )
        if not there
    ]


def pytest_generate_tests(metafunc):
    """Run every test several times in a row."""
    times = int(os.environ.get("CODESPEC_REPEAT", "1"))
    if times > 1:
        metafunc.fixturenames.append("repetition")
        metafunc.parametrize("repetition", range(1, times + 1))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    if outcome.get_result().failed:
        item.session.stash[FAILED] = item.session.stash.get(FAILED, 0) + 1


FAILED = pytest.StashKey[int]()
CLOSED_EARLY = pytest.StashKey[list[Any]]()


@pytest.fixture(scope="session")
def programs():
    """Skips, or with ``$CI`` fails, where something is missing."""
    lacking = missing()
    if lacking:
        text = f"missing: {', '.join(lacking)}; `make test-editors` installs all of it"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(text)


@pytest.fixture(scope="session")
def extensions(programs, tmp_path_factory) -> Path:
    """A folder with the packaged extension in it."""
    folder = tmp_path_factory.mktemp("extensions")
    code_server.install_extension(code_server.VSIX[-1], folder)
    return folder


@pytest.fixture(scope="session")
def both(programs, tmp_path_factory) -> Path:
    """A folder with another extension beside ours."""
    folder = tmp_path_factory.mktemp("both")
    for vsix in (code_server.VSIX[-1], other_extension.package(folder)):
        code_server.install_extension(vsix, folder / "extensions")
    return folder / "extensions"


class Chromium:
    """The browser, and Playwright with it, whose event loop runs in this thread until it is closed."""

    def __init__(self) -> None:
        self._open = contextlib.ExitStack()
        self._browser: Any = None

    def get(self) -> Any:
        """Playwright's browser, started where none runs."""
        if self._browser is None:
            from playwright.sync_api import sync_playwright

            # Nothing but this machine is reached.
            arguments = ["--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
            playwright = self._open.enter_context(sync_playwright())
            self._browser = playwright.chromium.launch(executable_path=code_server.CHROMIUM, args=arguments)
            self._open.callback(self._browser.close)
        return self._browser

    def close(self) -> None:
        self._browser = None
        self._open.close()


@pytest.fixture(scope="session")
def chromium(programs, request) -> Iterator[Chromium]:
    found = Chromium()
    request.session.stash[CLOSED_EARLY] = [found]
    yield found
    found.close()


@pytest.fixture
def browser(chromium) -> Any:
    return chromium.get()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item, nextitem):
    """Close the browser before a test that does not use it: that may want an event loop of its own."""
    if nextitem is None or "chromium" not in getattr(nextitem, "fixturenames", ()):
        for each in item.session.stash.get(CLOSED_EARLY, []):
            each.close()


@pytest.fixture(scope="session")
def artifacts(tmp_path_factory) -> Path:
    named = os.environ.get("CODESPEC_ARTIFACTS")
    folder = Path(named) if named else tmp_path_factory.mktemp("artifacts")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


class Windows:
    """Windows by kind: opening one takes many seconds, so tests share them; after a failure none is used again."""

    def __init__(self, chromium: Chromium, extensions: Path, session: pytest.Session) -> None:
        self._chromium, self._extensions, self._session = chromium, extensions, session
        self._open: dict[str, tuple[Editor, code_server.CodeServer, Any]] = {}
        self._failures = 0

    def get(self, kind: str, artifacts: Path, **options: Any) -> Editor:
        failures = self._session.stash.get(FAILED, 0)
        if failures > self._failures:
            self.close()
            self._failures = failures
        if kind not in self._open:
            self._open[kind] = self._new(artifacts, **options)
        editor = self._open[kind][0]
        editor.artifacts = artifacts
        return editor

    def _new(
        self, artifacts: Path, extensions: Path | None = None, **options: Any
    ) -> tuple[Editor, code_server.CodeServer, Any]:
        server = code_server.CodeServer(extensions or self._extensions, **options)
        try:
            context = self._chromium.get().new_context(viewport={"width": 1000, "height": 620})
            context.grant_permissions(["clipboard-read", "clipboard-write"])
            return Editor(context.new_page(), server, artifacts), server, context
        except BaseException:
            server.close()
            raise

    def close(self) -> None:
        for _, server, context in self._open.values():
            context.close()
            server.close()
        self._open.clear()


@pytest.fixture(scope="session")
def windows(chromium, extensions, request) -> Iterator[Windows]:
    opened = Windows(chromium, extensions, request.session)
    request.session.stash[CLOSED_EARLY].insert(0, opened)
    yield opened
    opened.close()


@pytest.fixture
def window(windows, artifacts, request) -> Callable[..., Editor]:
    """Gives a window of a kind; ``settings``, ``extensions`` (their folder), ``environment`` and ``path`` count for the
    first test of a kind."""

    def get(kind: str, settings: Mapping[str, Any], **options: Any) -> Editor:
        folder = artifacts / re.sub(r"\W+", "-", request.node.name).strip("-")
        folder.mkdir(exist_ok=True)
        return windows.get(kind, folder, settings=settings, **options)

    return get
