"""Loading the models, and the settings that decide which."""

from __future__ import annotations

import asyncio

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcRequestCancelled

from .helpers import running, until

pytestmark = pytest.mark.asyncio


async def test_requests_wait_for_the_model(tmp_path):
    async with running(tmp_path, env={"STUB_LOAD_FILE": str(tmp_path / "go on")}) as server:
        server.open("x = \n")
        older = asyncio.create_task(server.ask(0, 1))
        cancelled = asyncio.create_task(server.ask(0, 2, id="second"))
        assert await older is None
        server.cancel("second")
        with pytest.raises(JsonRpcRequestCancelled):
            await cancelled
        latest = asyncio.create_task(server.ask(0, 3))
        assert not server.said("loaded")
        (tmp_path / "go on").touch()
        assert (await latest).items

        [reports] = server.client.progress_reports.values()
        begin, *middle, end = reports
        assert isinstance(begin, types.WorkDoneProgressBegin)
        assert [each.percentage for each in middle] == sorted(each.percentage for each in middle)
        assert isinstance(end, types.WorkDoneProgressEnd)
        assert not server.shown


async def test_a_failed_load_is_told_once(tmp_path):
    error = "model.gguf: truncated; download it again"
    async with running(tmp_path, env={"STUB_LOAD_S": "0.2", "STUB_LOAD_ERROR": error}) as server:
        server.open("x = \n")
        assert [*await asyncio.gather(server.ask(0, 1), server.ask(0, 2))] == [None, None]
        assert await server.ask(0, 4) is None
        assert server.shown == [f"codespec: {error}"]
        assert server.client.messages[0].type == types.MessageType.Error
        assert "Traceback" not in server.stderr


async def test_bad_settings_warn_and_keep_the_defaults(tmp_path):
    """And a client that cannot show progress gets none."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "codespec.toml").write_text('max_tokens = 5\nremote.url = "https://example.com"\n')
    options = {"max_tokens": "many", "temprature": 1}
    async with running(tmp_path, options=options, folder=workspace, progress=False) as server:
        server.open("abc\n")
        [item] = (await server.ask(0, 3)).items
        assert item.insert_text == "abc<abc|5>"
        [shown] = server.shown
        assert '"remote.url" is ignored: a workspace may not set it' in shown
        assert '"max_tokens" must be a whole number from 1 to 8192, not "many"; keeping 5' in shown
        assert 'unknown key "temprature"; did you mean "temperature"?' in shown
        logged = [each.message for each in server.client.log_messages]
        assert sum("temprature" in each for each in logged) == 1
        assert not server.client.progress_reports


async def test_a_change_of_settings(tmp_path):
    """The client is asked first; what it sends later takes the place of its answer."""

    def change(settings):
        params = types.DidChangeConfigurationParams(settings)
        server.client.workspace_did_change_configuration(params)

    options = {"codespec": {"max_tokens": 7}}
    asked = {"codespec": {"max_tokens": 8, "seed": None}}
    async with running(tmp_path, options=options, configuration=asked) as server:
        server.open("abc\n")
        [item] = (await server.ask(0, 3)).items
        assert item.insert_text == "abc<abc|8>"
        assert not server.shown

        change({"codespec": {"enabled": False, "max_tokens": 8}})
        assert await server.ask(0, 3) is None
        assert server.stderr.count("stub: loaded") == 1  # the models stay

        change({"codespec": {"max_tokens": 9}})
        [item] = (await server.ask(0, 3)).items
        assert item.insert_text == "abc<abc|9>"
        await until(lambda: server.stderr.count("stub: loaded") == 2)
        assert server.said("closed")

        change(["nonsense"])
        [item] = (await server.ask(0, 3)).items
        assert item.insert_text == "abc<abc|7>"
        assert server.shown == ["codespec: settings: must be an object; ignored"]
