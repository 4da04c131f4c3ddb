"""Nothing that a client writes, reads or holds is in the server's log, whatever its level, or in its counts."""

import asyncio
import json

import httpx
import pytest

from tests.http.child_server import ChildServer
from tests.http.fuzz_cases import SEEDS
from tests.http.raw_client import ask, written

KEY, OTHER = "Zqx-right-key-0123456789", "Zqx-wrong-key-0123456789"
WORD = "ZqxSecret7"
"""As of the requests in ``SEEDS``."""
HELD = [KEY, OTHER, WORD, KEY[4:], OTHER[4:], "Zqx"]
STATUSES = {400, 401, 403, 404, 405, 413, 415, 422, 431, 200}


@pytest.fixture(scope="module")
def logging_server(chat_model):
    with ChildServer(chat_model, {"body": 1 << 20, "body_s": 1.0}, keys=[KEY], debug=True) as server:
        yield server


def requests():
    """Each path with a valid request and with what is refused, and words of the client's everywhere."""
    right = {"Authorization": f"Bearer {KEY}"}
    for path, fields in SEEDS.items():
        fields = {name: value for name, value in fields.items() if value is not None}
        yield written(fields, path, headers=right)
        if path.startswith("/v1/"):
            yield written({**fields, "stream": True}, path, headers=right)
        yield written(
            {**fields, "stop": {WORD: 1}, "messages": WORD, "content": 1, "tokens": WORD}, path, headers=right
        )
        yield written({**fields, WORD: WORD, "response_format": {"type": WORD}}, path, headers=right)
        yield written({**fields, "grammar": f'root ::= "{WORD}'}, path, headers=right)
        yield written({**fields, "grammar": f'root ::= "{WORD}"', "json_schema": None}, path, headers=right)
        yield written({**fields, "json_schema": {"type": WORD}}, path, headers=right)
        yield written({**fields, "model": WORD}, path, headers=right)
        yield written({**fields, "logit_bias": {"99999999": 1}}, path, headers=right)
        yield written(json.dumps(fields).encode()[:-9], path, headers=right)
        yield written(fields, path, headers={"X-Api-Key": OTHER})
        yield written(fields, path)
        yield written(fields, path, headers={**right, "Origin": f"http://{WORD}.example"})
        yield written(fields, path, headers={**right, "Content-Type": f"text/{WORD}"})
        yield written(WORD.encode() * 200_000, path, headers=right)
        yield written(None, path, "GET", headers=right)
        yield written(fields, f"{path}/{WORD}?{WORD}={KEY}", headers=right)
    for path in ("/v1/models", f"/v1/models/{WORD}", "/props", "/health", "/metrics", f"/{WORD}", "/slots"):
        yield written(None, path, "GET", headers=right)
        yield written(None, f"{path}?key={KEY}", "GET", headers={"Cookie": WORD})
    yield f"GET /{WORD} HTTP/9\r\n{WORD}\r\n\r\n".encode()
    yield f"{WORD} / HTTP/1.1\r\nHost: {WORD}\r\n{WORD}: \x00\r\n\r\n".encode()
    yield written(None, "/v1/models", headers={"X-Long": WORD * 5000, **right})


def test_nothing_of_a_client_is_logged(logging_server):
    async def all_of_them():
        return [await ask(logging_server.port, data, seconds=60) for data in requests()]

    statuses = {reply.status for reply in asyncio.run(all_of_them())}
    assert statuses >= STATUSES
    assert not {status for status in statuses if status >= 500}
    # One that goes away in the middle of its answer, too.
    fields = {"prompt": WORD, "max_tokens": 500, "stream": True, "grammar": f'root ::= ("{WORD}" [a-z])* "."'}
    headers = {"Authorization": f"Bearer {KEY}"}
    with httpx.stream("POST", f"{logging_server.url}/v1/completions", json=fields, headers=headers) as response:
        next(response.iter_bytes())
    metrics = httpx.get(f"{logging_server.url}/metrics", headers=headers).text
    log = logging_server.log()
    assert "DEBUG" in log  # it does log
    for secret in HELD:
        assert secret not in log, log[max(0, log.index(secret) - 300) : log.index(secret) + 300]
        assert secret not in metrics
    assert "Traceback" not in log
