"""Requests that nobody wants any more stop in the middle of decoding, and the server goes on."""

from __future__ import annotations

import asyncio
import random

import pytest
import pytest_asyncio
from lsprotocol import types
from pygls.exceptions import JsonRpcRequestCancelled

from ..helpers import running, until

pytestmark = pytest.mark.asyncio(loop_scope="module")

STEP_S = 0.01
LONG = "steps=12000\n"
"""Requests after this line take two minutes unless they are stopped."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def slow(tmp_path_factory):
    async with running(tmp_path_factory.mktemp("slow"), env={"STUB_STEP_S": str(STEP_S)}) as server:
        yield server


def uri(name: str) -> str:
    return f"file:///work/{name}.py"


async def test_cancelling_stops_the_decoding(slow):
    slow.open(LONG, uri("cancel"))
    request = asyncio.create_task(slow.ask(0, 9, uri("cancel"), id="first"))
    await until(lambda: slow.said("begin cancel.py"))
    slow.cancel("first")
    with pytest.raises(JsonRpcRequestCancelled) as error:
        await request
    assert error.value.code == -32800
    await until(lambda: slow.said("stopped cancel.py"))
    assert not slow.said("done cancel.py")
    assert (await slow.ask(1, 0, uri("cancel"))).items


async def test_the_latest_request_of_a_document_wins(slow):
    slow.open(LONG, uri("latest"))
    decoding = asyncio.create_task(slow.ask(0, 9, uri("latest")))
    await until(lambda: slow.said("begin latest.py"))
    queued = asyncio.create_task(slow.ask(0, 9, uri("latest")))
    latest = asyncio.create_task(slow.ask(1, 0, uri("latest")))
    assert await decoding is None
    assert await queued is None
    assert (await latest).items
    assert slow.stderr.count("stub: done latest.py") == 1


async def test_documents_take_turns(slow):
    slow.open("steps=20\n", uri("one"))
    slow.open("x = 1\n", uri("another"))
    one = asyncio.create_task(slow.ask(0, 8, uri("one")))
    await until(lambda: slow.said("begin one.py"))
    another = asyncio.create_task(slow.ask(0, 5, uri("another")))
    assert (await one).items  # a request for another document does not supersede it
    assert (await another).items


async def test_closing_a_document_stops_its_request(slow):
    slow.open(LONG, uri("close"))
    request = asyncio.create_task(slow.ask(0, 9, uri("close")))
    await until(lambda: slow.said("begin close.py"))
    document = types.TextDocumentIdentifier(uri("close"))
    slow.client.text_document_did_close(types.DidCloseTextDocumentParams(document))
    assert await request is None
    await until(lambda: slow.said("stopped close.py"))


async def test_two_hundred_requests_at_50_hertz(slow):
    """Every request gets an answer, be it a list, null or that it was cancelled; and so does the next one."""
    chance = random.Random(1)
    for name in ("left", "right"):
        slow.open("steps=3\n", uri(name))
    requests = []
    for number in range(200):
        tick = asyncio.create_task(asyncio.sleep(0.02))
        id = f"storm-{number}"
        requests.append(asyncio.create_task(slow.ask(0, 7, uri(chance.choice(["left", "right"])), id=id)))
        if chance.random() < 0.4:
            await asyncio.sleep(chance.random() * 0.015)
            slow.cancel(id)
        await tick
    answers = await asyncio.wait_for(asyncio.gather(*requests, return_exceptions=True), 60)
    cancelled = [each for each in answers if isinstance(each, JsonRpcRequestCancelled)]
    complete = [each for each in answers if isinstance(each, types.InlineCompletionList)]
    assert len(cancelled) + len(complete) + answers.count(None) == 200
    assert cancelled
    assert complete
    assert (await asyncio.wait_for(slow.ask(1, 0, uri("left")), 60)).items
    assert "Traceback" not in slow.stderr
