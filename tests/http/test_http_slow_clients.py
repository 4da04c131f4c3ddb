"""Clients that send or take slowly, or not at all: let go in time, and nobody else waits for them."""

import asyncio
import json
import socket
import time
from contextlib import suppress

import httpx
import pytest

from codespec.http.limits import HttpLimits
from tests.http.http_servers import serving, until
from tests.http.raw_client import closed, read_reply, written
from tests.present import present

LIMIT_S, SLACK_S = 1.0, 30.0
BODY = {"prompt": "def f(", "max_tokens": 2}
EVERY_S = 0.1


@pytest.fixture(scope="module")
def impatient():
    limits = HttpLimits(header_s=LIMIT_S, body_s=LIMIT_S, send_s=LIMIT_S, connections=100)
    with serving(limits=limits) as server:
        yield server


@pytest.fixture
def port(impatient):
    """Its port; whatever a test has done, the next request is answered at once."""
    yield impatient.port
    assert httpx.post(impatient.url + "/v1/completions", json=BODY, timeout=SLACK_S).status_code == 200


async def trickle(port, data, size=1):
    """Send a little at a time: the answer's status, None where there was none, and how much was sent until the end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    sent, reply = 0, asyncio.ensure_future(read_reply(reader))
    with suppress(ConnectionError):
        while sent < len(data):
            writer.write(data[sent : sent + size])
            sent += size
            await writer.drain()
            if reply.done() or reader.at_eof():
                break
            await asyncio.sleep(EVERY_S)
    try:
        answer = await asyncio.wait_for(reply, SLACK_S)
        rest = await asyncio.wait_for(reader.read(), LIMIT_S + SLACK_S)
        assert rest == b""
    except ConnectionError:
        answer = None
    await closed(writer)
    return (answer.status if answer is not None else None), sent


def test_a_head_byte_by_byte(port):
    status, sent = asyncio.run(trickle(port, written(BODY)))
    assert status is None
    assert sent < len(written(BODY))


def test_a_second_head_byte_by_byte(port):
    async def second():
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert present(await asyncio.wait_for(read_reply(reader), SLACK_S)).status == 200
        sent = 0
        with suppress(ConnectionError):
            for byte in written(BODY):
                writer.write(bytes([byte]))
                await writer.drain()
                if reader.at_eof():
                    break
                sent += 1
                await asyncio.sleep(EVERY_S)
            assert await reader.read() == b""
        await closed(writer)
        return sent

    assert asyncio.run(second()) < len(written(BODY))


def test_headers_without_end(port):
    data = b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + b"".join(b"X-%d: y\r\n" % each for each in range(1000))
    status, sent = asyncio.run(trickle(port, data, 10))
    assert status is None
    assert sent < len(data)


def test_nothing_at_all(port):
    async def silent():
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await asyncio.wait_for(reader.read(), LIMIT_S + SLACK_S) == b""
        await closed(writer)

    asyncio.run(silent())


@pytest.mark.parametrize("path", ["/v1/completions", "/tokenize"])
def test_a_body_byte_by_byte(port, path):
    head, _, body = written({"content": "x" * 300}, path).partition(b"\r\n\r\n")

    async def slowly():
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head + b"\r\n\r\n")
        reply = asyncio.ensure_future(read_reply(reader))
        for byte in body:
            if reply.done():
                break
            writer.write(bytes([byte]))
            await asyncio.sleep(EVERY_S)
        else:
            pytest.fail("it was read to its end")
        answer = present(await asyncio.wait_for(reply, SLACK_S))
        assert answer.headers["connection"] == "close"
        with suppress(ConnectionError):  # a byte that was under way when the server closed
            assert await asyncio.wait_for(reader.read(), SLACK_S) == b""
        await closed(writer)
        return answer.status

    assert asyncio.run(slowly()) == 408


def test_half_a_body(port):
    data = written(BODY, headers={"Content-Length": "4000"})
    assert asyncio.run(trickle(port, data, len(data)))[0] == 408


def test_half_a_chunk(port):
    head = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert asyncio.run(trickle(port, head + b"ff\r\n{", 10_000))[0] == 408


def not_reading(port, data):
    """A connection that sends, and takes next to nothing of what comes."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect(("127.0.0.1", port))
    connection.sendall(data)
    return connection


def is_cut(connection):
    """Whether the other side has let go."""
    try:
        connection.send(b"\r\n")
    except OSError:
        return True
    return False


def test_who_never_reads_a_stream(port, impatient):
    # More than the buffers of the system take: 128 times the prompt.
    fields = {**BODY, "prompt": "-" * 50_000, "echo": True, "n": 128, "max_tokens": 1, "stream": True}
    connection = not_reading(port, written(fields))
    until(lambda: is_cut(connection))
    until(lambda: "codespec_requests_running 0.0" in httpx.get(impatient.url + "/metrics").text, SLACK_S)
    connection.close()


def test_who_never_reads_answers(port):
    head = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
    connection = not_reading(port, head * 3000)
    until(lambda: is_cut(connection))
    connection.close()


def test_nobody_waits_for_a_crowd(port, impatient):
    """Sixty that have sent half a head or half a body, while one asks."""

    async def crowd():
        held = []
        for each in range(60):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            data = written({**BODY, "user": "x" * 100})
            writer.write(data[:40] if each % 2 else data[:-20])
            held.append((reader, writer))
        waits = []
        async with httpx.AsyncClient(base_url=impatient.url) as client:
            for _ in range(5):
                began = time.monotonic()
                assert (await client.post("/v1/completions", json=BODY)).status_code == 200
                waits.append(time.monotonic() - began)
        for reader, writer in held:
            with suppress(ConnectionError):
                await asyncio.wait_for(reader.read(), LIMIT_S + SLACK_S)
            await closed(writer)
        return max(waits)

    assert asyncio.run(crowd()) < 6


def test_beyond_the_connections_is_refused():
    with serving(limits=HttpLimits(connections=5)) as server:
        held = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(8)]
        until(lambda: httpx.get(server.url + "/v1/models", timeout=SLACK_S).status_code == 503)
        for each in held:
            each.close()
        until(lambda: httpx.get(server.url + "/v1/models").status_code == 200)
        assert json.loads(httpx.get(server.url + "/health").text) == {"status": "ok"}
