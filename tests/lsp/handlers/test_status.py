"""The client is told of the state of the models, and the log tells nobody what documents hold."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest
from lsprotocol import types

from codespec.lsp.status_reporter import EVERY_S, StatusReporter

from ..helpers import URI, plain, raw, refused, run_command, running, until

pytestmark = pytest.mark.asyncio


async def test_the_client_is_told_when_the_state_changes(tmp_path):
    def states() -> list[str]:
        return [plain(each)["state"] for each in server.client.statuses]

    environment = {"STUB_LOAD_FILE": str(tmp_path / "go on"), "STUB_STEP_S": "0.01"}
    async with running(tmp_path, env=environment, configuration={}) as server:
        await until(lambda: states()[:1] == ["loading"])
        (tmp_path / "go on").touch()
        await until(lambda: "ready" in states())
        server.open("steps=200\nabc\n")
        request = asyncio.create_task(server.ask(0, 9))
        await until(lambda: "busy" in states())
        await request
        await until(lambda: states()[-1] == "ready")
        await server.ask(0, 9)
        await until(lambda: plain(server.client.statuses[-1])["from_memory_share"] == 0.5)
        found = plain(server.client.statuses[-1])
        assert (found["target"], found["language"], found["grammar"]) == ("stub", "python", "auto")
        off = types.DidChangeConfigurationParams({"codespec": {"enabled": False}})
        server.client.workspace_did_change_configuration(off)
        await until(lambda: states()[-1] == "off")


async def test_the_client_is_told_why_nothing_is_shown(tmp_path):
    async with running(tmp_path, configuration={}) as server:

        async def told(line: int, column: int) -> str | None:
            await server.ask(line, column)
            found = await run_command(server, "codespec.status")
            return found["nothing"] and found["nothing"]["short"]

        server.open("unfitting\nlate\nnothing\nelse\n")
        assert await told(0, 9) == "did not fit"
        trace = await run_command(server, "codespec.trace")
        assert (trace["shown"], trace["nothing"]) == ("", "What the model wrote does not fit what follows the cursor")
        assert await told(1, 4) == "time was up"
        server.open("\n\n\nbreaking unfitting\n\n}\n", "file:///work/breaking.py")
        await server.ask(3, 18, "file:///work/breaking.py")
        why = (await run_command(server, "codespec.status"))["nothing"]["why"]
        assert why == "What the model wrote would leave line 6 broken"
        assert await told(2, 7) == "nothing to add"
        assert await told(3, 4) is None
        key = "sk_" + "live_4eC39HqLyjWDarjtT1zdp7dc"  # in two parts: this file holds none
        server.open(f'KEY = "{key}"\n', "file:///work/secret.py")
        await server.ask(0, 3, "file:///work/secret.py")
        assert (await run_command(server, "codespec.status"))["nothing"]["short"] == "private file"
        off = types.DidChangeConfigurationParams({"codespec": {"language": {"python": {"enabled": False}}}})
        server.client.workspace_did_change_configuration(off)
        assert await told(0, 9) == "off here"


async def test_how_much_of_a_prompt_is_read_is_told_while_one_is(tmp_path):
    async with running(tmp_path, env={"STUB_STEP_S": "0.01"}, configuration={}) as server:
        server.open("steps=150\n")
        request = asyncio.create_task(server.ask(0, 9))
        await until(lambda: any(plain(each)["reading"] == 40 for each in server.client.statuses))
        await request
        await until(lambda: plain(server.client.statuses[-1])["reading"] is None)


async def test_the_client_is_told_no_more_than_it_can_show(tmp_path):
    async with running(tmp_path) as server:
        server.open("".join(f"x{number}\n" for number in range(100)))
        began = time.monotonic()
        for number in range(100):
            await server.ask(number, 2)
        count = len(server.client.statuses)
        assert count <= 3 + (time.monotonic() - began) / EVERY_S


async def test_a_failed_load_is_a_state(tmp_path):
    async with running(tmp_path, env={"STUB_LOAD_ERROR": "no such model"}) as server:
        await until(lambda: bool(server.client.statuses))
        await until(lambda: plain(server.client.statuses[-1])["state"] == "failed")


async def test_clients_may_do_without(tmp_path):
    async with running(tmp_path, env={"STUB_LOAD_S": "0.3"}, options={"status": False}) as server:
        await until(lambda: server.said("loaded"))
        server.open("abc\n")
        await server.ask(0, 3)
        on = types.DidChangeConfigurationParams({"codespec": {"status": True}})
        server.client.workspace_did_change_configuration(on)
        await until(lambda: bool(server.client.statuses))
        assert plain(server.client.statuses[0])["state"] == "ready", "none has told of the loading"


async def test_a_stale_status_is_asked_for_again():
    answers: list[dict[str, Any]] = [
        {"draft": "auto", "stale": True},
        {"draft": "auto", "stale": True},
        {"draft": "draft-python"},
    ]
    told: list[Any] = []
    reporter = StatusReporter(lambda: answers.pop(0), lambda _, status: told.append(status["draft"]))
    reporter.touch()
    await until(lambda: not answers)
    await until(lambda: told == ["auto", "draft-python"])


async def test_after_a_status_that_failed_there_is_another():
    told: list[Any] = []
    failed = asyncio.Event()
    loop = asyncio.get_running_loop()

    def status() -> dict[str, Any]:
        if failed.is_set():
            return {"state": "ready"}
        loop.call_soon_threadsafe(failed.set)
        raise RuntimeError("a fault of the model process")

    reporter = StatusReporter(status, lambda _, status: told.append(status["state"]))
    reporter.touch()
    await failed.wait()
    await until(lambda: reporter.touch() or told == ["ready"])


async def test_the_log_never_quotes_a_document(tmp_path):
    marker = "a-secret-that-must-not-be-logged"
    options = {"log_level": "debug", "prefetch": True}
    async with running(tmp_path, env={"STUB_VERBOSE": "1"}, options=options, notebooks=True) as server:
        await until(lambda: server.said("loaded"))
        server.open(f"{marker}\nx = {marker}\nraise", URI)
        at = types.Position(0, 0)
        server.change(types.TextDocumentContentChangePartial(types.Range(at, at), marker))
        server.change(types.TextDocumentContentChangeWholeDocument(f"{marker}\nx = {marker}\nraise"), version=3)
        server.change(types.TextDocumentContentChangeWholeDocument(marker), uri="file:///not/open.py")
        assert marker in (await server.ask(1, 99)).items[0].insert_text
        assert await server.ask(2, 5) is None
        cell = types.TextDocumentItem("vscode-notebook-cell:/a#1", "python", 1, marker)
        book = types.NotebookDocument("file:///a.ipynb", "jupyter", 1, [])
        server.client.notebook_document_did_open(types.DidOpenNotebookDocumentParams(book, [cell]))
        assert (await server.ask(0, 3, cell.uri)).items
        for command in ("codespec.accept", "codespec.acceptPartial", "codespec.reject"):
            arguments = [marker, [marker]] if command.endswith("Partial") else [{"text": marker}]
            await refused(server, command, *arguments)
        server.client.text_document_did_save(types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(URI), marker))
        server.client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(URI)))
        assert "Notification" in server.stderr, "pygls logs what it can"
    assert marker not in server.stderr


async def test_the_log_does_not_quote_what_is_malformed_either(tmp_path):
    marker = "a-secret-that-must-not-be-logged"
    with raw(tmp_path, env={"STUB_VERBOSE": "1"}) as server:
        server.request(0, "initialize", {"processId": None, "rootUri": None, "capabilities": {}})
        server.answer(0, timeout=30)
        server.notify("initialized", {})
        server.asked("window/logMessage", timeout=30)
        server.open("x = \n")
        server.request(1, "textDocument/inlineCompletion", {"position": {"line": marker}})
        assert server.answer(1)["error"]["code"] == -32602
        document = {"uri": URI, "version": marker}
        server.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [marker]})
        server.open("x = \n")  # nothing is offered where a change could not be read
        server.notify("textDocument/didOpen", {"textDocument": {"text": marker}})
        server.notify("textDocument/didChange", {"contentChanges": [{"text": marker}], "textDocument": {"uri": "x:y"}})
        server.notify("no/such/notification", {"text": marker})
        server.send_body(json.dumps({"text": marker}).encode()[:-1])
        server.request(2, "workspace/executeCommand", {"command": marker, "arguments": [marker]})
        assert "error" in server.answer(2)
        server.complete(3, 0, 4)
        assert server.answer(3)["result"]["items"]
    assert marker not in (tmp_path / "stderr").read_text()
