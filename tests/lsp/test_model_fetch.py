"""Models from the menu: what this machine can run, fetched with progress, cancelled, refused."""

from __future__ import annotations

import asyncio
import os
import socket
import sys

import pytest

from codespec.models.catalogue import PACKAGED

from .helpers import ROOT, plain, run_command, running, until
from .test_model_offer import package  # noqa: F401  # a fixture

pytestmark = pytest.mark.asyncio(loop_scope="function")

SERVE = [sys.executable, "-m", "codespec", "serve"]
NAME = PACKAGED[0].name
ENV = {"CODESPEC_OFFER_AFTER_S": "3600", "CODESPEC_MACHINE_SPEED": "20,200"}
NO_INDEX = {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "/nowhere"}


async def test_what_this_machine_can_run_the_best_first(tmp_path):
    async with running(tmp_path, env=ENV) as server:
        found = [plain(each) for each in await run_command(server, "codespec.suggestModels")]
        names = [each["model"] for each in found]
        assert NAME in names
        assert names[1:] == sorted(names[1:], key=lambda name: found[names.index(name)]["download"])
        assert all(each["fits"] and each["licence"] and each["download"] for each in found)


async def test_a_model_is_fetched_and_used(tmp_path, package):  # noqa: F811
    async with running(tmp_path, SERVE, env=ENV | package) as server:
        server.open("x = 1\n")
        assert await run_command(server, "codespec.getModel", NAME) is True
        assert (tmp_path / "data" / "models" / f"{NAME}.gguf").exists()
        for _ in range(300):
            if plain(await run_command(server, "codespec.status")).get("target") == NAME:
                break
            await asyncio.sleep(0.1)
        else:
            pytest.fail("it is not in use")


async def test_what_a_client_chooses_by_itself_is_written_nowhere(tmp_path, package):  # noqa: F811
    async with running(tmp_path, env=ENV | package) as server:
        assert await run_command(server, "codespec.getModel", NAME, False) is True
        assert not (tmp_path / "config" / "codespec" / "codespec.toml").exists()


async def test_without_a_network_the_answer_is_no_and_the_reason_is_shown(tmp_path):
    async with running(tmp_path, env=ENV | NO_INDEX) as server:
        assert await run_command(server, "codespec.getModel", NAME) is False
        await until(lambda: any("pip cannot fetch" in each for each in server.shown))
        assert await run_command(server, "codespec.getModel", "nonesuch") is False
        await until(lambda: any("no model 'nonesuch' to fetch" in each for each in server.shown))


@pytest.fixture
def silent_index():
    """The address of a package index that never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/simple"


async def test_one_at_a_time_and_it_can_be_cancelled(tmp_path, package, silent_index):  # noqa: F811
    env = ENV | package | {"PYTHONPATH": str(ROOT)} | NO_INDEX | {"PIP_NO_INDEX": "0", "PIP_INDEX_URL": silent_index}
    async with running(tmp_path, env=env) as server:
        first = asyncio.ensure_future(run_command(server, "codespec.getModel", NAME))
        await asyncio.sleep(0)  # it is sent
        assert await run_command(server, "codespec.getModel", NAME) is False
        await until(lambda: any("when the model that is being fetched is there" in each for each in server.shown))
        assert await run_command(server, "codespec.getModel", "cancel") is True
        assert await first is False
        assert await run_command(server, "codespec.getModel", "cancel") is False
        assert not any("failed" in each for each in server.shown)
