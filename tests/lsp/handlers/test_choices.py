"""What a client can let the user choose from, a grammar for one document, and the trace of a completion."""

from __future__ import annotations

import sys

import pytest
from lsprotocol import types

from ..helpers import plain, refused, run_command, running, until

pytestmark = pytest.mark.asyncio(loop_scope="module")

REAL = [sys.executable, "-m", "codespec", "serve"]
OTHER = "file:///work/other.py"
LOOPS = "for i in range(10):\n    print(i)\n\nfor j in range(10):\n    print("


async def test_models_and_grammars_at_hand(shared):
    found = plain(await run_command(shared, "codespec.choices"))
    models = {each["value"]: each for each in found["models"]}
    assert models[""]["role"] == "target"
    assert models["draft-python"]["role"] == "draft"
    assert models["edit"]["role"] == "edit"
    assert models["draft-python"]["vocabulary"] == models[""]["vocabulary"]
    assert {"json", "python"} <= set(found["grammars"])


async def test_a_grammar_for_one_document(tmp_path):
    async with running(tmp_path, options={"shared": False}) as server:
        server.open("abc\n")
        server.open("abc\n", uri=OTHER)
        await run_command(server, "codespec.setGrammar", "json", None, OTHER.replace("other", "%6Fther"))
        await server.ask(0, 3, uri=OTHER)
        await until(lambda: server.said("uses auto and json"))
        await server.ask(0, 3)
        await until(lambda: server.said("uses auto and auto"))
        await run_command(server, "codespec.setGrammar", "inherit", None, OTHER)
        await server.ask(0, 2, uri=OTHER)
        await until(lambda: server.stderr.count("uses auto and auto") == 2)
        assert "nonesuch: no such grammar" in await refused(server, "codespec.setGrammar", "nonesuch", None, OTHER)


async def test_there_is_no_trace_before_the_first_completion(tmp_path):
    async with running(tmp_path) as server:
        assert await run_command(server, "codespec.trace") is None


AHEAD = {"generate_ahead": True, "prefetch": True}


@pytest.mark.parametrize(
    "options", [{"shared": False}, {"shared": False, **AHEAD}, {}], ids=["asked", "ahead", "model process"]
)
async def test_the_trace_is_that_of_what_was_shown(tmp_path, options):
    async with running(tmp_path, command=REAL, options={**options, "time_budget_ms": 0}) as server:
        server.open(LOOPS)
        [item] = (await server.ask(4, 10)).items
        trace = plain(await run_command(server, "codespec.trace"))
        assert "    print(" + trace["text"] == item.insert_text
        written = "".join(text for each in trace["passes"] for text in each["tokens"])
        assert written[trace["backed_up"] :].startswith(trace["text"].rstrip("\n)"))
        assert sum(len(each["rejected"]) for each in trace["passes"]) <= trace["drafted"]
        sources = [source for each in trace["passes"] for source in each["sources"]]
        assert set(sources) <= {"target", "model", "ngram", "forced"}
        assert "target" in sources
        assert 0 < sum(each["ms"] for each in trace["passes"]) <= trace["timings_ms"]["total"] * 1.5 + 50


@pytest.mark.parametrize("secret", ["key = 'AKIA" + "QWERTZUIOPASDFGH'", "password = 'Hq7-rT2_wPz9'"])
async def test_there_is_no_trace_of_a_document_in_which_a_secret_is_seen(tmp_path, secret):
    async with running(tmp_path, command=REAL, options={"shared": False, "time_budget_ms": 0}) as server:
        server.open(LOOPS)
        assert (await server.ask(4, 10)).items
        assert await run_command(server, "codespec.trace") is not None
        server.change(types.TextDocumentContentChangeWholeDocument(f"{secret}\n" + LOOPS))
        await server.ask(5, 10)
        assert await run_command(server, "codespec.trace") is None
