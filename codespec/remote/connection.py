"""A connection to an engine elsewhere: requests that can be stopped from another thread, and errors with a remedy."""

from __future__ import annotations

import asyncio
import json
import logging
import queue
import random
import ssl
import threading
import time
import weakref
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import contextmanager
from typing import Any, TypeVar

import httpx

from codespec.privacy.leaving import Checked, Leaving, PrivateText
from codespec.protocols import Aborted, Cancel
from codespec.remote.address import Address
from codespec.remote.errors import Away, Private, Refused, Unreachable
from codespec.remote.scope import Scope
from codespec.terminal import printable

CONNECT_S = 3.0
"""Seconds until a connection must stand."""
SILENCE_S = 10.0
"""Seconds that the engine may be silent within a request: a long prompt takes its time."""
LONGEST_WAIT_S = 2.0
"""Seconds that an engine may ask to be left alone (429) for the request to wait and be sent again."""
PROBE_S = 1.0
"""Seconds between two looks whether an engine that did not answer is back."""
LARGEST_ANSWER = 64 << 20
"""Bytes."""
LARGEST_REFUSAL = 1 << 16
"""Bytes of an answer that is a refusal."""
LONGEST_LINE = 8 << 20
"""Bytes of one line of a stream."""

_POLL_S = 0.01
_LONGEST_MESSAGE = 200

T = TypeVar("T")

for _name in ("httpx", "httpcore", "hpack", "h2"):  # which log headers, and so the key
    logging.getLogger(_name).setLevel(logging.WARNING)


class Connection:
    """Requests to one engine, over connections that stay open. One request at a time, from one thread at a time.

    An engine that was too slow is not asked again until it has answered a look in the background: until then every
    request fails at once.

    Args:
        address: of the engine.
        silence_s: seconds without a byte after which a request is given up.
        probe: the path that is asked for to see whether it is back.

    Raises:
        Refused: the file of certificates cannot be used.

    Attributes:
        trips: requests that were sent.
        leaving: reads what is to be sent; whoever sends token ids tells it what they are.
    """

    def __init__(self, address: Address, silence_s: float = SILENCE_S, probe: str = "/health") -> None:
        self.address = address
        self.leaving = Leaving()
        self.trips = 0
        self._probe = probe
        headers = {"Authorization": f"Bearer {address.key}"} if address.key else {}
        try:
            verify = ssl.create_default_context(cafile=address.certificate or None)
        except (OSError, ssl.SSLError) as error:
            raise Refused(f"`remote.certificate` = {address.certificate}: no certificates ({error})") from error
        self._client = httpx.AsyncClient(
            base_url=address.url,
            headers=headers,
            verify=verify,
            http2=_has_http2(),
            timeout=httpx.Timeout(silence_s, connect=CONNECT_S),
            limits=httpx.Limits(max_connections=4, keepalive_expiry=60.0),
        )
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="remote engine", daemon=True)
        self._thread.start()
        self._scopes: weakref.WeakSet[Scope] = weakref.WeakSet()  # of requests that run
        self._away = ""  # why nothing is sent
        self._wait_until = 0.0
        self._closed = False

    @property
    def away(self) -> str:
        """Why requests fail at once; empty where they are sent. From any thread."""
        return self._away

    def look(self) -> None:
        """Whether anything answers there, whatever it says.

        Raises:
            Away: nothing does.
            Refused: the connection cannot be trusted.
        """
        self._wait(self._seen(), None)

    def get(self, path: str) -> Any:
        """The JSON at a path; the text where it is none.

        Raises:
            Away, Refused: there is no answer, or a refusal.
        """
        return self._wait(self._ask("GET", path, None), None)

    def ask(self, path: str, body: Mapping[str, Any], cancel: Cancel | None = None) -> Any:
        """The JSON that answers a POST. It is sent once more where the engine was busy or the connection broke.

        Raises:
            Aborted: ``cancel`` was set; the engine sees the connection close.
            Away, Refused: there is no answer, or a refusal.
            Private: the body must not leave this machine.
        """
        _stop_if_set(cancel)
        return self._wait(self._ask("POST", path, self._checked(body)), cancel)

    @contextmanager
    def stream(self, path: str, body: Mapping[str, Any], cancel: Cancel | None = None) -> Iterator[Iterator[bytes]]:
        """The lines, without their ends, that answer a POST, as they come. To leave the block closes the connection,
        by which the engine knows that no more is wanted.

        Raises:
            Aborted: ``cancel`` was set.
            Away, Refused: there is no answer, a refusal, or the stream broke off.
            Private: the body must not leave this machine.
        """
        _stop_if_set(cancel)
        checked = self._checked(body)
        lines: queue.Queue[bytes | BaseException | None] = queue.Queue()
        scope = Scope(self._loop)
        self._scopes.add(scope)
        task = asyncio.run_coroutine_threadsafe(scope.run(self._pump(path, checked, lines)), self._loop)

        def each() -> Iterator[bytes]:
            while True:
                try:
                    found = lines.get(timeout=_POLL_S)
                except queue.Empty:
                    if cancel is not None and cancel.is_set():
                        raise Aborted from None
                    if task.done() and lines.empty():
                        raise Away(
                            f"{self.address.host}: the answer broke off; the engine's own log may say why"
                        ) from None
                    continue
                if found is None:
                    return
                if isinstance(found, BaseException):
                    raise found
                yield found

        try:
            yield each()
        finally:
            if not task.done() and not self._closed:
                scope.stop()

    def close(self) -> None:
        """End everything; a second call does nothing."""
        if self._closed:
            return
        self._closed = True
        asyncio.run_coroutine_threadsafe(self._end(), self._loop)
        self._thread.join(2.0)
        if not self._thread.is_alive():
            self._loop.close()

    async def _end(self) -> None:
        others = [each for each in asyncio.all_tasks() if each is not asyncio.current_task()]
        for scope in list(self._scopes):
            scope.stop()
        if others and self._scopes:
            await asyncio.wait(others, timeout=0.2)  # so that what they hold is closed
        for each in others:
            each.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._client.aclose()
        self._loop.stop()

    def _wait(self, work: Coroutine[Any, Any, T], cancel: Cancel | None) -> T:
        scope = Scope(self._loop)
        self._scopes.add(scope)
        future: Future[T] = asyncio.run_coroutine_threadsafe(scope.run(work), self._loop)
        while True:
            try:
                return future.result(_POLL_S if cancel is not None else None)
            except FutureTimeout:
                if cancel is not None and cancel.is_set():
                    scope.stop()
                    raise Aborted from None
            except CancelledError:
                raise Aborted from None

    def _checked(self, body: Mapping[str, Any]) -> Checked:
        try:
            return self.leaving.checked(body)
        except PrivateText:
            raise Private from None

    def _check(self) -> None:
        if self._away:
            raise Away(f"{self._away}; it is asked again as soon as it answers")
        left = self._wait_until - time.monotonic()
        if left > LONGEST_WAIT_S:
            raise Away(f"{self.address.host} is too busy: it wants to be left alone for {left:.0f} s more")

    async def _seen(self) -> None:
        try:
            await self._client.get(self._probe, timeout=CONNECT_S)
        except (httpx.HTTPError, httpx.InvalidURL, ssl.SSLError) as error:
            raise self._failure(error) from error

    async def _twice(self, attempt: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What an attempt gives; where it fails before anything was shown, and may do better, the next one gives."""
        for last in (False, True):
            self._check()
            await asyncio.sleep(max(0.0, self._wait_until - time.monotonic()))
            self.trips += 1
            try:
                return await attempt()
            except Away:
                if last or self._away:
                    raise
            except (httpx.HTTPError, httpx.InvalidURL, ssl.SSLError) as error:
                failure = self._failure(error)
                if last or self._away or isinstance(failure, (Refused, Unreachable)):
                    raise failure from error
            # With others that failed at the same time it must not come in step.
            await asyncio.sleep(random.uniform(0.02, 0.1))
        raise AssertionError("unreachable")

    async def _ask(self, method: str, path: str, body: Checked | None) -> Any:
        async def attempt() -> Any:
            response = await self._open(method, path, body)
            try:
                data = await self._read(response, LARGEST_ANSWER)
            finally:
                await response.aclose()
            try:
                return json.loads(data)
            except ValueError:
                if method == "GET":
                    return data.decode("utf-8", "replace")
                raise Away(f"{self.address.host} answered {path} with something that is no JSON") from None

        return await self._twice(attempt)

    async def _open(self, method: str, path: str, body: Checked | None) -> httpx.Response:
        """The response to a request that was not refused, its body still to come."""
        headers = {"Content-Type": "application/json"} if body is not None else None
        content = body.content if body is not None else None
        request = self._client.build_request(method, path, content=content, headers=headers)
        response = await self._client.send(request, stream=True)
        if response.status_code == 200:
            return response
        try:
            data = await self._read(response, LARGEST_REFUSAL)
        finally:
            await response.aclose()
        raise self._refusal(response, path, data)

    async def _read(self, response: httpx.Response, most: int) -> bytes:
        data = bytearray()
        async for piece in response.aiter_bytes():
            data += piece
            if len(data) > most:
                raise Away(f"{self.address.host} answered with more than {most >> 20} MiB")
        return bytes(data)

    async def _pump(self, path: str, body: Checked, lines: queue.Queue[bytes | BaseException | None]) -> None:
        try:
            response = await self._twice(lambda: self._open("POST", path, body))
            try:
                rest = b""
                async for piece in response.aiter_bytes():
                    *whole, rest = (rest + piece).split(b"\n")
                    for line in whole:
                        lines.put(line.removesuffix(b"\r"))
                    if len(rest) > LONGEST_LINE:
                        raise Away(f"{self.address.host} sent a line of more than {LONGEST_LINE >> 20} MiB")
                if rest:
                    lines.put(rest)
            finally:
                await response.aclose()
            lines.put(None)
        except (Away, Refused) as error:
            lines.put(error)
        except (httpx.HTTPError, httpx.InvalidURL, ssl.SSLError) as error:
            lines.put(self._failure(error))
        except asyncio.CancelledError:
            lines.put(Aborted())
            raise

    def _failure(self, error: Exception) -> Away | Refused:
        """Why there was no answer."""
        host = self.address.host
        text = str(error)
        if "CERTIFICATE_VERIFY_FAILED" in text:
            return Refused(
                f"{host}: its certificate cannot be verified; name the file of the authority that signed it as "
                "`remote.certificate`"
            )
        if isinstance(error, httpx.TimeoutException):
            self._lose(f"{host} does not answer")
            return Away(f"{host} did not answer in time; is it overloaded, or a firewall in between?")
        if isinstance(error, httpx.ConnectError):
            return Unreachable(f"{self.address.url} cannot be reached ({printable(text)[:80]}); is the engine running?")
        return Away(f"{host}: the connection broke ({type(error).__name__})")

    def _refusal(self, response: httpx.Response, path: str, data: bytes) -> Away | Refused:
        host, status = self.address.host, response.status_code
        said = _message(data)
        more = f": {said}" if said else ""
        if status in (401, 403):
            what = "refuses the key" if self.address.key else "wants a key"
            return Refused(f"{host} {what} ({status}){more}; see `remote.key_env` in docs/remote.md")
        if status == 404:
            return Refused(
                f"{host} has no {path}, or not this model (404){more}; check `remote.kind` and `remote.model`"
            )
        if status == 413:
            return Refused(f"{host} takes no request of that size (413){more}; set a smaller `remote.context`")
        if status == 429:
            wait = _seconds(response.headers.get("Retry-After"))
            self._wait_until = time.monotonic() + wait
            return Away(f"{host} is too busy (429){more}")
        if status >= 500:
            return Away(f"{host} failed ({status}){more}")
        return Refused(f"{host} refused the request ({status}){more}")

    def _lose(self, why: str) -> None:
        """Send nothing until a look in the background has found the engine again."""
        if not self._away:
            self._away = why
            self._looking = self._loop.create_task(self._look())  # the loop alone would let it go

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(PROBE_S)
            try:
                await self._client.get(self._probe, timeout=CONNECT_S)
            except (httpx.HTTPError, ssl.SSLError):
                continue
            self._away = ""
            return


def _stop_if_set(cancel: Cancel | None) -> None:
    """Send nothing of which no answer is wanted any more."""
    if cancel is not None and cancel.is_set():
        raise Aborted


def _message(data: bytes) -> str:
    """What an engine says of an error: of the known fields alone, since others repeat the request."""
    try:
        found = json.loads(data)
    except ValueError:
        return ""
    for key in ("error", "message", "detail"):
        if isinstance(found, dict) and key in found:
            found = found[key]
    if isinstance(found, list) and found and isinstance(found[0], dict):  # FastAPI's
        place = ".".join(map(str, found[0].get("loc", ())[1:]))
        found = f"{place}: {found[0].get('msg', '')}"
    return printable(found)[:_LONGEST_MESSAGE] if isinstance(found, str) else ""


def _seconds(value: str | None) -> float:
    try:
        return min(600.0, max(0.1, float(value or 1)))
    except ValueError:  # a date
        return 1.0


def _has_http2() -> bool:
    try:
        import h2  # noqa: F401
    except ImportError:
        return False
    return True
