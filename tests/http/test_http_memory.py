"""What all bodies hold together is bounded, and what grows with one keeps nobody waiting."""

import asyncio
import json
import time
from contextlib import AsyncExitStack

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codespec.http.apis.common_fields import AFTER, BEFORE, part_after, part_before
from codespec.http.apis.json_shape import size_of
from codespec.http.aside import SMALL
from codespec.http.body import Memory, Share
from codespec.http.errors import HttpError
from codespec.http.limits import HttpLimits
from tests.http.http_servers import serving, until
from tests.http.raw_client import Reply, ask, closed, read_reply, written
from tests.present import present

MOST = 1 << 20
BODY = {"prompt": "def f(", "max_tokens": 2}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text('"\\[]{},:é😀a', max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('"\\[{,:a', max_size=3), inner, max_size=3),
    max_leaves=20,
)


@pytest.fixture(scope="module")
def small():
    with serving(limits=HttpLimits(bodies=MOST, body_s=30.0, connections=4)) as server:
        yield server


def levels(value):
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(levels, inner), default=0)


def values(value):
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(values, inner))


@settings(deadline=None)
@given(JSON, st.booleans())
def test_the_size_of_a_text_is_known_before_it_is_read(value, ascii):
    text = json.dumps(value, ensure_ascii=ascii).encode()
    size, depth = size_of(text)
    assert depth == levels(value)
    assert size >= len(text) + 64 * values(value) - 64


def test_the_size_of_a_long_text():
    """Over the steps in which it is looked at."""
    text = b'{"a": "' + b'[\\"' * 1_000_000 + b'", "b": [' + b"[[]]," * 100_000 + b"0]}"
    assert size_of(text)[1] == levels(json.loads(text)) == 4
    assert size_of(b"[" * 3_000_000)[1] == 3_000_000


def test_what_has_no_room_is_refused_before_it_is_read(small):
    """A body that was announced has its room; small ones are answered meanwhile."""

    async def main():
        reader, writer = await asyncio.open_connection("127.0.0.1", small.port)
        body = json.dumps({**BODY, "user": "x" * 600_000}).encode()
        head = written(b"", headers={"Content-Length": str(len(body))})
        writer.write(head)
        refused = await until_refused(head)
        assert refused.headers["retry-after"] == "1"
        assert "may take 0 MiB" in refused.json["error"]["message"]
        assert refused.json["error"]["code"] == "bodies_full"
        chunked = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        chunks = b"".join(b"%x\r\n%s\r\n" % (100_000, b" " * 100_000) for _ in range(7))
        assert (await ask(small.port, chunked + chunks + b"0\r\n\r\n")).status == 503
        assert (await ask(small.port, written(BODY))).status == 200
        writer.write(body)
        assert present(await asyncio.wait_for(read_reply(reader), 60)).status == 200
        await closed(writer)
        while (again := await ask(small.port, head + body)).status == 503:  # the room is given back a moment later
            await asyncio.sleep(0.05)
        assert again.status == 200

    async def until_refused(head):
        """Once the server has seen the other one."""
        while True:
            _, writer = streams = await asyncio.open_connection("127.0.0.1", small.port)
            writer.write(head)
            reply = asyncio.ensure_future(read_reply(streams[0]))
            done, _ = await asyncio.wait({reply}, timeout=5)
            await closed(writer)
            if done:
                return reply.result()
            reply.cancel()

    asyncio.run(main())


@pytest.mark.parametrize("unit", [b"[],", b"{},", b"1,", b'"",'])
def test_values_take_more_memory_than_their_text(small, unit):
    body = b'{"prompt": "x", "user": [' + unit * 50_000 + b"0]}"
    answer = httpx.post(small.url + "/v1/completions", content=body)
    assert answer.status_code == 413
    assert "1 bodies" not in answer.text
    assert "may take 0" in answer.json()["error"]["message"]
    assert httpx.post(small.url + "/v1/completions", json=BODY, timeout=60).status_code == 200


def test_of_bodies_that_arrive_together_some_are_taken():
    """Those that are refused give back at once what they have taken."""
    body = json.dumps({**BODY, "user": "x" * 180_000}).encode()
    chunks = [body[start : start + 20_000] for start in range(0, len(body), 20_000)]

    async def one(port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        reply = asyncio.ensure_future(read_reply(reader))
        for chunk in chunks:
            writer.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            await asyncio.sleep(0.05)
        writer.write(b"0\r\n\r\n")
        answer = present(await asyncio.wait_for(reply, 60))
        await closed(writer)
        return answer.status

    async def many(port):
        return await asyncio.gather(*(one(port) for _ in range(4)))

    with serving(limits=HttpLimits(bodies=600_000, body_s=30.0)) as server:
        statuses = asyncio.run(many(server.port))
        assert statuses.count(200) >= 2


def test_one_client_leaves_room_for_others():
    memory = Memory(4 << 20)
    greedy, other = Share(memory, "a"), Share(memory, "b")
    greedy.grow(3 << 20)
    with pytest.raises(HttpError, match="of your requests may take 3 MiB"):
        Share(memory, "a").grow(1 << 20)
    other.grow(1 << 20)
    with pytest.raises(HttpError, match="of all requests may take 4 MiB"):
        Share(memory, "c").grow(1 << 20)
    with pytest.raises(HttpError, match="take about 9 MiB"):
        other.grow(9 << 20)
    Share(memory, "c").grow(1 << 20)
    greedy.give_back()
    assert set(memory.taken) == {"c"}


def test_a_small_body_needs_no_room():
    with serving(limits=HttpLimits(bodies=0)) as server:
        assert httpx.post(server.url + "/v1/completions", json=BODY, timeout=60).status_code == 200
        assert httpx.post(server.url + "/v1/completions", json={**BODY, "user": "x" * SMALL}).status_code == 413


def test_one_connection_too_many(small):
    async def main():
        async with AsyncExitStack() as stack:

            async def connected():
                reader, writer = await asyncio.open_connection("127.0.0.1", small.port)
                stack.push_async_callback(closed, writer)
                return reader, writer

            many = [await connected() for _ in range(150)]  # beyond the spare ones, too
            told = written(BODY)
            for _, writer in many:
                writer.write(told)
            replies = await asyncio.gather(*(read_reply(reader) for reader, _ in many), return_exceptions=True)
            heard = [each for each in replies if isinstance(each, Reply)]
            refused = [each for each in heard if each.status != 200]  # those that were closed make room for others
            assert len(refused) > 90
            for reply in refused:
                assert reply.status == 503
                assert reply.headers["retry-after"] == "1"
                assert reply.json["error"]["message"].startswith("4 connections are open already")

    asyncio.run(main())
    until(lambda: httpx.get(small.url + "/health").status_code == 200)


def test_nobody_waits_while_large_bodies_are_read():
    limits = HttpLimits(seconds=2.0)
    with serving(limits=limits) as server, httpx.Client(base_url=server.url, timeout=60) as client:
        bodies = [
            b'{"max_tokens": 1, "prompt": [' + b"1," * 400_000 + b"1]}",
            b'{"max_tokens": 1, "prompt": "x", "logit_bias": [' + b"[1,1]," * 150_000 + b"[1,1]]}",
            b'{"max_tokens": 1, "prompt": "' + b"\\u00e9" * 1_200_000 + b'"}',
        ]

        async def main():
            posts = [ask(server.port, written(body)) for body in bodies * 4]
            waiting = asyncio.gather(*posts)
            longest, answered = 0.0, 0
            while not waiting.done():
                began = time.monotonic()
                assert (await ask(server.port, written(None, "/health", "GET"))).status == 200
                longest = max(longest, time.monotonic() - began)
                answered += not waiting.done()
                await asyncio.sleep(0.01)
            return longest, answered, await waiting

        longest, answered, replies = asyncio.run(main())
        assert {reply.status for reply in replies} <= {400, 503}
        assert longest < 5
        assert answered > 3
        assert client.post("/v1/completions", json=BODY).status_code == 200


@pytest.mark.parametrize(
    ("path", "fields", "param"),
    [
        ("/v1/completions", {"stop": ["x" * 1001]}, "stop"),
        ("/v1/completions", {"stop": ["x"] * 10_000}, "stop"),
        ("/v1/completions", {"path": "a/" * 3000}, "path"),
        ("/v1/completions", {"session": "s" * 5000}, "session"),
        ("/v1/completions", {"n": 10**6}, "n"),
        ("/v1/completions", {"echo": True, "n": 100, "prompt": "x" * 100_000}, "echo"),
        ("/v1/completions", {"logit_bias": {str(each): 1 for each in range(5000)}}, "logit_bias"),
        ("/completion", {"n_cmpl": 100, "prompt": "x" * 100_000}, "n_cmpl"),
        ("/infill", {"input_extra": [{"filename": "f" * 5000, "text": "x"}]}, "input_extra.0.filename"),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}] * 20_000}, "messages"),
    ],
)
def test_bounds_are_named(client, path, fields, param):
    answer = client.post(path, json={**BODY, **fields})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)


def test_fewer_tokens_where_many_are_told():
    with serving(limits=HttpLimits(told=60)) as server, httpx.Client(base_url=server.url, timeout=60) as client:
        fields = {"prompt": "x", "max_tokens": 50, "ignore_eos": True}
        for logprobs, n, count in [(None, 1, 50), (1, 1, 30), (4, 3, 4)]:
            answer = client.post("/v1/completions", json={**fields, "logprobs": logprobs, "n": n}).json()
            assert answer["usage"]["completion_tokens"] == n * count
            assert answer["choices"][0]["finish_reason"] == "length"


def test_of_a_large_document_the_part_around_the_place_is_looked_at(client):
    """Whether much or little stands farther away, the text is the same."""
    near, after = "def add(a, b):\n    return a + b\n\n" * 3000, "\n\nprint(add(1, 2))\n" * 5000
    texts = []
    for far in ("x = 1\n" * 1000, "y = 2\n" * 400_000):
        fields = {"prompt": far + near + "def sub(a, b):\n    return ", "suffix": after + far, "language": "python"}
        began = time.process_time()
        answer = client.post("/v1/completions", json={**fields, "max_tokens": 8, "echo": True})
        text = answer.json()["choices"][0]["text"]
        assert text.startswith(fields["prompt"])
        texts.append(text.removeprefix(fields["prompt"]))
    assert texts[0] == texts[1] != ""
    assert time.process_time() - began < 30


@pytest.mark.parametrize("size", [0, 1, 63_999, 128_000, 128_001, 500_000])
@pytest.mark.parametrize("line", ["x\n", "x" * 70_000 + "\n", "x"])
def test_the_part_of_a_document(size, line):
    text = (line * (size // len(line) + 1))[:size]
    before, after = part_before(text), part_after(text)
    assert text.endswith(before)
    assert text.startswith(after)
    assert min(size, BEFORE // 2) <= len(before) <= max(128_000, 2 * BEFORE)
    assert min(size, AFTER // 2) <= len(after) <= AFTER
