"""``codespec serve`` with the embedded models."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import sys
import time

import pytest
import pytest_asyncio
from lsprotocol import types
from pygls.exceptions import JsonRpcRequestCancelled

from .helpers import ROOT, URI, plain, raw, run_command, running, status, until

SERVE = [sys.executable, "-m", "codespec", "serve"]

TEXT = 'import os\r\n\r\nname = "😋"; path = os.path.\r\n\r\n\r\ndef main():\r\n    '
LONG = "".join(f"def function_{n}(value):\n    return value * {n} + {n % 7}\n\n\n" for n in range(2000))
"""More than fits any context, so that the prompt alone takes a while."""

MISSING = [
    what
    for what, there in (
        ("the command line", importlib.util.find_spec("codespec.cli.main") is not None),
        ("the embedded models", len(list((ROOT / "codespec" / "data").glob("*.gguf"))) >= 2),
    )
    if not there
]


@pytest.fixture(autouse=True, scope="module")
def complete_checkout():
    if MISSING:
        reason = f"not in this checkout: {' and '.join(MISSING)}"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def real(tmp_path_factory, complete_checkout):
    options = {"max_tokens": 24, "time_budget_ms": 0}
    async with running(tmp_path_factory.mktemp("real"), command=SERVE, options=options) as server:
        server.open(TEXT)
        server.early = asyncio.create_task(server.ask(2, 28))  # type: ignore[attr-defined]
        yield server
        assert "Traceback" not in server.stderr


@pytest.mark.asyncio(loop_scope="module")
async def test_a_request_before_the_model_is_loaded(real):
    [item] = (await asyncio.wait_for(real.early, 120)).items
    typed = 'name = "😋"; path = os.path.'
    assert item.insert_text.startswith(typed)
    assert item.insert_text != typed
    assert "\r" not in item.insert_text
    assert item.range == types.Range(types.Position(2, 0), types.Position(2, 28))
    assert not real.shown
    await until(lambda: any("loaded" in each.message for each in real.client.log_messages))
    # A model that is loaded before the client has made the bar needs none.
    bars = [reports for reports in real.client.progress_reports.values() if reports]
    assert all(isinstance(reports[-1], types.WorkDoneProgressEnd) for reports in bars)


@pytest.mark.asyncio(loop_scope="module")
async def test_the_same_place_gives_the_same_text(real):
    first, second = [await real.ask(6, 4) for _ in range(2)]
    assert [each.insert_text for each in first.items] == [each.insert_text for each in second.items]


@pytest.mark.asyncio(loop_scope="module")
async def test_another_draft_and_grammar_for_the_session(real):
    uri = "file:///work/chosen.json"
    real.open('{"a": ', uri, language="json")
    for name, said in (("json", "json"), ("none", "none")):
        await run_command(real, "codespec.setGrammar", name, "json")
        await run_command(real, "codespec.setDraft", "draft-python" if name == "json" else "none", "json")
        await real.ask(0, 6, uri)
        found = await status(real)
        assert found["state"] == "ready"
        assert (found["target"], found["language"], found["grammar"]) == ("target", "json", said)
        assert found["draft"] == ("draft-python" if name == "json" else "none")
    assert sum("is loaded" in each.message for each in real.client.log_messages) == 1
    found = await status(real, "python")
    assert (found["draft"], found["grammar"]) == ("draft-python", "auto")


@pytest.mark.asyncio
async def test_the_status_names_the_draft_of_each_open_document(tmp_path):
    def told() -> dict:
        return plain(server.client.statuses[-1])

    options = {"language": {"csv": {"draft": "none"}}, "prefill": False}
    async with running(tmp_path, command=SERVE, options=options) as server:
        server.open("import os\n", "file:///work/some.py")
        server.open("package main\n", "file:///work/some.go", language="go")
        server.open("a,b\n", "file:///work/some.csv", language="csv")
        await until(lambda: bool(server.client.statuses) and told()["state"] == "ready")
        drafts = {"csv": "none", "go": "draft-go", "python": "draft-python"}
        await until(lambda: told()["drafts"] == drafts)
        await server.ask(0, 9, "file:///work/some.py")  # its draft model may still be loading
        await until(lambda: told()["language"] == "python")
        assert (told()["draft"], told()["drafts"]) == ("draft-python", drafts)


@pytest.mark.asyncio(loop_scope="module")
async def test_cancelling_and_superseding(real):
    uri = "file:///work/long.py"
    real.open(LONG, uri)
    bottom = LONG.count("\n")
    request = asyncio.create_task(real.ask(bottom, 0, uri, id="first"))
    await asyncio.sleep(0)  # it is sent; in the middle of the work is what `handlers/test_cancel.py` does
    real.cancel("first")
    with pytest.raises(JsonRpcRequestCancelled):
        await request
    older = asyncio.create_task(real.ask(bottom, 0, uri))
    newer = asyncio.create_task(real.ask(6, 4))
    newest = asyncio.create_task(real.ask(1, 0, uri))
    assert await older is None
    assert await newer is not None
    assert await newest is not None


@pytest.mark.asyncio(loop_scope="module")
async def test_a_storm_of_requests(real):
    requests = []
    for number in range(200):
        requests.append(asyncio.create_task(real.ask(2, 13 + number % 14, id=f"storm-{number}")))
        await asyncio.sleep(0.02)
        if number % 3 == 0:
            real.cancel(f"storm-{number}")
    answers = await asyncio.wait_for(asyncio.gather(*requests, return_exceptions=True), 120)
    for answer in answers:
        assert answer is None or isinstance(answer, (types.InlineCompletionList, JsonRpcRequestCancelled))
    assert (await asyncio.wait_for(real.ask(2, 28), 120)).items


def test_a_killed_client_ends_the_server(tmp_path):
    with raw(tmp_path, SERVE) as server:
        server.handshake()
        item = {"uri": URI, "languageId": "python", "version": 1, "text": LONG}
        server.notify("textDocument/didOpen", {"textDocument": item})
        server.complete(1, 10, 0)
        assert "result" in server.answer(1)
        server.complete(2, LONG.count("\n"), 0)
        time.sleep(0.05)  # in the middle of the prompt, or else idle: either way it must end
        server.hang_up()
        assert server.process.wait(timeout=60) in (0, 1)


def test_a_model_that_does_not_exist(tmp_path):
    with raw(tmp_path, SERVE) as server:
        options = {"target": {"path": "/nowhere/model.gguf"}}
        params = {"processId": None, "rootUri": None, "capabilities": {}, "initializationOptions": options}
        server.request(0, "initialize", params)
        server.answer(0)
        server.notify("initialized", {})
        server.open("x = \n")
        server.complete(1, 0, 4)
        assert server.answer(1)["result"] is None
        server.request(2, "shutdown")
        server.answer(2)
        server.notify("exit")
        assert server.process.wait(timeout=60) == 0


@pytest.mark.asyncio
async def test_a_draft_that_does_not_exist_is_told_once(tmp_path):
    async with running(tmp_path, command=SERVE, options={"draft": "nonesuch"}) as server:
        server.open(TEXT)
        assert [await server.ask(2, 28) for _ in range(3)] == [None] * 3
        [message] = server.shown
        assert message.startswith("codespec: no draft model 'nonesuch'; give the path of a .gguf file")


@pytest.mark.asyncio
async def test_a_model_of_next_edits_that_does_not_exist_is_told_whenever_the_user_asks(tmp_path):
    async with running(tmp_path, command=SERVE, options={"edits": {"model": "nonesuch"}}) as server:
        server.open(TEXT)
        document = {"uri": URI, "version": 1}
        for invoked in (False, True, True):
            context = {"triggerKind": 1 if invoked else 2}
            params = {"textDocument": document, "position": {"line": 0, "character": 0}, "context": context}
            assert await server.client.protocol.send_request_async("codespec/inlineEdit", params) is None
        first, second = server.shown
        assert first == second
        assert first.startswith("codespec: no model of next edits 'nonesuch'; `edits.model` takes the path of")
        assert "draft" not in first
