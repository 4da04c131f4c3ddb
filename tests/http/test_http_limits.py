"""What is too large, or says that it is something else: refused, and the connection is not left in between."""

import asyncio
import json
import time

import httpx
import pytest

from codespec.http.limits import HttpLimits
from tests.http.http_servers import serving
from tests.http.raw_client import BadAnswerError, ask, closed, read_reply, written
from tests.present import present

BODY = {"prompt": "def f(", "max_tokens": 2}
MOST = 1 << 20


@pytest.fixture(scope="module")
def small():
    with serving(limits=HttpLimits(body=MOST, body_s=1.0, header_s=2.0)) as server:
        yield server


@pytest.fixture
def port(small):
    yield small.port
    assert httpx.post(small.url + "/v1/completions", json=BODY).status_code == 200


def told(port, data, method="POST"):
    """The answer to some bytes."""
    return asyncio.run(ask(port, data, seconds=20, method=method))


def status(port, data):
    """Of the answer to some bytes; what is refused says why."""
    reply = told(port, data)
    if reply.status >= 400:
        assert reply.json["error"]["message"]
    return reply.status


def chunked(size, count, headers=""):
    head = f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n{headers}\r\n".encode()
    return head + (b"%x\r\n" % size + b" " * size + b"\r\n") * count + b"0\r\n\r\n"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (written(b" " * (MOST + 1)), 413),
        (written(b"{}", headers={"Content-Length": str(MOST + 1)}), 413),
        (written(b"{}", headers={"Content-Length": "9" * 19}), 413),
        (chunked(100_000, 11), 413),
        (chunked(100_000, 4), 400),  # no JSON
        (chunked(1, 2), 400),
        (chunked(1, 5000), 400),
        (written(b" " * MOST), 400),
        (written(BODY, headers={"X-Long": "y" * 40_000}), 431),
        (written(BODY, headers={f"X-{each}": "y" * 100 for each in range(400)}), 431),
        (b"GET /" + b"a" * 40_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 431),
        (written(BODY, headers={"Content-Length": "-1"}), 400),
        (written(BODY, headers={"Content-Length": "1e3"}), 400),
        (written(BODY, headers={"Content-Length": "+30"}), 400),
        (written(BODY, headers={"Content-Length": "30, 31"}), 400),
        (written(BODY, headers={"Content-Length": "30", "content-length": "31"}), 400),
        (written(BODY, headers={"Content-Length": "5"}), 400),  # half of its JSON
        (written(BODY, headers={"Content-Length": "5000"}), 408),
        (written(BODY, headers={"Transfer-Encoding": "gzip"}), 501),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 20, 400),  # TLS
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 404),
        (b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: \x00\r\n\r\n", 400),
    ],
)
def test_sizes(port, data, expected):
    assert status(port, data) == expected


def test_an_endless_body_is_not_read_to_its_end(port):
    async def endless():
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(chunked(0, 0)[: -len(b"0\r\n\r\n")])
        reply, sent = asyncio.ensure_future(read_reply(reader)), 0
        try:
            while sent < 64 * MOST:
                writer.write(b"%x\r\n" % MOST + b" " * MOST + b"\r\n")
                await asyncio.wait_for(writer.drain(), 10)
                sent += MOST
        except ConnectionError:
            pass
        try:
            answer = await asyncio.wait_for(reply, 10)
        except (ConnectionError, BadAnswerError):
            answer = None
        await closed(writer)
        return sent, answer

    sent, answer = asyncio.run(endless())
    assert answer is None or answer.status == 413
    assert sent < 64 * MOST or answer is not None


def test_a_length_that_lies_smuggles_nothing(port):
    """What follows a body that ends early is a request of its own, checked as any other."""
    inner = b"GET /v1/models HTTP/1.1\r\nHost: evil.example\r\n\r\n"
    body = json.dumps(BODY).encode()

    async def both():
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(written(body) + inner)
        replies = [present(await asyncio.wait_for(read_reply(reader), 20)) for _ in range(2)]
        await closed(writer)
        return [each.status for each in replies]

    assert asyncio.run(both()) == [200, 403]
    head = written(body, headers={"Content-Length": "4", "Transfer-Encoding": "chunked"})
    assert status(port, head.replace(body, b"0\r\n\r\n" + inner)) in (400, 408)


def test_a_prompt_that_is_far_too_long_keeps_nobody_waiting(client):
    for path, fields in {
        "/v1/completions": {"prompt": "a" * 7_000_000},
        "/completion": {"prompt": ["x\t" * 2_000_000, "0" * 1_000_000]},
        "/tokenize": {"content": "-" * 7_000_000},
    }.items():
        began = time.process_time()
        answer = client.post(path, json=fields)
        assert answer.status_code == 400
        assert answer.json()["error"]["param"] in ("prompt", "content")
        assert time.process_time() - began < 10


def test_a_long_prediction_keeps_nobody_waiting(client):
    fields = {**BODY, "prediction": {"type": "content", "content": "a" * 7_000_000}}
    began = time.process_time()
    assert client.post("/v1/completions", json=fields).status_code == 200
    assert time.process_time() - began < 10
