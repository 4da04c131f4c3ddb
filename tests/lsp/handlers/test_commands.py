"""The commands of a session."""

from __future__ import annotations

import asyncio
import sys

import pytest
from lsprotocol import types

from ..helpers import environment, refused, run_command, running, status, until

pytestmark = pytest.mark.asyncio(loop_scope="module")

EVERY = (
    "accept",
    "acceptEdit",
    "acceptPartial",
    "choices",
    "clearLearnt",
    "getModel",
    "reject",
    "rejectEdit",
    "restart",
    "setDraft",
    "setGrammar",
    "status",
    "suggestModels",
    "trace",
)


async def test_all_are_advertised(shared):
    commands = shared.result.capabilities.execute_command_provider.commands
    assert sorted(commands) == [f"codespec.{each}" for each in EVERY]


@pytest.mark.parametrize(
    "command",
    [
        *("accept", "acceptEdit", "acceptPartial", "reject", "rejectEdit"),
        *("setDraft", "setGrammar"),
    ],
)
@pytest.mark.parametrize("arguments", [(), (None,), (7,), ("",), ([],), ({},)])
async def test_bad_arguments_are_refused_with_a_message(tmp_path_factory, command, arguments, shared):
    assert "the first argument must be" in await refused(shared, f"codespec.{command}", *arguments)


@pytest.mark.parametrize(
    ("command", "arguments", "message"),
    [
        ("acceptPartial", ("1",), "the second argument must be the accepted text, or its length"),
        ("acceptPartial", ("1", True), "the second argument must be the accepted text, or its length"),
        ("acceptPartial", ("1", [3]), "the second argument must be the accepted text, or its length"),
        ("setDraft", ("none", 7), "the second argument must be a language"),
        ("setGrammar", ("none", None, 7), "the third argument must be the URI of a document"),
        ("clearLearnt", (7,), "the arguments must be folders"),
        ("status", (7,), "the first argument must be a language"),
    ],
)
async def test_other_bad_arguments(shared, command, arguments, message):
    assert await refused(shared, f"codespec.{command}", *arguments) == message
    assert "Traceback" not in shared.stderr


async def test_what_is_accepted_bit_by_bit_is_learnt_bit_by_bit(tmp_path):
    async with running(tmp_path) as server:
        server.open("x = 😋\n")
        [item] = (await server.ask(0, 6)).items
        [identifier] = item.command.arguments
        assert item.insert_text == "x = 😋< 😋|128>".replace("< ", "<= ")
        part = "codespec.acceptPartial"
        assert "must not be empty" in await refused(server, part, identifier, 0)
        assert "must not be empty" in await refused(server, part, identifier, -3)
        assert "is shorter than 99" in await refused(server, part, identifier, 99)
        assert "does not begin with this text" in await refused(server, part, identifier, "y")
        await run_command(server, part, "nonesuch", 3)
        await run_command(server, part, identifier, 5)  # in units of UTF-16
        await until(lambda: server.said("accepted '<= 😋' in"))
        await run_command(server, part, identifier, "<= 😋|")
        await until(lambda: server.said("accepted '|' in"))
        await run_command(server, "codespec.accept", identifier)
        await until(lambda: server.said("accepted '128>' in"))
        await run_command(server, "codespec.accept", identifier)
        assert server.stderr.count("stub: accepted") == 3


async def test_what_is_rejected_is_not_learnt(tmp_path):
    async with running(tmp_path) as server:
        server.open("abc\n")
        [item] = (await server.ask(0, 3)).items
        await run_command(server, "codespec.reject", *item.command.arguments)
        await run_command(server, item.command.command, *item.command.arguments)
        assert not server.said("accepted")
        assert (await status(server))["statistics"]["python"]["rejected"] == 1


async def test_what_cannot_be_forgotten_is_told(tmp_path):
    async with running(tmp_path) as server:
        await run_command(server, "codespec.clearLearnt", "/work/a", "/work/locked")
        assert server.said("forgot /work/a")
        assert server.shown == ["codespec: /work/locked: cannot be deleted"]
        assert not any("is forgotten" in each.message for each in server.client.log_messages)
        await run_command(server, "codespec.clearLearnt", "/work/a")
        assert any("is forgotten" in each.message for each in server.client.log_messages)


async def test_restarting_reads_the_settings_and_loads_the_models_again(tmp_path):
    workspace = tmp_path / "w"
    workspace.mkdir()
    async with running(tmp_path, folder=workspace) as server:
        server.open("abc\n")
        assert (await server.ask(0, 3)).items[0].insert_text == "abc<abc|128>"
        (workspace / "codespec.toml").write_text("max_tokens = 9\n")
        await run_command(server, "codespec.restart")
        assert (await server.ask(0, 3)).items[0].insert_text == "abc<abc|9>"
        assert server.stderr.count("stub: loaded") == 2


async def test_a_draft_and_a_grammar_hold_for_the_session(tmp_path):
    settings = {"codespec": {"language": {"json": {"draft": "none", "grammar": "json"}}, "prefetch": False}}
    async with running(tmp_path, options=settings, configuration={}) as server:
        draft, grammar = "codespec.setDraft", "codespec.setGrammar"
        assert (await status(server, "json"))["grammar"] == "json"
        await run_command(server, draft, "python", "python")
        await run_command(server, grammar, "auto")
        server.open("abc\n")
        await server.ask(0, 3)
        await until(lambda: server.said("uses python and auto"))
        found = await status(server)
        assert found["language"] == "python"
        assert (found["draft"], found["grammar"], found["enabled"]) == ("python", "auto", True)
        assert found["languages"] == {
            "json": {"draft": "none", "grammar": "auto", "enabled": True},
            "python": {"draft": "python", "grammar": "auto", "enabled": True},
        }
        server.client.workspace_did_change_configuration(types.DidChangeConfigurationParams(settings))
        await run_command(server, draft, "none")  # for all, python included
        await server.ask(0, 3)
        await until(lambda: server.said("uses none and auto"))
        assert server.stderr.count("stub: loaded") == 1, "the models stay as they are"


async def test_a_draft_or_grammar_that_does_not_exist(tmp_path):
    async with running(tmp_path) as server:
        assert "known" in await refused(server, "codespec.setDraft", str(tmp_path / "no.gguf"))
        text = tmp_path / "text.gguf"
        text.write_text("no model")
        assert "not a GGUF file" in await refused(server, "codespec.setDraft", str(text))
        assert "one of draft-c, draft-general" in await refused(server, "codespec.setDraft", "nonesuch")
        assert "python" in await refused(server, "codespec.setGrammar", "nonesuch")
        bad = tmp_path / "bad.gbnf"
        bad.write_text("root ::= nothing\n")
        assert "nothing" in await refused(server, "codespec.setGrammar", str(bad))
        found = await status(server, "python")
        assert (found["draft"], found["grammar"]) == ("auto", "auto")


async def test_the_status_counts(tmp_path):
    async with running(tmp_path) as server:
        server.open("abc\n")
        await server.ask(0, 3)
        await server.ask(0, 3)
        found = await status(server)
        assert found["state"] == "ready"
        assert found["target"] == "stub"
        assert (found["requests"], found["from_memory"], found["from_memory_share"]) == (2, 1, 0.5)
        assert found["statistics"]["python"]["shown"] == 1
        assert found["acceptance"] is None


async def test_what_is_chosen_on_the_command_line_holds_at_once(tmp_path):
    async with running(tmp_path) as server:
        server.open("x = 1\n")
        await server.ask(0, 5)
        assert server.said("uses auto and auto")
        use = [sys.executable, "-m", "codespec", "models", "use", "none", "--for", "python"]
        environ = environment(tmp_path)
        process = await asyncio.create_subprocess_exec(*use, env=environ, stdout=asyncio.subprocess.DEVNULL)
        assert await process.wait() == 0

        for _ in range(200):
            if (await status(server, "python"))["draft"] == "none":
                break
            await asyncio.sleep(0.05)
        await server.ask(0, 4)
        assert server.said("uses none and auto")
        assert server.stderr.count("stub: loaded") == 1
