"""A way to an engine that takes its time: a proxy that holds everything back for a while, in both directions."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit


@contextmanager
def delayed(url: str, round_trip_ms: float) -> Iterator[str]:
    """The address of a proxy on this machine, behind which the engine at ``url`` is so far away."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    loop = asyncio.new_event_loop()
    proxy = _Proxy(parts.hostname, parts.port, round_trip_ms / 2e3)
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        server = asyncio.run_coroutine_threadsafe(proxy.serve(), loop).result(5)
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        asyncio.run_coroutine_threadsafe(proxy.close(), loop).result(5)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(5)
        loop.close()


class _Proxy:
    def __init__(self, host: str, port: int, one_way_s: float) -> None:
        self._host, self._port, self._one_way_s = host, port, one_way_s
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self) -> asyncio.Server:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        return self._server

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = await asyncio.open_connection(self._host, self._port)
        for source, sink in ((reader, there[1]), (there[0], writer)):
            task = asyncio.create_task(self._pass_on(source, sink))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pass_on(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        """Each piece as long after it came as the way takes, whatever else is on the way."""
        loop = asyncio.get_running_loop()
        way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

        async def read() -> None:
            with contextlib.suppress(OSError):
                while data := await source.read(1 << 16):
                    way.put_nowait((loop.time() + self._one_way_s, data))
            way.put_nowait((loop.time() + self._one_way_s, b""))

        reading = asyncio.create_task(read())
        try:
            while True:
                due, data = await way.get()
                await asyncio.sleep(max(0.0, due - loop.time()))
                if not data:
                    break
                sink.write(data)
                await sink.drain()
        except OSError:
            pass
        finally:
            reading.cancel()
            sink.close()
