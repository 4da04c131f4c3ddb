"""What the server says of how long its answers took."""

from __future__ import annotations

import asyncio

import pytest
from lsprotocol import types

from codespec.lsp.answer_times import AnswerTimes
from codespec.worker.times import KEPT, Times

from .helpers import running, until
from .stub_server import completion


def test_quantiles_of_times():
    times = Times()
    assert times.figures() == {"count": 0}
    for ms in range(100, 0, -1):
        times.add(float(ms))
    assert times.figures() == {"count": 100, "p50": 50.0, "p95": 95.0, "p99": 99.0, "max": 100.0}
    for _ in range(KEPT):
        times.add(0.5)
    assert times.figures()["max"] == 0.5  # the oldest go


def test_an_answer_from_memory_has_no_times_of_the_model():
    made = completion("x")
    made.report.update({"prefill_tokens": 7, "timings_ms": {"prefill": 2.0, "total": 9.0}})
    answers = AnswerTimes()
    answers.add(1, 4, 10.0, False, [made])
    answers.add(1, 5, 0.2, True, [made])
    first, second = answers.latest()
    assert (first["line"], first["character"], first["prefill_tokens"], first["prefill_ms"]) == (1, 4, 7, 2.0)
    assert (second["memory"], second["prefill_tokens"], second["total_ms"]) == (True, 0, 0.0)
    assert answers.from_memory()["count"] == 1


async def status(server, *arguments):
    params = types.ExecuteCommandParams("codespec.status", list(arguments))
    return await server.client.workspace_execute_command_async(params)


@pytest.mark.asyncio
async def test_answers_and_stopped_decodes_are_counted(tmp_path):
    async with running(tmp_path, env={"STUB_STEP_S": "0.02"}) as server:
        server.open("abc\nsteps=500\n")
        first = await server.ask(0, 3)
        again = await server.ask(0, 3)
        assert again.items[0].insert_text == first.items[0].insert_text
        found = await status(server, "answers")
        assert [(each["character"], each["memory"]) for each in found["answers"]] == [(3, False), (3, True)]
        assert found["answers"][0]["ms"] >= 20
        assert found["memory_ms"]["count"] == found["from_memory"] == 1
        assert found["stop_decode_ms"] == {"count": 0}
        long = asyncio.create_task(server.ask(1, 9))
        await until(lambda: server.stderr.count("stub: begin") == 2)
        await server.ask(0, 2)  # takes its place
        assert await long is None
        found = await status(server)
        assert found["stop_decode_ms"]["count"] == 1
        assert "answers" not in found
