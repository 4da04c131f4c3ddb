"""What was completed before answers from memory; what comes after it is made ready."""

from __future__ import annotations

import asyncio
import itertools
import re

import pytest
import pytest_asyncio
from lsprotocol import types

from codespec.lsp.completions import UNASKED

from ..helpers import running, until

pytestmark = pytest.mark.asyncio(loop_scope="module")

names = (f"memory{number}.py" for number in itertools.count())


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ahead(tmp_path_factory):
    """A server that prefetches."""
    async with running(tmp_path_factory.mktemp("ahead"), options={"prefetch": True}) as server:
        yield server


class Editor:
    """One document of one line, and how often it was completed."""

    def __init__(self, server, line: str, name: str = "") -> None:
        self.server, self.line = server, line
        self.name = name or next(names)
        self.uri = f"file:///work/{self.name}"
        self.version = 1
        server.open(line, self.uri)

    def write(self, line: str) -> None:
        self.line = line
        self.version += 1
        change = types.TextDocumentContentChangeWholeDocument(line)
        self.server.change(change, self.uri, self.version)

    async def ask(self) -> str:
        answer = await self.server.ask(0, len(self.line), self.uri)
        return answer.items[0].insert_text if answer.items else ""

    @property
    def decoded(self) -> int:
        return self.server.stderr.count(f"stub: begin {self.name}")


async def test_typing_along_asks_no_model(shared):
    editor = Editor(shared, "x = abc")
    shown = await editor.ask()
    assert shown == "x = abc<abc|128>"
    for length in range(8, len(shown)):
        editor.write(shown[:length])
        assert await editor.ask() == shown
    assert editor.decoded == 1
    editor.write("x = abc<b")
    assert await editor.ask() == "x = abc<b<c<b|128>"
    assert editor.decoded == 2


async def test_going_back_asks_no_model(shared):
    editor = Editor(shared, "abc")
    first = await editor.ask()
    editor.write("abc  def")
    second = await editor.ask()
    assert editor.decoded == 2
    editor.write("abc")
    assert await editor.ask() == first
    editor.write("abc  def")
    assert await editor.ask() == second
    assert editor.decoded == 2


async def test_a_document_that_was_closed_is_forgotten(shared):
    editor = Editor(shared, "abc")
    await editor.ask()
    shared.client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(editor.uri)))
    shared.open("abc", editor.uri)
    await editor.ask()
    assert editor.decoded == 2


async def test_new_settings_of_the_models_forget_everything(tmp_path):
    async with running(tmp_path, configuration={"": {"codespec": {}}}) as server:
        editor = Editor(server, "abc")
        assert await editor.ask() == "abc<abc|128>"
        server.client.workspace_did_change_configuration(
            types.DidChangeConfigurationParams({"codespec": {"max_tokens": 7, "prefetch": False}})
        )
        assert await editor.ask() == "abc<abc|7>"


async def test_the_next_completion_is_ready_when_one_is_accepted(ahead):
    editor = Editor(ahead, "abc")
    shown = await editor.ask()
    await until(lambda: ahead.stderr.count(f"stub: done {editor.name}") == 2)
    editor.write(shown)
    assert await editor.ask() == shown + "<28>|128>"
    assert editor.decoded >= 2
    await until(lambda: ahead.stderr.count(f"stub: done {editor.name}") == 3)
    assert editor.decoded == 3  # and the one after that


async def test_it_is_ready_behind_several_lines_with_other_ends_too(ahead):
    name = next(names)
    uri = f"file:///work/{name}"
    ahead.open("abc\r\ntwo lines", uri)
    [item] = (await ahead.ask(1, 9, uri)).items
    assert item.insert_text == "two linesone\ntwo\n"
    await until(lambda: ahead.stderr.count(f"stub: done {name}") == 2)
    ahead.change(types.TextDocumentContentChangeWholeDocument("abc\r\ntwo linesone\r\ntwo\r\n"), uri)
    assert (await ahead.ask(3, 0, uri)).items
    await until(lambda: ahead.stderr.count(f"stub: done {name}") == 3)  # and the one after that
    assert ahead.stderr.count(f"stub: begin {name}") == 3


async def test_who_waits_goes_before_what_nobody_waits_for(tmp_path):
    async with running(tmp_path, options={"prefetch": True}, env={"STUB_AGAIN": "6000"}) as server:
        editor = Editor(server, "abc")
        await editor.ask()
        await until(lambda: editor.decoded == 2)
        other = Editor(server, "def")
        assert await other.ask() == "def<def|128>"
        assert server.said(f"stopped {editor.name}")
        editor.write("abc!")
        assert await editor.ask() == "abc!<bc!|128>"


async def test_what_is_typed_is_read_before_a_request_comes(shared):
    editor = Editor(shared, "abc")
    at = types.Position(0, 3)
    change = types.TextDocumentContentChangePartial(types.Range(at, at), "def(\n  gh")
    shared.change(change, editor.uri, 2)
    read = repr("ef(\n  gh")
    await until(lambda: shared.said(f"reads {editor.name} up to {read}"))
    assert editor.decoded == 0


async def test_typing_along_reads_nothing(shared):
    editor = Editor(shared, "abc")
    await editor.ask()
    for number, character in enumerate("<ab"):
        at = types.Position(0, 3 + number)
        shared.change(types.TextDocumentContentChangePartial(types.Range(at, at), character), editor.uri, 2 + number)
    editor.line = "abc<ab"
    await editor.ask()
    assert editor.decoded == 1
    assert not shared.said(f"reads {editor.name}")


async def test_what_is_typed_is_completed_before_it_is_asked_where_that_is_wanted(tmp_path):
    async with running(tmp_path, options={"generate_ahead": True}) as server:
        editor = Editor(server, "x = a")
        await editor.ask()  # an editor that asks by itself
        change = types.TextDocumentContentChangePartial(types.Range(types.Position(0, 5), types.Position(0, 5)), "b")
        server.change(change, editor.uri, 2)
        await until(lambda: editor.decoded == 2)
        change = types.TextDocumentContentChangePartial(types.Range(types.Position(0, 6), types.Position(0, 6)), "c")
        server.change(change, editor.uri, 3)
        await until(lambda: editor.decoded == 3)
        editor.line = "x = abc"
        assert await editor.ask() == "x = abc<abc|128>"
        assert editor.decoded == 3


async def test_what_was_just_completed_ahead_is_not_completed_again(tmp_path):
    async with running(tmp_path, options={"generate_ahead": True}, env={"STUB_STEP_S": "0.002"}) as server:
        editor = Editor(server, "x = ")
        await editor.ask()
        for number in range(100):
            editor.line += "ab"[number % 2]
            at = types.Position(0, len(editor.line) - 1)
            change = types.TextDocumentContentChangePartial(types.Range(at, at), editor.line[-1])
            server.change(change, editor.uri, 2 + number)
            await asyncio.sleep(number * 5e-5)  # the request comes before, while and after it is kept
            await editor.ask()
        assert editor.decoded == 101


async def test_for_an_editor_that_asks_only_when_told_nothing_is_completed_ahead(tmp_path):
    async with running(tmp_path, options={"generate_ahead": True}) as server:
        editor = Editor(server, "x = ")
        await editor.ask()
        said = re.compile(rf"stub: (begin|reads) {editor.name}")
        for number in range(8):
            at = types.Position(0, 4 + number)
            server.change(types.TextDocumentContentChangePartial(types.Range(at, at), "a"), editor.uri, 2 + number)
            await until(lambda wanted=number + 2: len(said.findall(server.stderr)) == wanted)
        assert editor.decoded == 1 + UNASKED
