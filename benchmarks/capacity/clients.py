"""Developers who press the keys of ``benchmarks.capacity.sessions.draw`` in real time, before a real ``llama-server``.

They send what codespec sends to a streaming engine: ``/completion`` with token ids, ``stream`` and ``cache_prompt``,
over one connection from the request to the last token, which is closed when the next key comes.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from benchmarks.capacity.sessions import Keys, Work
from benchmarks.capacity.simulation import WARM_UP
from benchmarks.capacity.waits import Waits
from codespec.errors import CodespecError

TYPED = 200
"""Tokens that a document grows by at most; behind that only its last one changes."""
LONGEST_ANSWER = 96
_HEAD = "POST /completion HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"


def body(prompt: Sequence[int], tokens: int) -> dict[str, Any]:
    """A request for exactly so many tokens behind a prompt."""
    return {
        "prompt": list(prompt),
        "n_predict": tokens,
        "stream": True,
        "cache_prompt": True,
        "temperature": 0.0,
        "ignore_eos": True,
        "return_tokens": True,
    }


async def ask(port: int, request: dict[str, Any]) -> dict[str, Any]:
    """Send a request and wait for its last token; to cancel this closes the connection.

    Returns:
        the last message.

    Raises:
        CodespecError: the server refused, or ended the stream early.
    """
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        data = json.dumps(request).encode()
        writer.write((_HEAD % len(data)).encode() + data)
        async for line in reader:
            if not line.startswith(b"data: "):
                if line.startswith(b"HTTP/") and b" 200 " not in line:
                    raise CodespecError(f"llama-server refused a request: {line.decode().strip()}")
                continue
            if b'"stop":true' in line:
                message: dict[str, Any] = json.loads(line[6:])
                return message
        raise CodespecError("llama-server ended a stream before its last token")
    finally:
        writer.close()


@dataclass
class Measured:
    """What happened, see ``Outcome``.

    Attributes:
        ms, answered: as ``Waits.of`` takes them.
        late_ms: how much later than planned requests were sent, at most: the clients' own delay.
    """

    ms: list[float] = field(default_factory=list)
    answered: list[bool] = field(default_factory=list)
    late_ms: float = 0.0

    @property
    def waits(self) -> Waits:
        """The waits."""
        return Waits.of(self.ms, self.answered)


async def type_keys(port: int, keys: Keys, seconds: float, work: Work, ids: Sequence[int]) -> Measured:
    """Let all developers type for ``seconds``.

    Args:
        ids: tokens of real text, to make prompts of; no two documents begin at the same one.

    Raises:
        CodespecError: the server failed.
    """
    measured = Measured()
    began = perf_counter() + 0.1
    people = int(keys.who.max()) + 1 if len(keys.who) else 0
    await asyncio.gather(
        *(_Developer(port, keys, who, seconds, work, ids, began, measured).run() for who in range(people))
    )
    return measured


class _Developer:
    def __init__(
        self,
        port: int,
        keys: Keys,
        who: int,
        seconds: float,
        work: Work,
        ids: Sequence[int],
        began: float,
        measured: Measured,
    ) -> None:
        own = keys.who == who
        columns = (column[own].tolist() for column in (keys.at, keys.until, keys.opens, keys.answer))
        self._keys = list(zip(*columns, strict=True))
        self._port, self._who, self._seconds, self._work = port, who, seconds, work
        self._ids, self._began, self._measured = ids, began, measured
        self._document, self._typed = 0, 0

    def prompt(self) -> list[int]:
        """The document, with one token more for every key, and another last one where it is long enough."""
        start = (self._who * 7919 + self._document * 104_729) % (len(self._ids) - self._work.prompt - TYPED)
        end = start + self._work.prompt + min(self._typed, TYPED)
        last = [self._ids[(end + self._typed) % len(self._ids)]] if self._typed > TYPED else []
        return [*self._ids[start:end], *last]

    async def run(self) -> None:
        """Type; what is asked at the end is waited for."""
        pending: asyncio.Task[None] | None = None
        await self._read()
        for at, until, opens, answer in self._keys:
            await self._sleep_until(at)
            if pending is not None:
                await _drop(pending)
            self._document += opens
            self._typed = 0 if opens else self._typed + 1
            pending = asyncio.create_task(self._complete(at, until, min(answer, LONGEST_ANSWER)))
        if pending is not None:
            await pending

    async def _read(self) -> None:
        """Bring the prompt into the server's cache, as if the day had begun before."""
        await ask(self._port, body(self.prompt(), 1))

    async def _complete(self, at: float, until: float, tokens: int) -> None:
        due = at + self._work.debounce_ms / 1e3
        if due >= until:
            return
        await self._sleep_until(due)
        asked = perf_counter() - self._began
        counts = due >= WARM_UP * self._seconds
        self._measured.late_ms = max(self._measured.late_ms, (asked - due) * 1e3)
        try:
            await ask(self._port, body(self.prompt(), tokens))
        except asyncio.CancelledError:
            self._note(counts, (until - asked) * 1e3, False)
            raise
        self._note(counts, (perf_counter() - self._began - asked) * 1e3, True)

    def _note(self, counts: bool, ms: float, answered: bool) -> None:
        if counts:
            self._measured.ms.append(max(ms, 0.0))
            self._measured.answered.append(answered)

    async def _sleep_until(self, at: float) -> None:
        await asyncio.sleep(max(0.0, self._began + at - perf_counter()))


async def _drop(task: asyncio.Task[None]) -> None:
    """End a task; what it failed of is raised."""
    if not task.done():
        task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
