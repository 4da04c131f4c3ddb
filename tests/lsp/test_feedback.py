"""What is opened, saved and accepted in a session is learnt, and known in the next one."""

from __future__ import annotations

import sys

import pytest
from lsprotocol import types

from .helpers import run_command, running, until

SERVE = [sys.executable, "-m", "codespec", "serve"]


@pytest.mark.asyncio
async def test_what_is_opened_saved_and_asked_about_is_learnt(tmp_path):
    inner = tmp_path / "w" / "inner"
    inner.mkdir(parents=True)
    async with running(tmp_path, folder=tmp_path / "w") as server:
        uri = (inner / "a.py").as_uri()
        server.open("x = 1\n", uri)
        await until(lambda: server.said(f"learns a.py in {tmp_path / 'w'}, 6 characters, None"))
        folders = [types.WorkspaceFolder(inner.as_uri(), "inner"), types.WorkspaceFolder(tmp_path.as_uri(), "outer")]
        change = types.WorkspaceFoldersChangeEvent(added=folders, removed=[])
        server.client.workspace_did_change_workspace_folders(types.DidChangeWorkspaceFoldersParams(change))
        server.client.text_document_did_save(types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(uri)))
        await until(lambda: server.said(f"learns a.py in {inner}, 6 characters, None"))
        assert (await server.ask(0, 3, uri)).items
        await until(lambda: server.said(f"learns a.py in {inner}, 6 characters, 3"))
        server.open("", "untitled:Untitled-1")
        await until(lambda: server.said("learns Untitled-1 in no workspace, 0 characters, None"))


@pytest.mark.asyncio
async def test_what_is_accepted_is_learnt_once(tmp_path):
    async with running(tmp_path, folder=tmp_path) as server:
        uri = (tmp_path / "a.py").as_uri()
        server.open("x = 1\n", uri)
        [item] = (await server.ask(0, 3, uri)).items
        for _ in range(2):
            await run_command(server, item.command.command, *item.command.arguments)
        taught = f"stub: accepted '<x =|128>' in {tmp_path}"
        await until(lambda: taught in server.stderr)
        await run_command(server, "codespec.accept", "nonesuch")
        assert server.stderr.count(taught) == 1
        await run_command(server, "codespec.clearLearnt")
        await until(lambda: server.said(f"forgot {tmp_path}"))
        assert not server.shown


@pytest.mark.asyncio
async def test_learning_can_be_switched_off(tmp_path):
    async with running(tmp_path, options={"learn": False}) as server:
        server.open("x = 1\n")
        assert (await server.ask(0, 3)).items
        assert not server.said("learns")


@pytest.mark.asyncio
async def test_accepted_in_one_session_proposed_in_the_next(tmp_path):
    """The embedded models; the sessions differ in what was learnt alone."""
    workspace = tmp_path / "w"
    workspace.mkdir()
    uri = (workspace / "a.py").as_uri()
    text = "import os\n\n\ndef to"
    logs = tmp_path / "data" / "learnt"
    options = {"max_tokens": 24, "draft": "none", "time_budget_ms": 0}
    async with running(tmp_path, command=SERVE, folder=workspace, options=options) as server:
        server.open(text, uri)
        [first] = (await server.ask(3, 6, uri)).items
        await run_command(server, first.command.command, *first.command.arguments)
        await run_command(server, "codespec.accept", "nonesuch")
        [log] = logs.rglob("*.sqlite")
        assert log.stat().st_size > 100
    shown = first.insert_text.removeprefix("def to")
    assert shown.strip()
    assert _proposed(tmp_path, workspace, text).startswith(shown)
    assert not _proposed(tmp_path, tmp_path / "other", text)
    async with running(tmp_path, command=SERVE, folder=workspace, options=options) as server:
        server.open(text, uri)
        assert [each.insert_text for each in (await server.ask(3, 6, uri)).items] == [first.insert_text]
        await run_command(server, "codespec.clearLearnt")
        assert not log.exists()


def _proposed(tmp_path, workspace, text) -> str:
    """What n-grams propose behind a text in a later session."""
    from codespec import LocalEngine
    from codespec.models.registry import EMBEDDED_TARGET
    from codespec.protocols import Sampling
    from codespec.speculative.sampling import LogitSampler

    engine = LocalEngine(EMBEDDED_TARGET, learnt_folder=tmp_path / "data" / "learnt")
    try:
        engine.drafts.use_learnt(engine.drafts.learnt.of(workspace, "python"))
        tokens = engine.vocabulary.tokenize(text)
        left = iter(range(40))
        more = lambda confidence: next(left, None) is not None  # noqa: E731
        proposal = engine.drafts.ngrams.propose(tokens, None, LogitSampler(Sampling(), 0), more)
        return b"".join(map(engine.vocabulary.token_bytes, proposal.tokens)).decode()
    finally:
        engine.close()
