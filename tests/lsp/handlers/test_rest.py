"""Ghost text by its key only, after a rest of the keyboard, and where the processor is to be spared."""

from __future__ import annotations

import asyncio

import pytest
from lsprotocol import types

from ..helpers import run_command, running, until

pytestmark = pytest.mark.asyncio

URI = "file:///work/a.py"


def whole(text: str) -> types.TextDocumentContentChangeWholeDocument:
    return types.TextDocumentContentChangeWholeDocument(text)


async def test_by_its_key_only(tmp_path):
    async with running(tmp_path, options={"automatic": False, "generate_ahead": True}) as server:
        server.open("abc", URI)
        assert (await server.ask(0, 3, URI)).items == ()
        assert (await run_command(server, "codespec.status"))["nothing"]["short"] == "by key"
        [item, *_] = (await server.ask(0, 3, URI, invoked=True)).items
        assert item.insert_text.startswith("abc<")
        # What is shown stays while it is typed along.
        server.change(whole("abc<"), URI, 2)
        assert (await server.ask(0, 4, URI)).items[0].insert_text == item.insert_text
        server.change(whole("abcd"), URI, 3)
        assert (await server.ask(0, 4, URI)).items == ()
        assert server.stderr.count("stub: begin") == 1


@pytest.mark.parametrize("options", [{"debounce_ms": 2000}, {"quiet": "always"}])
async def test_the_keyboard_has_to_rest(tmp_path, options):
    async with running(tmp_path, options=options) as server:
        server.open("abc", URI)
        first = asyncio.ensure_future(server.ask(0, 3, URI))
        await asyncio.sleep(0)  # it is sent before what is typed
        server.change(whole("abcd"), URI, 2)
        answer = await asyncio.gather(first, server.ask(0, 4, URI))
        assert answer[0] is None
        assert answer[1].items[0].insert_text == "abcd<bcd|128>"
        assert server.stderr.count("stub: begin") == 1


async def test_who_asks_by_the_key_does_not_wait_nor_does_what_is_known(tmp_path):
    async with running(tmp_path, options={"debounce_ms": 10_000}) as server:
        server.open("abc", URI)
        for invoked in (True, False):
            assert (await asyncio.wait_for(server.ask(0, 3, URI, invoked=invoked), 9)).items


async def test_nothing_is_made_ahead_where_it_is_quiet(tmp_path):
    options = {"quiet": "always", "prefetch": True, "generate_ahead": True}
    async with running(tmp_path, options=options) as server:
        server.open("abc", URI)
        at = types.Position(0, 3)
        server.change(types.TextDocumentContentChangePartial(types.Range(at, at), "d"), URI, 2)
        assert (await server.ask(0, 4, URI)).items
        await asyncio.sleep(0.3)
        assert server.stderr.count("stub: begin") == 1
        settings = {"codespec": {**options, "quiet": "never"}}
        server.client.workspace_did_change_configuration(types.DidChangeConfigurationParams(settings))
        server.change(types.TextDocumentContentChangePartial(types.Range(at, at), "e"), URI, 3)
        await until(lambda: server.stderr.count("stub: begin") == 2)
