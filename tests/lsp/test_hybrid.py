"""A model with recurrent layers is chosen as any other is, and completes."""

from __future__ import annotations

import sys

import pytest
from lsprotocol import types

from tests.hybrid_models import write

from .helpers import plain, run_command, running

pytestmark = pytest.mark.asyncio(loop_scope="function")

SERVE = [sys.executable, "-m", "codespec", "serve"]
URI = "file:///work/notes.txt"


@pytest.mark.parametrize("architecture", ["falcon-h1", "qwen35"])
async def test_it_completes_key_by_key(tmp_path, architecture):
    path = write(tmp_path / "hybrid.gguf", architecture)
    options = {"target": {"path": str(path)}, "max_tokens": 8, "time_budget_ms": 0}
    async with running(tmp_path, SERVE, options=options) as server:
        server.open("The area is ", URI, language="plaintext")
        texts = [[each.insert_text for each in (await server.ask(0, 12, URI)).items]]
        for version, end in enumerate([1, 2, 3, 2, 3, 4], 2):
            text = "The area is " + "wide"[:end]
            server.change(types.TextDocumentContentChangeWholeDocument(text=text), URI, version)
            texts.append([each.insert_text for each in (await server.ask(0, len(text), URI)).items])
        assert all(texts)
        assert texts[2] == texts[4]  # "wi", typed, deleted and typed again
        assert plain(await run_command(server, "codespec.status"))["target"] == "hybrid"
        assert not server.shown
