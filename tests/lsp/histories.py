"""``python -m tests.lsp.histories``: secrets that come into a workspace in five ways, and where they are found then.

A real server with the embedded models; a workspace folder for each form of ``tests/privacy_forms``, with a file that
holds it and an ordinary one. The file is typed, pasted into, opened, opened through a link, or lies there and is
imported. Then the ordinary file is completed, and the server ends. The secret's value must stand in no prompt of
another file, in nothing that the server says (messages, logs, its status, the trace of the ordinary file's completion)
and nowhere on the disk (n-grams, KV caches, statistics, logs): not as bytes, and not in the
tokens of what was learnt or read. With ``--crash`` the server is one with a model process of its own, which ends in the
middle of a request by the signal that an abort in native code raises, and says where it was.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lsprotocol import types

from codespec.engine.local import LocalEngine
from codespec.models.registry import EMBEDDED_TARGET
from codespec.privacy.secrets import has_secret_name, is_secret
from tests.privacy_forms import common, held_out, tuned
from tests.privacy_forms.values import Form, values

from .helpers import Server, running, until

HISTORIES = ("typed", "pasted", "opened", "linked", "imported")
SERVE = [sys.executable, "-m", "tests.lsp.recording_server"]
SHARED = [sys.executable, "-m", "codespec", "serve"]
OPTIONS = {"prefetch": True, "log_level": "debug"}
AROUND = {
    ".py": "def area(width, height):\n    return width * height\n\n\n",
    ".js": "function area(width, height) {\n  return width * height;\n}\n\n",
}


@dataclass(frozen=True)
class Case:
    """A form in a workspace folder of its own. ``secrets`` are the values that stand in ``text``."""

    folder: Path
    path: Path
    text: str
    secrets: tuple[str, ...]

    @property
    def ordinary(self) -> Path:
        return self.folder / ("main.js" if self.path.suffix in (".js", ".ts", ".tsx", ".jsx") else "main.py")

    @property
    def link(self) -> Path:
        return self.folder / f"link{self.ordinary.suffix}"

    @property
    def imports(self) -> str:
        stem = self.path.stem
        return f'import * as all from "./{stem}";\n' if self.ordinary.suffix == ".js" else f"from {stem} import *\n"


def cases(base: Path, count: int, seed: int) -> list[Case]:
    """Cases of forms that are found by their text."""
    forms = [
        form for form in (*tuned.FORMS, *held_out.FORMS, *common.FORMS) if form.text and not has_secret_name(form.path)
    ]
    random.Random(seed).shuffle(forms)
    found: list[Case] = []
    for index, form in enumerate(forms):
        text = form.filled(seed + index)
        if len(found) < count and is_secret(form.path, text):
            folder = base / f"w{index}"
            path = folder / Path(form.path).name
            path.parent.mkdir(parents=True)
            found.append(Case(folder, path, text, _secrets(form, seed + index)))
    return found


def _secrets(form: Form, seed: int) -> tuple[str, ...]:
    """The form's values, but for those that are the same in every file: a user's name, a key's first line."""
    names = set(re.findall(r"<<(\w+)>>", form.text)) - {"user", "pemhead"}
    return tuple(value for name, value in values(seed).items() if name in names and len(value) >= 6)


async def play(history: str, case: Case, server: Server) -> None:
    """One way in which the secret comes into the workspace, and completions in both files."""
    uri, before = case.path.as_uri(), AROUND[case.ordinary.suffix]
    if history in ("opened", "linked", "imported"):
        case.path.write_text(case.text, encoding="utf-8")
    if history == "opened":
        await _use(server, uri, case.text)
    elif history == "linked":
        case.link.symlink_to(case.path)
        await _use(server, case.link.as_uri(), case.text)
    elif history in ("typed", "pasted"):
        await _use(server, uri, "\n")
        steps = [case.text] if history == "pasted" else [case.text[:end] for end in range(1, len(case.text) + 1)]
        for version, text in enumerate(steps, 2):
            server.change(types.TextDocumentContentChangeWholeDocument(text), uri, version)
            if version % 16 == 0:
                await _ask(server, uri, text, accept=True)
        case.path.write_text(case.text, encoding="utf-8")
        await _ask(server, uri, case.text, accept=True)
        _save(server, uri)
    text = (case.imports if history == "imported" else "") + before * 2 + "result = "
    case.ordinary.write_text(text, encoding="utf-8")
    await _use(server, case.ordinary.as_uri(), text)


async def _use(server: Server, uri: str, text: str) -> None:
    language = {".py": "python", ".js": "javascript"}.get(Path(uri).suffix, "plaintext")
    server.open(text, uri, language)
    await _ask(server, uri, text, accept=True)
    _save(server, uri)


def _save(server: Server, uri: str) -> None:
    server.client.text_document_did_save(types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(uri)))


async def _ask(server: Server, uri: str, text: str, accept: bool) -> None:
    lines = text.split("\n")
    answer = await server.ask(len(lines) - 1, len(lines[-1]), uri)
    if accept and answer.items and answer.items[0].command:
        command = answer.items[0].command
        params = types.ExecuteCommandParams(command.command, command.arguments)
        await server.client.workspace_execute_command_async(params)


async def session(history: str, found: Sequence[Case], home: Path, recorded: Path, crash: bool) -> None:
    """A server that lives through one history of every case; ``recorded`` gets the prompts unless it crashes."""
    folders = [types.WorkspaceFolder(case.folder.as_uri(), case.folder.name) for case in found]
    env = {"RECORDED": str(recorded), "CODESPEC_CACHE": str(home / "cache")}
    said: list[str] = []
    async with running(home, SHARED if crash else SERVE, env, OPTIONS, folders=folders) as server:
        for case in found:
            await play(history, case, server)
            said.append(json.dumps(await _command(server, "codespec.trace")))
        await asyncio.sleep(0.5)  # what is learnt when nobody types
        said.append(json.dumps(await _command(server, "codespec.status")))
        assert any('"passes": [{' in each for each in said), "no trace was kept"
        if crash:
            await _crash(server, found[-1])
            process = await _process(server)  # another one, that writes its KV caches when it ends
        said += [*server.shown, *(each.message for each in server.client.log_messages), server.stderr]
        (home / "said").write_text("\n".join(said), encoding="utf-8")
    if crash:
        await until(lambda: _ended(process), 60.0)


async def _process(server: Server) -> int:
    return int((await _command(server, "codespec.status"))["process"]["pid"])


def _ended(process: int) -> bool:
    """Whether it runs no more, even if nobody asks how it ended."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True, check=False)
    return state.stdout.strip()[:1] in ("", "Z")


async def _crash(server: Server, case: Case) -> None:
    """The model process crashes in the middle of a request, and another one completes."""
    process = await _process(server)
    text = case.ordinary.read_text("utf-8") + "area(width, height)\n" * 400
    server.change(types.TextDocumentContentChangeWholeDocument(text), case.ordinary.as_uri(), 3)
    asked = asyncio.ensure_future(_ask(server, case.ordinary.as_uri(), text, accept=False))
    await asyncio.sleep(0.2)
    os.kill(process, signal.SIGABRT)
    await asyncio.wait([asked], timeout=60)
    await _ask(server, case.ordinary.as_uri(), text, accept=True)
    assert await _process(server) != process


async def _command(server: Server, name: str) -> Any:
    return await server.client.workspace_execute_command_async(types.ExecuteCommandParams(name))


def leaks(found: Sequence[Case], home: Path, prompts: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Where a secret is."""
    files = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    tokens = dict(_decoded(files))
    for kind in (".sqlite", ".kv"):  # of the ordinary files, or this would find nothing whatever there is
        assert any("height" in text for path, text in tokens.items() if path.suffix == kind), f"no {kind} was kept"
    assert any("statistics" in str(path) for path in files), "no statistics were kept"
    for case in found:
        for secret in case.secrets:
            for path, prompt in prompts:
                if secret in prompt and path not in (str(case.path), str(case.link)):
                    yield f"{case.path}: in a prompt of {path}"
            for place, content in files.items():
                if secret.encode() in content or secret in tokens.get(place, ""):
                    yield f"{case.path}: in {place}"


def _decoded(files: dict[Path, bytes]) -> Iterator[tuple[Path, str]]:
    with contextlib.closing(LocalEngine(EMBEDDED_TARGET)) as engine:
        for path, content in files.items():
            lists: list[Sequence[int]] = []
            if path.suffix == ".sqlite":
                with contextlib.closing(sqlite3.connect(path)) as connection:
                    lists = [array("i", data) for (data,) in connection.execute("SELECT tokens FROM segments")]
            elif path.suffix == ".kv":
                lists = [json.loads(each) for each in re.findall(rb'"tokens": (\[[\d, ]*\])', content)]
            text = b"".join(engine.vocabulary.token_bytes(token) for each in lists for token in each if token >= 0)
            yield path, text.decode("utf-8", "replace")


def measure(history: str, count: int, seed: int, crash: bool = False) -> tuple[int, list[str]]:
    """How many forms were played, and where secrets were found."""
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder).resolve()
        found, home = cases(base / "work", count, seed), base / "home"
        home.mkdir()
        recorded = base / "prompts"
        with contextlib.redirect_stderr(io.StringIO()):  # the server's, which ``session`` keeps
            asyncio.run(session(history, found, home, recorded, crash))
        if crash:
            log = (home / "cache" / "model-process.log").read_text("utf-8", "replace")
            assert "Fatal Python error: Aborted" in log, "the crash said nothing"
            return len(found), list(leaks(found, home, []))
        prompts = [json.loads(line) for line in recorded.read_text("utf-8").splitlines()]
        ordinary = {str(case.ordinary) for case in found}
        seen = {path for path, _ in prompts} & ordinary
        assert seen == ordinary, f"no prompt of {ordinary - seen}"
        return len(found), list(leaks(found, home, prompts))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.lsp.histories", description=__doc__)
    parser.add_argument("--forms", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--histories", nargs="+", choices=HISTORIES, default=HISTORIES)
    parser.add_argument("--crash", action="store_true")
    chosen = parser.parse_args()
    for history in chosen.histories:
        played, found = measure(history, chosen.forms, chosen.seed, chosen.crash)
        print(f"{history}: {played} forms, {len(found)} leaks", *found, sep="\n  ", flush=True)


if __name__ == "__main__":
    main()
