"""``python -m tests.http.flood``: requests as large, as many or as slow as they may be, and more; what does the server
take for them, and how long does everybody else wait?

    python -m tests.http.flood [KIND …] [--bodies 40] [--mib 8]

For each kind of flood a server of its own: its memory before and at most, the longest waits meanwhile for ``/health``,
which the event loop answers, and for ``/tokenize``, which the decode thread does, and what was answered. Fails where
the bounds below are crossed, or where an answer is no JSON with a message.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import psutil

from tests.http.child_server import ChildServer
from tests.http.raw_client import BadAnswerError, Reply, closed, read_reply, written

LIMITS = {"header_s": 30.0, "body_s": 60.0, "seconds": 5.0}
MOST_MIB, LONGEST_S = 350.0, 1.0
"""More memory than at first, and the longest wait for ``/health``, as far as the server itself worked meanwhile: other
programs may have the machine, too."""
EVERY_S = 0.02
ANSWER_WITHIN_S = 120.0


@dataclass
class Flood:
    """What is sent at the same time, each on a connection of its own.

    Attributes:
        parts: what each sends, part after part.
        pause_s: between two parts.
    """

    parts: list[list[bytes]]
    pause_s: float = 0.0


@dataclass
class Report:
    """What came of a flood: memory in MiB, seconds."""

    kind: str
    at_first: float = 0.0
    at_most: float = 0.0
    longest_s: float = 0.0
    busy_s: float = 0.0
    looks: int = 0
    decode_s: float = 0.0
    answers: collections.Counter[str] = field(default_factory=collections.Counter)
    failures: list[str] = field(default_factory=list)

    def text(self) -> str:
        """A line."""
        answers = ", ".join(f"{count} × {what}" for what, count in self.answers.most_common(4))
        return (
            f"{self.kind:12} {self.at_first:5.0f} → {self.at_most:5.0f} MiB, /health {self.longest_s:6.3f} s at most "
            f"({self.busy_s:.2f} s of the server's own) of {self.looks}, /tokenize {self.decode_s:6.3f} s; {answers}"
            + "".join(f"\n    {each}" for each in self.failures[:5])
        )

    def check(self) -> None:
        """Note what crosses the bounds."""
        if self.at_most > self.at_first + MOST_MIB:
            self.failures.append(f"it took more than {MOST_MIB:g} MiB")
        if self.busy_s > LONGEST_S:
            self.failures.append(f"the server worked for more than {LONGEST_S:g} s before it answered /health")


class Watch:
    """Asks for ``/health`` and ``/tokenize`` and looks at the memory, over and over, while it is entered."""

    def __init__(self, server: ChildServer, report: Report) -> None:
        self._process, self._port, self._report = psutil.Process(server.pid), server.port, report
        self._over = threading.Event()
        self._threads = [threading.Thread(target=each) for each in (self._health, self._tokenize)]

    def _busy(self) -> float:
        times = self._process.cpu_times()
        return float(times.user + times.system)

    def _memory(self) -> float:
        return float(self._process.memory_info().rss) / 2**20

    def __enter__(self) -> None:
        self._report.at_first = self._memory()
        for thread in self._threads:
            thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _health(self) -> None:
        for took, busy in self._asked("GET", "/health", None):
            self._report.longest_s = max(self._report.longest_s, took)
            self._report.busy_s = max(self._report.busy_s, min(took, busy))
            self._report.at_most = max(self._report.at_most, self._memory())
            self._report.looks += 1

    def _tokenize(self) -> None:
        for took, _ in self._asked("POST", "/tokenize", b'{"content": "x"}'):
            self._report.decode_s = max(self._report.decode_s, took)

    def _asked(self, method: str, path: str, body: bytes | None) -> Iterator[tuple[float, float]]:
        """Seconds until the answers, and of processor time that the server took meanwhile, whatever for."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=ANSWER_WITHIN_S)
        while not self._over.wait(EVERY_S):
            began, busy = time.monotonic(), self._busy()
            try:
                connection.request(method, path, body, {"Content-Type": "application/json"})
                connection.getresponse().read()
            except (OSError, http.client.HTTPException):  # as all others: there are too many connections
                connection.close()
            yield time.monotonic() - began, self._busy() - busy
        connection.close()


async def pour(server: ChildServer, flood: Flood, report: Report) -> None:
    """Send it all, and hear what is answered."""

    async def one(parts: list[bytes]) -> None:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1 << 24)
        except OSError as error:
            report.answers[type(error).__name__] += 1
            return
        reply = asyncio.ensure_future(read_reply(reader))
        try:
            try:
                for part in parts:
                    writer.write(part)
                    await writer.drain()
                    await asyncio.sleep(flood.pause_s)
                    if reply.done():
                        break
            except ConnectionError:
                pass
            report.answers[told(await asyncio.wait_for(reply, ANSWER_WITHIN_S), report)] += 1
        except (ConnectionError, BadAnswerError, asyncio.TimeoutError) as error:
            report.answers[type(error).__name__] += 1
            reply.cancel()
        finally:
            await closed(writer)

    await asyncio.gather(*map(one, flood.parts))


def told(reply: Reply | None, report: Report) -> str:
    """An answer in a few words."""
    if reply is None:
        return "closed"
    try:
        content = reply.json
    except ValueError:
        report.failures.append(f"{reply.status} is no JSON: {reply.body[:60]!r}")
        return str(reply.status)
    return f"{reply.status}" if reply.status == 200 else f"{reply.status} {str(content['error']['message'])[:70]}"


def chunked(data: bytes, size: int, step: int = 1 << 16, path: str = "/v1/completions") -> list[bytes]:
    """A request whose body comes in chunks of some size, in parts of ``step`` bytes."""
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    chunks = (data[start : start + size] for start in range(0, len(data), size))
    body = b"".join(b"%x\r\n%s\r\n" % (len(each), each) for each in chunks) + b"0\r\n\r\n"
    whole = (head + "Transfer-Encoding: chunked\r\n\r\n").encode() + body
    return [whole[start : start + step] for start in range(0, len(whole), step)]


def within(size: int, before: bytes, unit: bytes, after: bytes) -> bytes:
    """JSON of about ``size`` bytes, most of it ``unit`` repeated."""
    return before + unit * ((size - len(before) - len(after)) // len(unit)) + after


FIELDS = b'"max_tokens": 2, "temperature": 0, '
Maker = Callable[[int, int], Flood]


def _of(before: bytes, unit: bytes, after: bytes, path: str = "/v1/completions") -> Maker:
    def make(count: int, size: int) -> Flood:
        data = written(within(size, b"{" + FIELDS + before, unit, after + b"}"), path)
        return Flood([[data]] * count)

    return make


def _chunks(count: int, size: int) -> Flood:
    body = within(size, b"{" + FIELDS + b'"prompt": "', b"x", b'"}')
    return Flood([chunked(body, 1 << 16)] * count)


def _crumbs(count: int, size: int) -> Flood:
    body = within(min(size, 1 << 20), b"{" + FIELDS + b'"prompt": "', b"x", b'"}')
    return Flood([chunked(body, 1)] * count)


def _slow(count: int, size: int) -> Flood:
    data = written(within(size, b"{" + FIELDS + b'"prompt": "', b"x", b'"}'))
    parts = [data[:300], *(data[start : start + 4096] for start in range(300, 400_000, 4096))]
    return Flood([parts] * (5 * count), 0.1)


def _heads(count: int, size: int) -> Flood:
    headers = {f"X-{each}": "y" * 40 for each in range(250)}
    return Flood([[written({"prompt": "x", "max_tokens": 1}, headers=headers)]] * (5 * count))


def _connections(count: int, size: int) -> Flood:
    data = written({"prompt": "x", "max_tokens": 1}, headers={"Connection": "close"})
    return Flood([[data[:50], data[50:]]] * 1300, 2.0)


KINDS: dict[str, Maker] = {
    "text": _of(b'"prompt": "', b"x", b'"'),
    "emoji": _of(b'"prompt": "', "😀".encode(), b'"'),
    "escapes": _of(b'"prompt": "', b"\\ud83d\\ude00", b'"'),
    "lists": _of(b'"user": [', b"[],", b"0]"),
    "objects": _of(b'"user": [', b"{},", b"0]"),
    "numbers": _of(b'"prompt": [', b"1,", b"1]"),
    "texts": _of(b'"prompt": [', '"é",'.encode(), b'"x"]'),
    "prompts": _of(b'"prompt": [', b"[1],", b"[1]]"),
    "deep": _of(b'"user": ', b"[", b"]"),
    "stops": _of(b'"prompt": "x", "stop": [', b'"stop here",', b'"x"]'),
    "biases": _of(b'"prompt": "x", "logit_bias": [', b"[1,2],", b"[1,2]]"),
    "messages": _of(b'"messages": [', b'{"role":"user","content":"x"},', b'{"role":"user","content":"x"}]',
                    "/v1/chat/completions"),
    "schema": _of(b'"prompt": "x", "json_schema": {"enum": [', b"1,", b"1]}"),
    "grammar": _of(b'"prompt": "x", "grammar": "', b" \\n", b'"'),
    "path": _of(b'"prompt": "x", "suffix": "y", "path": "', b"a/", b'a.py"'),
    "document": _of(b'"language": "python", "prompt": "', b"x = 1\\n", b'"'),
    "middle": _of(b'"input_suffix": "x", "n_predict": 2, "input_prefix": "', b"x = 1\\n", b'"', "/infill"),
    "pieces": _of(b'"with_pieces": true, "content": "', b"x y", b'"', "/tokenize"),
    "chunks": _chunks,
    "crumbs": _crumbs,
    "slow": _slow,
    "heads": _heads,
    "connections": _connections,
}  # fmt: skip


def measured(kind: str, bodies: int, mib: int) -> Report:
    """What a flood does to a server."""
    flood, report = KINDS[kind](bodies, mib << 20), Report(kind)
    if kind == "pieces":
        flood = KINDS[kind](bodies, min(mib << 20, 250_000))
    with ChildServer(limits=LIMITS) as server:
        asyncio.run(pour(server, Flood([[written({"prompt": "x", "max_tokens": 2})]]), Report("")))
        with Watch(server, report):
            asyncio.run(pour(server, flood, report))
        report.failures += [f"the log: {each}" for each in server.complaints()]
        if server.status is not None:
            report.failures.append(f"the server ended with status {server.status}")
    report.check()
    return report


def main() -> int:
    """Run; 1 where something failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.http.flood", description=__doc__)
    parser.add_argument("kinds", nargs="*", default=[*KINDS], metavar="KIND")
    parser.add_argument("--bodies", type=int, default=40)
    parser.add_argument("--mib", type=int, default=8, help="size of a body")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    failed = False
    for kind in options.kinds:
        report = measured(kind, options.bodies, options.mib)
        print(json.dumps(vars(report)) if options.json else report.text(), flush=True)
        failed = failed or bool(report.failures)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
