"""A real model is offered once, and fetched only after a yes."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from types import SimpleNamespace
from typing import Any, cast

import pytest
from lsprotocol import types

from codespec.config import Config
from codespec.lsp.model_offer import offer_model
from codespec.models.catalogue import CATALOGUE, PACKAGED
from codespec.models.registry import EMBEDDED
from tests.present import present
from tests.real_model import as_installed
from tests.stand_in_hub import stand_in_hub

from .helpers import Client, environment, running, until

pytestmark = pytest.mark.asyncio(loop_scope="function")

CODE = "Visual Studio Code"
SERVE = [sys.executable, "-m", "codespec", "serve"]


@pytest.fixture
def hub():
    with stand_in_hub() as hub:
        for model in CATALOGUE:
            hub.files[model.repository] = {model.file: (EMBEDDED / "draft-python.gguf").read_bytes()}
        yield hub


@pytest.fixture
def answers(monkeypatch):
    """What the client answers to the questions that it is asked, which are kept."""
    asked: list[str] = []
    titles: list[str] = []
    make = Client.__init__

    def with_questions(self) -> None:
        make(self)

        def question(params):
            asked.append(params.message)
            assert [each.title for each in params.actions] == ["Download", "Not now", "Never"]
            return types.MessageActionItem(titles.pop(0)) if titles else None

        self.feature(types.WINDOW_SHOW_MESSAGE_REQUEST)(question)

    monkeypatch.setattr(Client, "__init__", with_questions)
    return asked, titles


def soon(hub) -> dict[str, str]:
    # Other tests run beside these, so that measuring would find nothing fast enough.
    return {"CODESPEC_OFFER_AFTER_S": "0.1", "CODESPEC_MACHINE_SPEED": "60,1000", "HF_ENDPOINT": hub.url}


@pytest.fixture
def package(smollm2, tmp_path):
    """Where the model's package is installed: it is taken from there, without a network."""
    return as_installed(tmp_path / "site-packages", smollm2)


async def test_a_yes_fetches_and_uses_it(tmp_path, hub, answers, package):
    asked, titles = answers
    titles.append("Download")
    async with running(tmp_path, SERVE, env={**soon(hub), **package}, client_name=CODE) as server:
        server.open("x = 1\n")
        await server.ask(0, 5)
        await until(lambda: asked, 30)
        name = PACKAGED[0].name
        assert f"{name} is a small real one (98 MB, Apache-2.0)." in asked[0]
        assert re.search(r"can run [\w.-]+, too \([\d.]+ GB: `codespec models suggest`\)\. Download", asked[0])
        path = tmp_path / "data" / "models" / f"{name}.gguf"
        await until(path.exists, 60)

        async def target() -> str:
            command = types.ExecuteCommandParams("codespec.status", [])
            return present(await server.client.workspace_execute_command_async(command)).get("target", "")

        for _ in range(200):
            if await target() == name:
                break
            await asyncio.sleep(0.1)
        assert await target() == name
        assert await server.ask(0, 4) is not None
        assert not any("cannot" in each for each in server.shown)


class Window:
    """What an offer needs of a server. Once it has ended nothing more comes; there is nothing here that fetches."""

    def __init__(self, answer: str = "", options: dict | None = None) -> None:
        self.settings = SimpleNamespace(config=Config().apply(options or {})[0])
        self.usage = SimpleNamespace(client_name=CODE)
        self.answer, self.asked = answer, []

    async def window_show_message_request_async(self, question):
        self.asked.append(question.message)
        return types.MessageActionItem(self.answer) if self.answer else None


@pytest.fixture
def at_once(tmp_path, monkeypatch):
    now = {"CODESPEC_OFFER_AFTER_S": "0", "CODESPEC_MACHINE_SPEED": "60,1000"}
    for name, value in environment(tmp_path, now).items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("answer", ["Not now", "Never", ""])
async def test_nobody_is_asked_twice(tmp_path, at_once, answer):
    first, second = Window(answer), Window(answer)
    await offer_model(cast(Any, first))
    await offer_model(cast(Any, second))
    assert (len(first.asked), len(second.asked)) == (1, 0)
    assert ((tmp_path / "data" / "offered").read_text() == "inf") == (answer == "Never")


@pytest.mark.parametrize("options", [{"offer_models": False}, {"target": {"path": "target"}}])
async def test_who_has_chosen_is_not_asked(at_once, options):
    window = Window(options=options)
    await offer_model(cast(Any, window))
    assert not window.asked


async def test_without_a_network_the_user_is_told_and_nothing_changes(tmp_path, answers):
    answers[1].append("Download")
    env = {"CODESPEC_OFFER_AFTER_S": "0.1", "CODESPEC_MACHINE_SPEED": "60,1000", "PIP_CONFIG_FILE": os.devnull}
    env |= {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)}
    async with running(tmp_path, env=env, client_name=CODE) as server:
        await until(lambda: any("pip cannot fetch" in each for each in server.shown), 60)
        server.open("x = 1\n")
        assert (await server.ask(0, 5)).items
    assert not (tmp_path / "config" / "codespec" / "codespec.toml").exists()


async def test_an_editor_that_would_stop_the_user_only_shows_it(tmp_path, hub, answers):
    async with running(tmp_path, env=soon(hub), client_name="Neovim") as server:
        await until(lambda: any("codespec models pull" in each for each in server.shown), 30)
    assert not answers[0]


async def test_nothing_in_the_current_folder_is_run(tmp_path, hub, answers, monkeypatch):
    workspace = tmp_path / "cloned"
    workspace.mkdir()
    for name in ("codespec.py", "json.py"):
        (workspace / name).write_text(f"open({str(tmp_path / 'was run')!r}, 'w')\n")
    command = [sys.executable, "-c", "import sys; sys.path.pop(0); from codespec.cli.main import main; main(['serve'])"]
    monkeypatch.chdir(workspace)
    async with running(tmp_path, command, env=soon(hub), client_name=CODE):
        await until(lambda: answers[0], 30)
    assert not (tmp_path / "was run").exists()
