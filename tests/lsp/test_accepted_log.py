"""What is accepted is kept for training where the user asks for that, and a training runs beside the session."""

from __future__ import annotations

import importlib.util
import sys
from typing import Any

import pytest
from lsprotocol import types

from codespec.draft.storage.accepted_texts import AcceptedText, forget, load

from .helpers import refused, run_command, running, until

ON = {"keep_accepted": True}
SERVE = [sys.executable, "-m", "codespec", "serve", "--in-process"]
TORCH = importlib.util.find_spec("torch") is not None


def kept(tmp_path) -> list[AcceptedText]:
    return load(["python"], tmp_path / "data" / "accepted")


async def accept(server: Any, uri: str, text: str = "x = 1\ny = 2\n", command: str = "", *arguments: Any) -> None:
    server.open(text, uri)
    [item] = (await server.ask(0, 3, uri)).items
    await run_command(server, command or item.command.command, *item.command.arguments, *arguments)


@pytest.mark.asyncio
async def test_what_is_accepted_is_kept_with_what_is_around_it(tmp_path):
    async with running(tmp_path, folder=tmp_path, options=ON) as server:
        await accept(server, (tmp_path / "sub" / "a.py").as_uri(), "x = 1\r\ny = 2\r\n")
        [record] = kept(tmp_path)
        assert (record.path, record.prefix, record.text, record.suffix) == ("a.py", "x =", "<x =|128>", " 1\ny = 2\n")
        assert server.said("accepted '<x =|128>' in")
    assert str(tmp_path) not in (tmp_path / "data" / "accepted" / "python.jsonl").read_text()


@pytest.mark.asyncio
async def test_bit_by_bit_is_one_completion(tmp_path):
    async with running(tmp_path, folder=tmp_path, options=ON) as server:
        uri = (tmp_path / "a.py").as_uri()
        server.open("x = 1\n", uri)
        [item] = (await server.ask(0, 3, uri)).items
        for length in (2, 4):
            await run_command(server, "codespec.acceptPartial", *item.command.arguments, length)
            assert [each.text for each in kept(tmp_path)] == ["<x =|128>"[:length]]
        await run_command(server, "codespec.accept", *item.command.arguments)
        assert [each.text for each in kept(tmp_path)] == ["<x =|128>"]


@pytest.mark.asyncio
async def test_by_default_nothing_is_kept(tmp_path):
    (tmp_path / "codespec.toml").write_text("keep_accepted = true\n")
    async with running(tmp_path, folder=tmp_path) as server:
        await accept(server, (tmp_path / "a.py").as_uri())
        await until(lambda: server.said("accepted"))
        assert any("a workspace may not switch it on" in each for each in server.shown)
    assert not (tmp_path / "data" / "accepted").exists()


@pytest.mark.asyncio
async def test_what_was_kept_before_a_secret_was_recognised_is_deleted(tmp_path):
    token = "ghp_" + "a8F3kq0Zx7Lm2Vb9Tn4RwYc6HdEj5Gs1uPQi"
    for restarted in (False, True):
        uri, other = (tmp_path / "a.py").as_uri(), (tmp_path / "b.py").as_uri()
        async with running(tmp_path, folder=tmp_path, options=ON) as server:
            await accept(server, uri, f"x = 1\ny = '{token[:-1]}\n")
            await accept(server, other)
            await until(lambda: len(kept(tmp_path)) == 2)
            if not restarted:
                server.change(types.TextDocumentContentChangeWholeDocument(f"x = 1\ny = '{token}'\n"), uri)
                await server.ask(0, 3, uri)
                await until(lambda: [each.path for each in kept(tmp_path)] == ["b.py"])
        if restarted:
            async with running(tmp_path, folder=tmp_path, options=ON) as server:
                server.open(f"x = 1\ny = '{token}'\n", uri)
                await until(lambda: [each.path for each in kept(tmp_path)] == ["b.py"])
        forget(folder=tmp_path / "data" / "accepted")


@pytest.mark.asyncio
async def test_a_password_that_nothing_is_accepted_behind_counts_too(tmp_path):
    uri = (tmp_path / "a.ts").as_uri()
    begun = "x\nprivate readonly password: string = 'Lemki9566!"
    async with running(tmp_path, folder=tmp_path, options=ON) as server:
        await accept(server, uri, begun)
        await until(lambda: len(kept(tmp_path)) == 1)
        server.change(types.TextDocumentContentChangeWholeDocument(begun + "';\n"), uri)
        server.client.text_document_did_save(types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(uri)))
        await until(lambda: kept(tmp_path) == [])


@pytest.mark.asyncio
async def test_what_is_private_is_not_kept(tmp_path):
    workspace = tmp_path / "w"
    workspace.mkdir()
    (workspace / ".gitignore").write_text("ignored.py\n")
    drawn = "a8F3kq0Zx7Lm2Vb9Tn4RwYc6HdEj5Gs1"
    async with running(tmp_path, folder=workspace, options=ON) as server:
        await accept(server, (workspace / "ignored.py").as_uri())
        await accept(server, (tmp_path / "outside.py").as_uri())
        await accept(server, "untitled:Untitled-1")
        await accept(server, (workspace / "random.py").as_uri(), f'x = 1\npassword = "{drawn}"\n')
        await until(lambda: server.stderr.count("stub: accepted") == 4)
        assert kept(tmp_path) == []
        await accept(server, (workspace / "a.py").as_uri())
        assert len(kept(tmp_path)) == 1
        await run_command(server, "codespec.clearLearnt")
        assert kept(tmp_path) == []


@pytest.mark.asyncio
async def test_a_disk_that_cannot_be_written_stops_nothing(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "accepted").write_text("a file")
    async with running(tmp_path, folder=tmp_path, options=ON) as server:
        for name in ("a.py", "b.py"):
            await accept(server, (tmp_path / name).as_uri())
        await until(lambda: server.stderr.count("stub: accepted") == 2)
        assert server.stderr.count("what was accepted is not kept") == 1


@pytest.mark.asyncio
async def test_what_training_needs_is_said_and_nothing_else_stops(tmp_path):
    missing = "no accepted completions of python are kept" if TORCH else "-m pip install"
    async with running(tmp_path, folder=tmp_path) as server:
        train = "codespec.trainDraft"
        assert "must be a language" in await refused(server, train)
        assert "must be minutes" in await refused(server, train, "python", -1)
        assert "must be minutes" in await refused(server, train, "python", True)
        assert await run_command(server, train, "cancel") is False
        assert await run_command(server, train, "python") is True
        assert await run_command(server, train, "python") is False, "one at a time"
        server.open("x = 1\n")
        assert (await server.ask(0, 3)).items
        await until(lambda: any(missing in each for each in server.shown), 60)
        assert await run_command(server, train, "python") is True
        assert await run_command(server, train, "cancel") is True
        await until(lambda: any("was cancelled" in each.message for each in server.client.log_messages))
