"""``python -m tests.remote.wire``: secrets that come into a workspace in five ways, and what of them is sent away.

As ``tests.lsp.histories``, but the target is an engine elsewhere: a stand-in for one with ``/v1/completions``, which
keeps the body of every request. A real server, without a model process, asks it for completions in a file with a
secret, or behind it, and in an ordinary one beside it. The secret's value must stand in no body.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lsprotocol import types

from tests.lsp.helpers import running as running_server
from tests.lsp.histories import HISTORIES, Case, cases, play
from tests.remote.faulty_engine import Request, running

SERVE = [sys.executable, "-m", "codespec", "serve", "--in-process"]
OPTIONS = {"prefetch": True, "log_level": "debug", "shared": False}
SETTINGS = """
[remote]
kind = "openai"
url = "{url}"
fallback = "none"
"""


def answer(request: Request) -> None:
    """A model of one text."""
    if request.path == "/v1/models":
        return request.answer({"object": "list", "data": [{"id": "stand-in", "object": "model"}]})
    pieces = [{"choices": [{"index": 0, "text": text, "finish_reason": None}]} for text in ("area(2,", " 3)", "\n")]
    lines = [b"data: " + json.dumps(each).encode() + b"\n\n" for each in pieces]
    return request.pieces(*lines, b"data: [DONE]\n\n")


async def session(history: str, found: Sequence[Case], home: Path) -> None:
    """A server that lives through one history of every case."""
    folders = [types.WorkspaceFolder(case.folder.as_uri(), case.folder.name) for case in found]
    async with running_server(home, SERVE, options=OPTIONS, folders=folders) as server:
        for case in found:
            await play(history, case, server)


def measure(history: str, count: int, seed: int) -> tuple[int, list[str]]:
    """How many forms were played, and which secrets left the machine."""
    with tempfile.TemporaryDirectory() as folder, running() as engine:
        base = Path(folder).resolve()
        found, home = cases(base / "work", count, seed), base / "home"
        engine.answers = [answer]
        settings = home / "config" / "codespec" / "codespec.toml"
        settings.parent.mkdir(parents=True)
        settings.write_text(SETTINGS.format(url=engine.url), "utf-8")
        with contextlib.redirect_stderr(io.StringIO()):
            asyncio.run(session(history, found, home))
        sent = [_text(json.loads(body)) for path, _, body in engine.seen if body]
        asked = sum("return width * height" in text for text in sent)
        assert asked >= len(found), f"only {asked} requests for {len(found)} ordinary files"
        secrets = [(case, secret) for case in found for secret in case.secrets]
        return len(found), [str(case.path) for case, secret in secrets for text in sent if secret in text]


def _text(value: Any) -> str:
    """All texts in a request."""
    if isinstance(value, dict):
        return "\n".join(map(_text, value.values()))
    if isinstance(value, list):
        return "\n".join(map(_text, value))
    return str(value)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.remote.wire", description=__doc__)
    parser.add_argument("--forms", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--histories", nargs="+", choices=HISTORIES, default=HISTORIES)
    chosen = parser.parse_args()
    for history in chosen.histories:
        played, found = measure(history, chosen.forms, chosen.seed)
        print(f"{history}: {played} forms, {len(found)} leaks", *found, sep="\n  ", flush=True)


if __name__ == "__main__":
    main()
