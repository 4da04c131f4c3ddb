"""``textDocument/completion`` for clients without inline completion."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from lsprotocol import types

from ..helpers import Server, raw

pytestmark = pytest.mark.asyncio(loop_scope="module")

names = (f"file:///work/menu{number}.py" for number in itertools.count())


async def entries(server: Server, line: int, character: int, uri: str) -> Any:
    params = types.CompletionParams(types.TextDocumentIdentifier(uri), types.Position(line, character))
    return await server.client.text_document_completion_async(params)


async def test_an_entry_takes_the_place_of_the_word_before_the_cursor(shared):
    uri = next(names)
    shared.open("import os\nx = abc)\n", uri)
    found = await entries(shared, 1, 7, uri)
    assert found.is_incomplete
    [entry] = found.items
    start, end = types.Position(1, 4), types.Position(1, 7)
    assert entry.text_edit == types.TextEdit(types.Range(start, end), "abc<abc|128>")
    assert (entry.label, entry.filter_text, entry.detail) == ("abc<abc|128>", "abc<abc|128>", "codespec")
    assert entry.preselect
    assert entry.kind == types.CompletionItemKind.Text
    assert entry.insert_text_format == types.InsertTextFormat.PlainText


async def test_several_lines_are_shown_in_full_beside_their_first(shared):
    uri = next(names)
    shared.open("two lines\r\n", uri)
    [entry] = (await entries(shared, 0, 9, uri)).items
    assert entry.label == "linesone"
    assert entry.kind == types.CompletionItemKind.Snippet
    assert entry.documentation == "linesone\ntwo"
    assert entry.text_edit.new_text == "linesone\ntwo\n"


async def test_it_shares_memory_and_commands_with_inline_completion(shared):
    uri = next(names)
    shared.open("x = 1", uri)
    [item] = (await shared.ask(0, 5, uri)).items
    [entry] = (await entries(shared, 0, 5, uri)).items
    assert item.insert_text == "x = " + entry.text_edit.new_text
    assert entry.command.command == item.command.command
    assert shared.stderr.count(f"stub: begin {uri.rpartition('/')[2]}") == 1


async def test_nothing_to_add_and_nothing_to_say(shared):
    uri = next(names)
    shared.open("nothing", uri)
    assert not (await entries(shared, 0, 7, uri)).items
    assert await entries(shared, 0, 0, "file:///not/open.py") is None


@pytest.mark.parametrize("inline", [True, False])
async def test_only_clients_without_inline_completion_get_it(tmp_path, inline):
    with raw(tmp_path) as server:
        documents = {"inlineCompletion": {}} if inline else {"completion": {}}
        capabilities = {"textDocument": documents}
        server.request(0, "initialize", {"processId": None, "rootUri": None, "capabilities": capabilities})
        answer = server.answer(0, timeout=30)["result"]["capabilities"]
        assert "inlineCompletionProvider" in answer
        assert ("completionProvider" in answer) is not inline
