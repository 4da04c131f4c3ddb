"""Simulated developers in front of a server, and what their figures say."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import numpy as np
import pytest

from benchmarks.capacity.capacity import summary
from benchmarks.capacity.clients import TYPED, ask, body, type_keys
from benchmarks.capacity.sessions import Keys, Work
from benchmarks.capacity.waits import Waits
from codespec.errors import CodespecError

WORK = Work(prompt=20, reread=1, answer=4, memory=0.0, debounce_ms=200.0, prefill=False)
IDS = list(range(5_000))


class StandIn:
    """Answers as llama-server does: a token every ``pause`` seconds, and notes what was asked and what was let go."""

    def __init__(self, pause: float, status: str = "200 OK") -> None:
        self.pause, self.status = pause, status
        self.asked: list[dict[str, Any]] = []
        self.finished = 0

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            length = 0
            while (line := (await reader.readline()).strip()) != b"":
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            request = json.loads(await reader.readexactly(length))
            self.asked.append(request)
            writer.write(f"HTTP/1.1 {self.status}\r\nContent-Type: text/event-stream\r\n\r\n".encode())
            for number in range(request["n_predict"]):
                await asyncio.sleep(self.pause)
                last = number == request["n_predict"] - 1
                writer.write(b"data: " + json.dumps({"stop": last}, separators=(",", ":")).encode() + b"\n\n")
                await writer.drain()
            self.finished += 1
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


def serve(stand_in: StandIn, work: Any) -> Any:
    async def go() -> Any:
        async with await asyncio.start_server(stand_in, "127.0.0.1", 0) as server:
            return await work(server.sockets[0].getsockname()[1])

    return asyncio.run(go())


def keys(at: list[float], answers: list[int]) -> Keys:
    count = len(at)
    until = np.append(at[1:], np.inf)
    return Keys(np.asarray(at), np.zeros(count, int), until, np.zeros(count, bool), np.ones(count), np.asarray(answers))


def test_a_request_ends_with_its_last_token():
    stand_in = StandIn(0.0)
    assert serve(stand_in, lambda port: ask(port, body([1, 2], 3))) == {"stop": True}
    assert stand_in.asked[0]["cache_prompt"] is True
    assert stand_in.asked[0]["prompt"] == [1, 2]


def test_a_refusal_is_said():
    with pytest.raises(CodespecError, match=r"refused a request: HTTP/1\.1 503"):
        serve(StandIn(0.0, "503 Unavailable"), lambda port: ask(port, body([1], 1)))


def test_a_key_takes_back_the_request_before_it():
    stand_in = StandIn(0.2)
    typed = keys([0.0, 2.0, 2.01, 6.0], [50, 50, 2, 2])
    measured = serve(stand_in, lambda port: type_keys(port, typed, 0.0, WORK, IDS))
    # The second key has no request: the third comes before it would have been made.
    assert measured.answered == [False, True, True]
    assert measured.ms[0] < 10_000  # it was taken back before its fifty tokens were there
    assert min(measured.ms[1:]) >= 400
    assert [each["n_predict"] for each in stand_in.asked] == [1, 50, 2, 2]
    assert stand_in.finished == 3
    lengths = [len(each["prompt"]) for each in stand_in.asked]
    assert lengths == [20, 21, 23, 24]  # one token more for each key
    assert all(each["prompt"][:20] == IDS[:20] for each in stand_in.asked)


def test_long_documents_grow_no_further():
    typed = keys([0.001 * n for n in range(TYPED + 30)] + [3.0], [1] * (TYPED + 31))
    stand_in = StandIn(0.0)
    serve(stand_in, lambda port: type_keys(port, typed, 0.0, WORK, IDS))
    assert len(stand_in.asked[-1]["prompt"]) == 20 + TYPED + 1


def test_errors_are_those_of_all_runs_together():
    waits = [Waits.of(ms, [True] * len(ms)) for ms in ([10.0, 20.0], [30.0, 40.0], [5.0, 10.0], [20.0, 80.0])]
    found = summary([({"clients": 2}, waits[0], waits[2]), ({"clients": 2}, waits[1], waits[3])])
    assert found == {"2": {"median": pytest.approx(1.0), "p95": pytest.approx(-0.5)}}
