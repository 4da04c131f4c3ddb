"""``python -m tests.http.fuzz``: thousands of requests as nobody should send them; what does the server do?

    python -m tests.http.fuzz --count 10000 --seed 1

Fails where an answer is a 5xx, is no HTTP, has a status that is not sensible, or never comes; where the server ends,
writes an error or what users have written to its log; and where what is asked in between is answered otherwise than
at first.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.http.child_server import ChildServer
from tests.http.fuzz_cases import SECRET, SEEDS, Case, any_case
from tests.http.http_servers import with_chat_template
from tests.http.raw_client import BadAnswerError, Reply, ask, closed, read_reply, written

LIMITS = {
    "tokens": 8,
    "texts": 4,
    "seconds": 2.0,
    "header_s": 3.0,
    "body_s": 3.0,
    "send_s": 3.0,
    "waiting_of_client": 256,
}
ANSWER_WITHIN_S = 90.0
AT_A_TIME = 12
CONTROL_EVERY = 50
CONTROL = {"prompt": "def add(a, b):\n", "max_tokens": 6, "temperature": 0}


@dataclass
class Report:
    """What the server did.

    Attributes:
        statuses: by kind of request.
        failures: seed, kind and what was wrong.
    """

    statuses: dict[str, collections.Counter[str]] = field(
        default_factory=lambda: collections.defaultdict(collections.Counter)
    )
    failures: list[str] = field(default_factory=list)
    controls: int = 0
    seconds: float = 0.0

    @property
    def count(self) -> int:
        """Requests that were sent."""
        return sum(counts.total() for counts in self.statuses.values())

    def text(self) -> str:
        """The report to print."""
        lines = [f"{kind:10} {dict(counts.most_common())}" for kind, counts in sorted(self.statuses.items())]
        lines += self.failures[:40]
        lines.append(
            f"{self.count} requests in {self.seconds:.0f} s, {self.controls} in between, {len(self.failures)} failed"
        )
        return "\n".join(lines)


class Fuzz:
    """Sends the cases of some seeds to a server."""

    def __init__(self, server: ChildServer) -> None:
        self._server = server
        self.report = Report()
        self._paths: list[str] = []
        self._expected: object = None

    async def run(self, seeds: range) -> Report:
        """Send them all."""
        began = time.monotonic()
        for path in SEEDS:
            reply = await ask(self._server.port, written(SEEDS[path], path))
            self._paths += [path] if reply.status != 404 else []
            if reply.status not in (200, 404):
                self.report.failures.append(f"a valid request to {path}: {reply.status} {reply.body[:300]!r}")
        await self._control()
        waiting = iter(seeds)
        await asyncio.gather(*(self._some(waiting) for _ in range(AT_A_TIME)))
        await self._control()
        failures = self.report.failures
        if self._server.status is not None:
            failures.append(f"the server ended with status {self._server.status}")
        failures += [f"the log: {each}" for each in self._server.complaints()]
        if SECRET in self._server.log():
            failures.append("the log holds what users have written")
        self.report.seconds = time.monotonic() - began
        return self.report

    async def _some(self, seeds: object) -> None:
        for seed in seeds:  # type: ignore[attr-defined]
            if self._server.status is not None:
                return
            case = any_case(Random(seed), self._paths)
            try:
                heard = await self._send(case)
            except (BadAnswerError, AssertionError) as error:
                heard = "failed"
                self.report.failures.append(f"seed {seed}, {case.kind}: {error}")
            except (TimeoutError, asyncio.TimeoutError):
                heard = "silence"
                self.report.failures.append(f"seed {seed}, {case.kind}: neither an answer nor an end")
            self.report.statuses[case.kind][heard] += 1
            if seed % CONTROL_EVERY == 0:
                await self._control()

    async def _send(self, case: Case) -> str:
        """What came, in a word."""
        reader, writer = await asyncio.open_connection(self._server.host, self._server.port, limit=1 << 20)
        try:
            for part in case.data:
                writer.write(part)
                if len(case.data) > 1:
                    await asyncio.sleep(0.005)
            if case.leaves:
                await asyncio.wait_for(writer.drain(), ANSWER_WITHIN_S)
                return "left"
            return await self._hear(case, reader)
        except ConnectionError:
            if not case.may_close:
                raise BadAnswerError("reset without an answer") from None
            return "reset"
        finally:
            await closed(writer)

    async def _hear(self, case: Case, reader: asyncio.StreamReader) -> str:
        heard: list[str] = []
        while len(heard) < case.answers:
            reply = await asyncio.wait_for(read_reply(reader, case.method), ANSWER_WITHIN_S)
            if reply is None:
                break
            check(reply, case)
            heard.append(str(reply.status))
            if reply.headers.get("connection", "").lower() == "close":
                break
            if case.answers > 1 and case.kind != "pipelined":
                break  # there may be more, or not
        if not heard and not case.may_close:
            raise BadAnswerError("closed without an answer")
        return "+".join(heard) or "closed"

    async def _control(self) -> None:
        """The same question has the same answer, whatever came in between."""
        reply = await ask(self._server.port, written(CONTROL), seconds=ANSWER_WITHIN_S)
        self.report.controls += 1
        text = reply.json["choices"][0]["text"] if reply.status == 200 else reply.status
        self._expected = text if self._expected is None else self._expected
        if text != self._expected:
            self.report.failures.append(f"asked in between: {text!r} instead of {self._expected!r}")


def check(reply: Reply, case: Case) -> None:
    """An answer is sensible.

    Raises:
        AssertionError: why not.
    """
    told = f"{reply.status} {reply.body[:300]!r}"
    assert reply.status in case.allowed, f"status {told}"
    if reply.status >= 400 and case.method != "HEAD" and reply.headers.get("content-type") == "application/json":
        error = reply.json["error"]
        assert isinstance(error["message"], str), f"no message: {told}"
        assert error["message"], f"no message: {told}"
        assert "Traceback" not in error["message"], told


def main() -> int:
    """Run; 1 where something failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.http.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1, help="of the first request; each next one adds 1")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ChildServer(with_chat_template(Path(folder)), LIMITS) as server:
        report = asyncio.run(Fuzz(server).run(range(options.seed, options.seed + options.count)))
    print(report.text())
    return 1 if report.failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
