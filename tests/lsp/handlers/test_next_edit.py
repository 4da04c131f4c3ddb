"""Next edits: what is asked for, what is answered, and what becomes of it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from lsprotocol import types

from codespec.lsp.next_edits import MOST_FILES

from ..helpers import URI, Server, run_command, running, status, until

pytestmark = pytest.mark.asyncio(loop_scope="module")

OWN, COPILOT = "codespec/inlineEdit", "textDocument/copilotInlineEdit"
TEXT = "count = 0\nfor x in items:\n    count += 1\nprint(count)\n"


def ask(server: Server, version: int, line: int, character: int, invoked: bool = True, **more: Any) -> Any:
    """Send a request for a next edit; await what this returns."""
    params = {
        "textDocument": {"uri": more.get("uri", URI), "version": version},
        "position": {"line": line, "character": character},
        "context": {"triggerKind": 1 if invoked else 2},
    }
    return asyncio.ensure_future(server.client.protocol.send_request_async(more.get("method", OWN), params))


def type_over(server: Server, line: int, start: int, end: int, text: str, version: int = 2, uri: str = URI) -> None:
    span = types.Range(types.Position(line, start), types.Position(line, end))
    server.change(types.TextDocumentContentChangePartial(range=span, text=text), uri, version)


def span(edit: Any) -> tuple[int, int, int, int]:
    found = edit.range
    return found.start.line, found.start.character, found.end.line, found.end.character


async def rename(server: Server, text: str = TEXT, uri: str = URI) -> None:
    server.open(text, uri)
    type_over(server, 0, 0, 5, "total", uri=uri)


async def test_it_is_advertised(shared):
    assert shared.result.capabilities.experimental == {"inlineEditProvider": True}


@pytest.mark.parametrize("method", [OWN, COPILOT])
async def test_a_rename_goes_on(tmp_path, method):
    async with running(tmp_path) as server:
        await rename(server)
        [edit] = (await ask(server, 2, 0, 5, method=method)).edits
        assert (edit.textDocument.uri, edit.textDocument.version) == (URI, 2)
        assert (span(edit), edit.text, edit.jump) == ((2, 4, 2, 9), "total", False)
        assert (edit.command.command, len(edit.command.arguments)) == ("codespec.acceptEdit", 1)
        [hunk] = edit.hunks
        assert (span(hunk), hunk.text) == ((2, 4, 2, 9), "total")


async def test_what_is_dropped_is_not_offered_again_and_all_is_counted(tmp_path):
    async with running(tmp_path) as server:
        await rename(server)
        [edit] = (await ask(server, 2, 0, 5)).edits
        await run_command(server, "codespec.rejectEdit", *edit.command.arguments)
        [edit] = (await ask(server, 2, 0, 5)).edits
        assert span(edit) == (3, 6, 3, 11)
        await run_command(server, edit.command.command, *edit.command.arguments)
        type_over(server, 3, 6, 11, "total", 3)
        assert (await ask(server, 3, 3, 11)).edits == []
        counts = (await status(server))["statistics"]["python"]
        found = {key.removeprefix("edits_"): value for key, value in counts.items() if key.startswith("edits_")}
        assert found == {"shown": 2, "applied": 1, "rejected": 1, "reverted": 0}


async def test_what_the_user_takes_back_is_counted(tmp_path):
    async with running(tmp_path) as server:
        await rename(server, TEXT.replace("+= 1", "+= 1  # a form feed \f ends no line"))
        [edit] = (await ask(server, 2, 0, 5)).edits
        await run_command(server, edit.command.command, *edit.command.arguments)
        type_over(server, 2, 4, 9, "total", 3)
        type_over(server, 2, 4, 9, "count", 4)
        type_over(server, 0, 0, 0, "# more\n" * 30, 5)
        server.client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(URI)))
        counts = (await status(server))["statistics"]["python"]
        assert (counts["edits_applied"], counts["edits_reverted"]) == (1, 1)


async def test_what_was_just_taken_back_does_not_come_again_by_itself(tmp_path):
    async with running(tmp_path, options={"edits": {"mode": "automatic"}}) as server:
        await rename(server)
        [edit] = (await ask(server, 2, 0, 5, invoked=False)).edits
        await run_command(server, edit.command.command, *edit.command.arguments)
        type_over(server, 2, 4, 9, "total", 3)
        type_over(server, 2, 4, 9, "count", 4)
        [other] = (await ask(server, 4, 0, 5, invoked=False)).edits
        assert (span(edit), span(other)) == ((2, 4, 2, 9), (3, 6, 3, 11))
        [again] = (await ask(server, 4, 0, 5)).edits
        assert span(again) == span(edit), "the user has asked for it"


@pytest.mark.parametrize(("in_time", "text"), [(True, "sum"), (False, "count")])
async def test_what_is_changed_in_another_way_or_later_is_not_taken_back(tmp_path, in_time, text):
    check_s = 30.0 if in_time else 0.1
    async with running(tmp_path, env={"CODESPEC_EDIT_CHECK_S": str(check_s)}) as server:
        await rename(server)
        [edit] = (await ask(server, 2, 0, 5)).edits
        await run_command(server, edit.command.command, *edit.command.arguments)
        type_over(server, 2, 4, 9, "total", 3)
        if not in_time:
            await asyncio.sleep(3 * check_s)
            await status(server)  # which is answered after the look
        type_over(server, 2, 4, 9, text, 4)
        server.client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(URI)))
        counts = (await status(server))["statistics"]["python"]
        assert (counts["edits_shown"], counts["edits_applied"], counts["edits_reverted"]) == (1, 1, 0)


async def test_what_is_taken_back_is_counted_while_the_document_is_open(tmp_path):
    async with running(tmp_path, env={"CODESPEC_EDIT_CHECK_S": "1"}) as server:
        await rename(server)
        [edit] = (await ask(server, 2, 0, 5)).edits
        await run_command(server, edit.command.command, *edit.command.arguments)
        type_over(server, 2, 4, 9, "total", 3)
        type_over(server, 2, 4, 9, "count", 4)
        assert (await status(server))["statistics"]["python"]["edits_reverted"] == 0
        while not (await status(server))["statistics"]["python"]["edits_reverted"]:
            await asyncio.sleep(0.05)


async def test_another_version_is_not_answered(tmp_path):
    async with running(tmp_path) as server:
        await rename(server)
        assert await ask(server, 1, 0, 5) is None
        assert await ask(server, 3, 0, 5) is None
        assert await ask(server, 1, 0, 5, uri="file:///work/other.py") is None
        assert not server.said("edits")


async def test_the_latest_request_counts_and_a_change_ends_it(tmp_path):
    async with running(tmp_path, env={"STUB_STEP_S": "0.05"}) as server:
        await rename(server, "count = 0  # steps=400\n" + TEXT)
        first = ask(server, 2, 0, 5)
        await until(lambda: server.said("edits example.py"))
        second = ask(server, 2, 0, 5)
        assert await first is None
        await until(lambda: server.stderr.count("stub: edits") == 2)
        type_over(server, 0, 0, 5, "totals", 3)
        assert await second is None
        assert server.stderr.count("stub: stopped the edit") >= 1


async def test_a_completion_goes_first(tmp_path):
    async with running(tmp_path, env={"STUB_STEP_S": "0.02"}) as server:
        await rename(server, "count = 0  # steps=40\ncount\nsteps=9\n")
        edit = ask(server, 2, 0, 5)
        await until(lambda: server.said("edits example.py"))
        assert (await server.ask(2, 7)).items
        assert not edit.done(), "the completion came after the edit"
        assert len((await edit).edits) == 1
        said = [line for line in server.stderr.splitlines() if line.startswith("stub: ")]
        assert said.index("stub: done example.py") < len(said) - 1 - said[::-1].index(
            next(line for line in said if line.startswith("stub: edits"))
        )


async def test_a_cancelled_request_stops(tmp_path):
    async with running(tmp_path, env={"STUB_STEP_S": "0.05"}) as server:
        await rename(server, "count = 0  # steps=400\n" + TEXT)
        params = {
            "textDocument": {"uri": URI, "version": 2},
            "position": {"line": 0, "character": 5},
            "context": {"triggerKind": 1},
        }
        request = asyncio.ensure_future(server.client.protocol.send_request_async(OWN, params, msg_id="edit"))
        await until(lambda: server.said("edits example.py"))
        server.cancel("edit")
        with pytest.raises(Exception, match="is canceled"):
            await request
        await until(lambda: server.said("stopped the edit"))


@pytest.mark.parametrize(
    ("mode", "invoked", "answered"),
    [("off", True, False), ("manual", False, False), ("manual", True, True), ("automatic", False, True)],
)
async def test_modes(tmp_path, mode, invoked, answered):
    async with running(tmp_path, options={"edits": {"mode": mode}}) as server:
        await rename(server)
        found = await ask(server, 2, 0, 5, invoked)
        assert (found is not None) == answered
        assert (await status(server))["edits_mode"] == mode


async def test_documents_are_followed_while_it_is_switched_on(tmp_path):
    async with running(tmp_path, options={"edits": {"mode": "off"}}) as server:
        server.open(TEXT)
        await switch(server, "manual")
        type_over(server, 0, 0, 5, "total")
        assert len((await ask(server, 2, 0, 5)).edits) == 1
        await switch(server, "off")
        type_over(server, 1, 4, 5, "y", 3)
        assert await ask(server, 3, 0, 5) is None
        await switch(server, "manual")
        type_over(server, 3, 0, 5, "show", 4)
        await ask(server, 4, 3, 4)
        assert server.stderr.count("after 1 changes") == 2


async def switch(server: Server, mode: str) -> None:
    server.client.workspace_did_change_configuration(types.DidChangeConfigurationParams({"edits": {"mode": mode}}))
    while (await status(server))["edits_mode"] != mode:
        await asyncio.sleep(0.01)


async def test_a_document_is_known_however_many_others_were_opened_since(tmp_path):
    async with running(tmp_path) as server:
        server.open(TEXT)
        for number in range(MOST_FILES):
            uri = f"file:///work/other{number}.py"
            server.open("x = 1\n", uri)
            server.client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri)))
        type_over(server, 0, 0, 5, "total")
        assert len((await ask(server, 2, 0, 5)).edits) == 1


async def test_files_of_one_path_in_two_workspace_folders_are_told_apart(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    folders = [types.WorkspaceFolder((tmp_path / name).as_uri(), name) for name in ("one", "two")]
    one, two = (f"{folder.uri}/main.py" for folder in folders)
    async with running(tmp_path, folders=folders) as server:
        await rename(server, TEXT, one)
        server.client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(one)))
        server.open(TEXT, two)
        assert (await ask(server, 1, 0, 5, uri=two)).edits == [], "the edits of the other file were taken for its own"
        server.open("x = 1\n\n\nprint(count)\n", one)
        type_over(server, 0, 0, 5, "total", uri=two)
        [edit] = (await ask(server, 2, 0, 5, uri=two)).edits
        assert (edit.textDocument.uri, span(edit), edit.text) == (two, (2, 4, 2, 9), "total")


async def test_files_that_are_private_are_neither_edited_nor_shown(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / ".gitignore").write_text("ignored.py\n")
    (folder / ".codespecignore").write_text("own.py\n")
    names = ["shown.py", "ignored.py", "own.py", ".env", "token.py"]
    async with running(tmp_path, folder=folder) as server:
        for name in names:
            secret = "key = 'AKIA" + "QWERTZUIOPASDFGH'\n" if name == "token.py" else ""
            await rename(server, TEXT + secret, (folder / name).as_uri())
        await rename(server, TEXT, (folder / "main.py").as_uri())
        assert len((await ask(server, 2, 0, 5, uri=(folder / "main.py").as_uri())).edits) == 1
        assert server.said("edits main.py at 5 after 2 changes beside shown.py\n")
        for name in ("own.py", ".env", "token.py"):
            assert (await ask(server, 2, 0, 5, uri=(folder / name).as_uri())).edits == []
        assert len((await ask(server, 2, 0, 5, uri=(folder / "ignored.py").as_uri())).edits) == 1


def open_notebook(server: Server, file: str, *texts: str) -> list[str]:
    """Open a notebook with cells of these texts; their URIs."""
    start = file.replace("file:", "vscode-notebook-cell:")
    uris = [f"{start}#W{index}sZmlsZQ%3D%3D" for index in range(len(texts))]
    cells = [types.NotebookCell(types.NotebookCellKind.Code, uri) for uri in uris]
    items = [types.TextDocumentItem(uri, "python", 1, text) for uri, text in zip(uris, texts, strict=True)]
    notebook = types.NotebookDocument(file, "jupyter-notebook", 1, cells)
    server.client.notebook_document_did_open(types.DidOpenNotebookDocumentParams(notebook, items))
    return uris


def type_over_in_cell(server: Server, file: str, uri: str, start: int, end: int, text: str, version: int = 2) -> None:
    place = types.Range(types.Position(0, start), types.Position(0, end))
    content = types.NotebookDocumentCellContentChanges(
        types.VersionedTextDocumentIdentifier(version, uri), [types.TextDocumentContentChangePartial(place, text)]
    )
    change = types.NotebookDocumentChangeEvent(cells=types.NotebookDocumentCellChanges(text_content=[content]))
    identifier = types.VersionedNotebookDocumentIdentifier(version, file)
    server.client.notebook_document_did_change(types.DidChangeNotebookDocumentParams(identifier, change))


async def test_within_a_cell_of_a_notebook(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    file, main = ((folder / name).as_uri() for name in ("a.ipynb", "main.py"))
    async with running(tmp_path, folder=folder, notebooks=True) as server:
        first, second, third = open_notebook(server, file, TEXT, "print(count)\n", "x = 1\n")
        type_over_in_cell(server, file, first, 0, 5, "total")
        [edit] = (await ask(server, 2, 0, 5, uri=first)).edits
        assert (edit.textDocument.uri, span(edit), edit.text) == (first, (2, 4, 2, 9), "total")
        [edit] = (await ask(server, 1, 0, 0, uri=second)).edits
        assert (edit.textDocument.uri, span(edit), edit.text) == (second, (0, 6, 0, 11), "total")
        assert (await ask(server, 1, 0, 0, uri=third)).edits == [], "no editor opens another cell by its URI"
        server.open("print(count)\n", main)
        [edit] = (await ask(server, 1, 0, 0, uri=main)).edits
        assert span(edit) == (0, 6, 0, 11)
        assert server.said("edits a.ipynb#W0sZmlsZQ%3D%3D at 5 after 1 changes beside nothing\n")
        assert server.said("edits main.py at 0 after 1 changes beside nothing\n")


async def test_a_secret_in_a_cell_keeps_edits_of_the_others_to_themselves(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    file, ignored, main = ((folder / name).as_uri() for name in ("a.ipynb", "b.ipynb", "main.py"))
    (folder / ".codespecignore").write_text("b.ipynb\n")
    async with running(tmp_path, folder=folder, notebooks=True) as server:
        first, second = open_notebook(server, file, TEXT, "key = ''\n")
        [third] = open_notebook(server, ignored, TEXT)
        for each, cell in ((file, first), (ignored, third)):
            type_over_in_cell(server, each, cell, 0, 5, "total")
        type_over_in_cell(server, file, second, 7, 7, "AKIA" + "QWERTZUIOPASDFGH", 3)
        server.open("print(count)\n", main)
        assert (await ask(server, 1, 0, 0, uri=main)).edits == []
        assert server.said("edits main.py at 0 after 0 changes beside nothing\n")
        assert (await ask(server, 2, 0, 5, uri=first)).edits == []


async def test_an_edit_of_another_document(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    other, main = ((folder / name).as_uri() for name in ("other.py", "main.py"))
    async with running(tmp_path, folder=folder) as server:
        server.open("import main\nmain.count\n", other)
        await rename(server, "count = 0\n", main)
        [edit] = (await ask(server, 2, 0, 5, uri=main)).edits
        assert (edit.textDocument.uri, edit.textDocument.version) == (other, 1)
        assert (span(edit), edit.jump) == ((1, 5, 1, 10), True)


@pytest.mark.parametrize("encoding", [*types.PositionEncodingKind])
async def test_line_ends_and_characters_of_several_units(tmp_path, encoding):
    text = "count = '😋'\r\nx = '😋', count\r\n"
    async with running(tmp_path, encodings=[encoding]) as server:
        await rename(server, text)
        [edit] = (await ask(server, 2, 0, 5)).edits
        start = len({"utf-8": "x = '😋', ".encode(), "utf-16": "x" * 10, "utf-32": "x" * 9}[encoding.value])
        assert span(edit) == (1, start, 1, start + 5)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"textDocument": {"uri": URI}, "position": {"line": 0, "character": 0}},
        {"textDocument": {"uri": 7, "version": 1}, "position": {"line": 0, "character": 0}},
        {"textDocument": {"uri": URI, "version": 1}, "position": {"line": -1, "character": 0}},
        {"textDocument": {"uri": URI, "version": 1}, "position": [1, 2]},
    ],
)
async def test_bad_parameters_are_refused(shared, params):
    with pytest.raises(Exception, match="a next edit needs a textDocument with its version, and a position"):
        await shared.client.protocol.send_request_async(OWN, params)
    assert "Traceback" not in shared.stderr


async def test_focus_may_be_on_nothing(shared):
    for params in ({}, {"textDocument": {"uri": "file:///work/unknown.py"}}):
        shared.client.protocol.notify("textDocument/didFocus", params)
    assert (await status(shared))["state"] == "ready"
    assert "Traceback" not in shared.stderr
