"""``python -m tests.http.soak``: many clients for a long time, well and badly behaved; is anything lost, does it grow?

    python -m tests.http.soak --minutes 30 --clients 20

Each client asks one thing after the other: whole answers, streams, several on one connection; it goes away in the
middle, sends bad bodies, half requests, nothing at all, or reads slowly or not. Every connection must be answered or
closed, every answer that is waited for must come and be whole, the same question must have the same answer, and
memory and file descriptors must be flat, which is printed by the minute.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import psutil

from tests.http.child_server import ChildServer
from tests.http.http_servers import with_chat_template
from tests.http.raw_client import BadAnswerError, Reply, ask, closed, read_reply, written
from tests.lsp.soak import growth

LIMITS = {"tokens": 400, "seconds": 10.0, "header_s": 5.0, "body_s": 5.0, "send_s": 5.0, "waiting": 100}
ANSWER_WITHIN_S = 180.0
SAMPLE_S = 1.0
WARM_UP_S, WARM_UP_SHARE = 60.0, 0.2
GROWTH = 0.03
"""Of memory, after the warm-up."""
MORE_DESCRIPTORS = 3
PROMPT = "def add(a, b):\n    return "
MESSAGES = [{"role": "user", "content": "Say something."}]
KNOWN = ("/v1/completions", {"prompt": PROMPT, "max_tokens": 12, "temperature": 0})
BODIES: list[tuple[str, dict[str, Any]]] = [
    ("/v1/completions", {"prompt": PROMPT, "max_tokens": 24, "temperature": 1}),
    ("/v1/completions", {"prompt": PROMPT, "suffix": "\n\nprint(add(1, 2))\n", "max_tokens": 16, "n": 2}),
    ("/v1/completions", {"prompt": PROMPT, "max_tokens": 20, "logprobs": 3, "stop": ["\n"]}),
    ("/v1/completions", {"prompt": "", "max_tokens": 30, "temperature": 1, "response_format": {"type": "json_object"}}),
    ("/v1/completions", {"prompt": "", "max_tokens": 9, "structured_outputs": {"choice": ["yes", "no", "perhaps"]}}),
    ("/v1/completions", {"prompt": PROMPT, "language": "python", "max_tokens": 20}),
    ("/v1/completions", {"prompt": PROMPT, "session": "editor", "max_tokens": 60}),
    ("/v1/chat/completions", {"messages": MESSAGES, "max_tokens": 20}),
    ("/completion", {"prompt": PROMPT, "n_predict": 20, "json_schema": {"enum": ["a", 1, None]}}),
    ("/infill", {"input_prefix": PROMPT, "input_suffix": "\n", "prompt": "", "n_predict": 16}),
    ("/v1/fim/completions", {"prompt": PROMPT, "suffix": "\n", "max_tokens": 16}),
]
BAD = [
    b"",
    b"{",
    b"[]",
    b'{"prompt": 1}',
    b'{"n": -1}',
    b"\xff",
    b"[" * 10_000,
    b'{"grammar": "root ::= ("}',
    b"x" * 100_000,
]


@dataclass
class Report:
    """What happened.

    Attributes:
        outcomes: by what a client did: how it ended.
        failures: what must not be.
        memory: seconds and MB.
        descriptors: open ones of the server, at the same times.
    """

    outcomes: dict[str, collections.Counter[str]] = field(
        default_factory=lambda: collections.defaultdict(collections.Counter)
    )
    failures: list[str] = field(default_factory=list)
    memory: list[tuple[float, float]] = field(default_factory=list)
    descriptors: list[int] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def growth(self) -> float | None:
        """By what share memory grew after the warm-up."""
        return growth(self.memory, max(WARM_UP_S, WARM_UP_SHARE * self.seconds))

    def problems(self) -> list[str]:
        """What must not be."""
        found = self.failures[:40]
        if self.growth is not None and self.growth > GROWTH:
            found.append(f"memory grew by {self.growth:.1%}, {GROWTH:.0%} are allowed")
        if self.descriptors and self.descriptors[-1] > self.descriptors[0] + MORE_DESCRIPTORS:
            found.append(f"{self.descriptors[0]} descriptors at first, {self.descriptors[-1]} when all had left")
        return found

    def text(self) -> str:
        """The report to print."""
        lines = [f"{act:10} {dict(ends.most_common())}" for act, ends in sorted(self.outcomes.items())]
        count = sum(counts.total() for counts in self.outcomes.values())
        grown = "too short to tell a growth" if self.growth is None else f"{self.growth:+.2%} after the warm-up"
        sizes = [size for _, size in self.memory]
        lines.append(f"{count} connections and requests in {self.seconds:.0f} s")
        lines.append(f"memory, MB: {sizes[0]:.0f} at first, {sizes[-1]:.0f} at last, {max(sizes):.0f} at most; {grown}")
        counts = self.descriptors
        lines.append(f"descriptors: {counts[0]} at first, {counts[-1]} at last, {max(counts)} at most")
        return "\n".join([*lines, *self.problems(), *(["good"] * (not self.problems()))])


class Client:
    """One client, which does one thing after the other."""

    def __init__(self, server: ChildServer, rng: Random, report: Report, known: str) -> None:
        self._server, self._rng, self._report, self._known = server, rng, report, known
        self._acts: list[tuple[int, Callable[[], Any]]] = [
            (30, self.whole), (20, self.stream), (15, self.leaves), (8, self.bad), (5, self.half), (4, self.silent),
            (6, self.slow), (2, self.reads_nothing), (6, self.several), (8, self.same),
        ]  # fmt: skip

    async def run(self, until: float) -> None:
        """Go on until a time of ``monotonic``."""
        weights, acts = zip(*self._acts, strict=True)
        while time.monotonic() < until and self._server.status is None:
            act = self._rng.choices(acts, weights)[0]
            try:
                outcome = await asyncio.wait_for(act(), ANSWER_WITHIN_S)
            except (asyncio.TimeoutError, TimeoutError):
                outcome = "lost"
                self._report.failures.append(f"{act.__name__}: neither an answer nor an end in {ANSWER_WITHIN_S:.0f} s")
            except (BadAnswerError, AssertionError, OSError, ValueError) as error:
                outcome = "failed"
                self._report.failures.append(f"{act.__name__}: {type(error).__name__} {error}")
            self._report.outcomes[act.__name__][outcome] += 1
            await asyncio.sleep(self._rng.random() * 0.2)

    def _any(self, **more: Any) -> tuple[bytes, str]:
        path, fields = self._rng.choice(BODIES)
        fields = {**fields, **more, **({"seed": self._rng.randrange(1000)} if "temperature" in fields else {})}
        return written(fields, path), path

    async def whole(self) -> str:
        """A whole answer."""
        reply = await ask(self._server.port, self._any()[0], seconds=ANSWER_WITHIN_S)
        return expected(reply)

    async def same(self) -> str:
        """A known answer."""
        reply = await ask(self._server.port, written(KNOWN[1], KNOWN[0]), seconds=ANSWER_WITHIN_S)
        assert reply.status in (200, 429), reply
        assert reply.status == 429 or reply.json["choices"][0]["text"] == self._known, "another answer"
        return str(reply.status)

    async def stream(self) -> str:
        """A whole stream, with its end."""
        data, path = self._any(stream=True)
        reply = await ask(self._server.port, data, seconds=ANSWER_WITHIN_S)
        if reply.status != 200:
            return expected(reply)
        events = reply.body.decode().strip().split("\n\n")
        assert all(event.startswith("data: ") for event in events), events[-1]
        if '"superseded"' in events[-1]:
            return "superseded"
        if path.startswith("/v1"):
            assert events[-1] == "data: [DONE]", f"no end: {events[-1]}"
        else:
            assert json.loads(events[-1][6:])["stop"] is True, f"no end: {events[-1]}"
        return "200"

    async def leaves(self) -> str:
        """Goes away at once, while it waits, or in the middle of an answer."""
        _, writer = await self._connect()
        writer.write(self._any(stream=self._rng.random() < 0.7, max_tokens=300)[0])
        await writer.drain()
        await asyncio.sleep(self._rng.choice([0, 0.01, 0.1, 0.5]))
        if self._rng.random() < 0.5:
            writer.transport.abort()
        await closed(writer)
        return "left"

    async def bad(self) -> str:
        """A body that is refused."""
        reply = await ask(self._server.port, written(self._rng.choice(BAD)), seconds=ANSWER_WITHIN_S)
        assert reply.status in (400, 429), reply
        return str(reply.status)

    async def half(self) -> str:
        """Part of a request, and then nothing: it is refused or closed in time."""
        reader, writer = await self._connect()
        data = self._any()[0]
        writer.write(data[: self._rng.randrange(1, len(data))])
        return await self._ended(reader, writer)

    async def silent(self) -> str:
        """Not a byte."""
        return await self._ended(*await self._connect())

    async def slow(self) -> str:
        """Reads a little at a time."""
        reader, writer = await self._connect()
        writer.write(self._any(stream=True)[0])
        size = 0
        for _ in range(40):
            part = await reader.read(64)
            size += len(part)
            if not part:
                break
            await asyncio.sleep(0.03)
        await closed(writer)
        assert size, "nothing came"
        return "read"

    async def reads_nothing(self) -> str:
        """Asks for much on one connection, and reads none of it."""
        _, writer = await self._connect()
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(written(None, "/metrics", "GET") * 200)
        await asyncio.sleep(self._rng.random() * 8)
        writer.transport.abort()
        await closed(writer)
        return "left"

    async def several(self) -> str:
        """Several requests on one connection, one after the other or all at once."""
        reader, writer = await self._connect()
        count, at_once = self._rng.randint(2, 4), self._rng.random() < 0.5
        try:
            if at_once:
                writer.write(b"".join(self._any()[0] for _ in range(count)))
            for _ in range(count):
                if not at_once:
                    writer.write(self._any()[0])
                reply = await read_reply(reader)
                if reply is None:
                    raise BadAnswerError("closed between two answers")
                expected(reply)
        finally:
            await closed(writer)
        return "all"

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(self._server.host, self._server.port, limit=1 << 20)

    async def _ended(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> str:
        try:
            reply = await read_reply(reader)
            return "closed" if reply is None else str(reply.status)
        except ConnectionError:
            return "reset"
        finally:
            await closed(writer)


def expected(reply: Reply) -> str:
    """The status of an answer to a good request.

    Raises:
        AssertionError: it was refused for another reason than that there is much to do.
    """
    assert reply.status in (200, 409, 429), f"{reply.status} {reply.body[:300]!r}"
    if reply.status == 200:
        assert isinstance(reply.json, dict)
    return str(reply.status)


async def soak(server: ChildServer, seconds: float, clients: int, seed: int, say: Callable[[str], None]) -> Report:
    """Let the clients ask, then look whether all is as before."""
    report, process, began = Report(), psutil.Process(server.pid), time.monotonic()
    reply = await ask(server.port, written(KNOWN[1], KNOWN[0]))
    known = reply.json["choices"][0]["text"]
    report.descriptors.append(descriptors_of(process))
    sampling = asyncio.create_task(_sample(report, process, began, say))
    tasks = [
        Client(server, Random(seed * 1000 + number), report, known).run(began + seconds) for number in range(clients)
    ]
    await asyncio.gather(*tasks)
    sampling.cancel()
    report.seconds = time.monotonic() - began
    await _settle(server, process, report)
    if server.status is not None:
        report.failures.append(f"the server ended with status {server.status}")
    report.failures += [f"the log: {each}" for each in server.complaints()]
    return report


def descriptors_of(process: psutil.Process) -> int:
    """Open file descriptors, or handles."""
    if sys.platform == "win32":
        return process.num_handles()
    return process.num_fds()


async def _sample(report: Report, process: psutil.Process, began: float, say: Callable[[str], None]) -> None:
    minute = 0
    while True:
        at = time.monotonic() - began
        report.memory.append((at, process.memory_info().rss / 2**20))
        report.descriptors.append(descriptors_of(process))
        if at >= 60 * minute:
            done = sum(counts.total() for counts in report.outcomes.values())
            size, count = report.memory[-1][1], report.descriptors[-1]
            say(f"{minute:3} min: {size:.0f} MB, {count} descriptors, {done} done, {len(report.failures)} failed")
            minute += 1
        await asyncio.sleep(SAMPLE_S)


async def _settle(server: ChildServer, process: psutil.Process, report: Report) -> None:
    """Nothing runs or waits any more soon after all clients have left."""
    end = time.monotonic() + 30
    idle = (b"codespec_requests_running 0.0", b"codespec_requests_waiting 0.0")
    text = b""
    while time.monotonic() < end:
        text = (await ask(server.port, written(None, "/metrics", "GET"), method="GET")).body
        if all(line in text for line in idle) and descriptors_of(process) <= report.descriptors[0] + MORE_DESCRIPTORS:
            break
        await asyncio.sleep(0.5)
    if not all(line in text for line in idle):
        report.failures.append("work goes on although all clients have left")
    report.descriptors.append(descriptors_of(process))


def main() -> int:
    """Run; 1 where something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.http.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    say = lambda line: print(line, flush=True)  # noqa: E731
    with tempfile.TemporaryDirectory() as folder, ChildServer(with_chat_template(Path(folder)), LIMITS) as server:
        report = asyncio.run(soak(server, options.minutes * 60, options.clients, options.seed, say))
    print(report.text())
    return 1 if report.problems() else 0


if __name__ == "__main__":
    raise SystemExit(main())
