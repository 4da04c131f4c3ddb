"""The model process, with the embedded models, and language servers that share it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from functools import partial

import pytest
from lsprotocol import types

from codespec.config import Config
from codespec.daemon.start import Unreachable, reach, stop_model_process
from codespec.protocols import CodespecError
from tests.adapters import weights_of, write_adapter
from tests.daemon.windows import (
    LONG,
    TEXT,
    WAIT_S,
    InThread,
    Window,
    begun,
    eventually,
    has_ended,
    process_of,
    request,
    window,
)
from tests.lsp.helpers import TOO_BUSY, running, until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and sockets of POSIX")

SERVE = [sys.executable, "-m", "codespec", "serve"]


@pytest.mark.asyncio
async def test_two_windows_share_one_process_and_a_killed_one_is_replaced(tmp_path):
    async def process(server):
        answer = await server.client.workspace_execute_command_async(types.ExecuteCommandParams("codespec.status"))
        return answer["process"]

    start = partial(
        running,
        tmp_path,
        SERVE,
        {"CODESPEC_IDLE_EXIT_S": "0"},
        {"max_tokens": 16, "time_budget_ms": 0, "prefill": False},
    )
    async with start() as one, start() as other:
        for server in (one, other):
            server.open(TEXT)
            [item] = (await asyncio.wait_for(server.ask(1, 15), WAIT_S)).items
            assert item.insert_text.startswith("name = os.path.")
        first, second = await process(one), await process(other)
        assert first["pid"] == second["pid"]
        assert (second["windows"], second["targets"]) == (2, 1)

        os.kill(first["pid"], signal.SIGKILL)
        await until(lambda: one.shown and other.shown, WAIT_S)
        assert [each.partition(";")[0] for each in one.shown] == ["codespec: the model process has ended unexpectedly"]
        assert any("ended unexpectedly" in each.message for each in one.client.log_messages)
        one.open("x = 1\ny = x", "file:///work/b.py")
        answers = [one.ask(1, 5, "file:///work/b.py"), other.ask(0, 9)]
        assert None not in await asyncio.wait_for(asyncio.gather(*answers), WAIT_S)
        first, second = await process(one), await process(other)
        assert first["pid"] == second["pid"]

        await one.client.workspace_execute_command_async(types.ExecuteCommandParams("codespec.restart"))
        one.open("z = 1\nw = z", "file:///work/c.py")
        other.open("v = 1\nu = v", "file:///work/d.py")
        answers = [one.ask(1, 5, "file:///work/c.py"), other.ask(1, 5, "file:///work/d.py")]
        assert None not in await asyncio.wait_for(asyncio.gather(*answers), WAIT_S)
        assert (await process(one))["pid"] == (await process(other))["pid"] != first["pid"]
        assert [len(each.shown) for each in (one, other)] == [1, 1]  # a restart is no news
    [lock] = (tmp_path / "run").glob("*.lock")
    assert eventually(lambda: has_ended(lock))
    assert not list((tmp_path / "run").glob("*.sock"))


@pytest.mark.asyncio
async def test_a_workspace_changes_its_adapter_while_its_documents_are_open(tmp_path):
    async def status():
        return await server.client.workspace_execute_command_async(types.ExecuteCommandParams("codespec.status"))

    async def complete():
        found = None
        while found is None:  # where the model has not begun for long
            found = await asyncio.wait_for(server.ask(1, 15), WAIT_S)
        return found.items[0].insert_text

    async def choose(adapter, wanted):
        (folder / "codespec.toml").write_text(f'target_lora = "{adapter}"\n', "utf-8")
        end = time.monotonic() + WAIT_S
        while (await status()).get("target_lora", {}).get("path", "") != wanted:
            assert time.monotonic() < end
            await asyncio.sleep(0.1)

    folder, mine = tmp_path / "w", tmp_path / "data" / "models" / "adapters" / "mine.gguf"
    folder.mkdir()
    mine.parent.mkdir(parents=True)
    write_adapter(mine, weights_of())
    environment = {"CODESPEC_IDLE_EXIT_S": "5", "CODESPEC_DATA": str(tmp_path / "data")}
    options = {"max_tokens": 16, "prefill": False, "gate": "off", "time_budget_ms": 0}
    async with running(tmp_path, SERVE, environment, options, folder=folder) as server:
        server.open(TEXT)
        plain = await complete()
        loaded = (await status())["process"]
        await choose("mine", str(mine))
        assert await complete() != plain
        await choose("gone", "")
        await until(lambda: server.shown, WAIT_S)
        assert server.shown[0].startswith("codespec: no LoRA adapter 'gone'; ")
        assert await complete() == plain
        await choose("mine", str(mine))
        assert await complete() != plain
        await choose("", "")
        assert await complete() == plain
        last = (await status())["process"]
        assert (last["pid"], last["targets"]) == (loaded["pid"], 1)
        assert len(server.shown) == 1


def test_the_answers_are_those_of_a_completer_in_this_process(kept):
    from codespec.completion.load import load_completer

    config = Config(max_tokens=16, time_budget_ms=0)
    local = load_completer(config)
    with window(config) as shared:
        for what in (request(), request("class A:\n    def ", "b.py"), request("é😋 = ", "c.py")):
            [mine], [its] = local.complete(what), shared.complete(what)
            assert (its.text, its.finish_reason, its.backed_up) == (mine.text, mine.finish_reason, mine.backed_up)
            assert its.report["target"] == "target"
    local.close()


def test_windows_that_start_at_once_start_one_process(here):
    found: list[Window] = []
    threads = [threading.Thread(target=lambda: found.append(Window(Config())), daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    processes = [process_of(each) for each in found]
    assert len(processes) == 4
    assert len({each["pid"] for each in processes}) == 1
    assert all((each["windows"], each["targets"]) == (4, 1) for each in processes)
    for each in found:
        each.close()


def test_other_settings_of_the_same_model_load_nothing(kept):
    loads = []
    with window() as first:
        pid = process_of(first)["pid"]
        second = Window(Config(max_tokens=1, time_budget_ms=0), lambda message, percent: loads.append(message))
        assert second.complete(request("x = "))[0].finish_reason == "length"
        assert process_of(second)["pid"] == pid
        assert not loads
        other = Config().apply({"target": {"context": 512}})[0]
        with window(other) as third:
            assert process_of(third)["targets"] == 2
        second.close()
        assert first.complete(request())


def test_a_request_is_asked_again_when_the_process_ends(here):
    """It is no news where the process was asked to."""
    told: list[str] = []

    def ended() -> int:
        return sum(TOO_BUSY not in each for each in told)

    with window(Config(max_tokens=200, time_budget_ms=0, gate="off"), told.append) as completer:
        pid = process_of(completer)["pid"]
        asked = InThread(completer, request(LONG + "def "))
        assert eventually(lambda: begun(completer))
        os.kill(pid, signal.SIGKILL)
        assert asked.wait()
        assert ended() == 1
        second = process_of(completer)["pid"]
        assert second != pid
        assert stop_model_process()
        assert completer.complete(request())
        assert process_of(completer)["pid"] not in (pid, second)
        assert ended() == 1


def test_a_request_that_is_stopped_by_the_end_of_the_process_is_asked_again(here):
    with window(Config(max_tokens=200, time_budget_ms=0, gate="off")) as completer:
        asked = InThread(completer, request(LONG + "def "))
        assert eventually(lambda: begun(completer))
        assert stop_model_process()
        assert asked.wait()


def test_a_request_that_kills_the_process_twice_is_given_up(here, monkeypatch):
    """And nothing is started any more where that happens again and again."""
    monkeypatch.setattr("codespec.daemon.client.MOST_RESTARTS", 3)
    monkeypatch.setattr("codespec.daemon.client.RESTARTS_S", 3600.0)  # starts may take long
    with window(Config(max_tokens=400, time_budget_ms=0), lambda message: None) as completer:
        asked = InThread(completer, request(LONG))
        killed = set()
        while len(killed) < 2:
            assert eventually(lambda: begun(completer) and process_of(completer)["pid"] not in killed)
            pid = process_of(completer)["pid"]
            os.kill(pid, signal.SIGKILL)
            killed.add(pid)
        asked.wait()
        assert isinstance(asked.error, CodespecError)
        assert "over a request, which is given up" in str(asked.error)
        assert completer.complete(request())
        os.kill(process_of(completer)["pid"], signal.SIGKILL)
        assert eventually(lambda: completer.client._link is None)
        with pytest.raises(CodespecError, match="has ended 3 times within a minute"):
            completer.complete(request())


def test_a_cancelled_request_stops_in_the_process(kept):
    with window(Config(max_tokens=2000, time_budget_ms=0, gate="off")) as completer:
        asked = InThread(completer, request(LONG + "def "))
        assert eventually(lambda: begun(completer))
        asked.cancel.set()
        assert asked.wait() is None
        assert completer.complete(request("x = "))
        assert completer.status()["tokens"] < 2000


def test_busy_windows_take_turns(kept):
    over = threading.Event()
    with window() as busy, window() as other:

        def ask_on() -> None:
            number = 0
            while not over.is_set():
                number += 1
                busy.complete(request(f"value_{number} = "))

        asking = threading.Thread(target=ask_on, daemon=True)
        asking.start()
        assert eventually(lambda: begun(busy))
        assert InThread(other, request()).wait()
        assert InThread(other, request("y = ")).wait()
        assert asking.is_alive()
        over.set()
        asking.join(WAIT_S)


def test_what_nobody_waits_for_gives_way_to_another_window(kept):
    with window(Config(max_tokens=2000, time_budget_ms=0, gate="off")) as first, window() as second:
        ahead = InThread(first, request(LONG + "def ", ahead=True))
        assert eventually(lambda: begun(first))
        assert InThread(second, request()).wait()
        assert ahead.wait() is None
        first.prefill(request(LONG + "class "))
        assert InThread(second, request("y = ")).wait()


def test_a_model_that_cannot_be_loaded_is_said_as_ever(kept, tmp_path):
    with pytest.raises(CodespecError, match="nonesuch"):
        Window(Config().apply({"target": {"path": str(tmp_path / "nonesuch.gguf")}})[0])
    with window(Config(draft="nonesuch")) as completer, pytest.raises(CodespecError, match="no draft model 'nonesuch'"):
        completer.complete(request())


def test_without_a_process_the_models_are_loaded_in_the_server(here):
    here.log.mkdir(parents=True)
    with pytest.raises(Unreachable, match="cannot be started"):
        reach()
    warnings = []
    with window(Config(max_tokens=4), warnings.append) as alone:
        assert alone.complete(request())
        assert "process" not in alone.status()
        alone.client._own.close(WAIT_S)
    assert len(warnings) == 1
    assert "loaded in this window's own process" in warnings[0]
