"""Statuses of a server with small bounds of its own: a queue that is full, time that is over, a model that loads."""

import asyncio
import json
import threading
from contextlib import contextmanager

import httpx
import pytest

from codespec.completion.load import load_engine
from codespec.errors import CodespecError
from codespec.http.limits import HttpLimits
from tests.http.http_servers import serving, until
from tests.http.raw_client import ask, written

PROMPT = "def add(a, b):\n"
ENDLESS = {"prompt": PROMPT, "max_tokens": 900, "n": 100, "temperature": 1, "grammar": 'root ::= [a-z ]* "éàü"'}
SHORT = {"prompt": PROMPT, "max_tokens": 2}


@pytest.fixture(scope="module")
def small():
    limits = HttpLimits(waiting=4, waiting_of_client=3, tokens=500, texts=100)
    with serving(limits=limits, exact=True) as server:  # one request at a time
        yield server


def error_of(answer):
    """What a refusal says, which has OpenAI's shape."""
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["message"]
    return error


@contextmanager
def busy(server, **fields):
    """While a request without an end runs, whose answer is read on leaving."""
    with httpx.stream("POST", server.url + "/v1/completions", json={**ENDLESS, **fields, "stream": True}) as response:
        parts = response.iter_bytes()
        next(parts)
        yield response, parts


def test_questions_do_not_wait_for_a_text(small):
    """They are answered between two of its passes, and it goes on."""
    with busy(small) as (_, parts):
        tokens = httpx.post(small.url + "/tokenize", json={"content": "a b"}, timeout=20).json()["tokens"]
        assert httpx.post(small.url + "/detokenize", json={"tokens": tokens}, timeout=20).json()["content"] == "a b"
        assert httpx.get(small.url + "/props", timeout=20).json()["total_slots"] == 1
        assert httpx.post(small.url + "/detokenize", json={"tokens": [-1]}, timeout=20).status_code == 400
        assert "codespec_requests_running 1.0" in httpx.get(small.url + "/metrics").text
        for _ in range(5):
            assert b'"error"' not in next(parts)


def test_many_questions_are_answered(small):
    async def ask(client, number):
        answer = await client.post("/tokenize", json={"content": f"{number} " * (number % 7 * 1000)})
        return len(answer.json()["tokens"])

    async def everything():
        async with httpx.AsyncClient(base_url=small.url, timeout=60) as client:
            with busy(small):
                during = await asyncio.gather(*(ask(client, number) for number in range(80)))
            return during, await asyncio.gather(*(ask(client, number) for number in range(80)))

    during, afterwards = asyncio.run(everything())
    assert during == afterwards


def waiting(server):
    text = httpx.get(server.url + "/metrics").text
    return int(float(text.split("\ncodespec_requests_waiting ")[1].split()[0]))


def test_a_full_queue(small):
    async def ask(client, queued):
        response = await client.post("/v1/completions", json=SHORT)
        queued.append(response.status_code)

    async def everything():
        async with httpx.AsyncClient(base_url=small.url, timeout=60) as client:
            queued = []
            with busy(small, session="editor") as (_, parts):
                pending = [asyncio.ensure_future(ask(client, queued)) for _ in range(3)]
                while await asyncio.to_thread(waiting, small) < 3:
                    await asyncio.sleep(0.02)
                fields = {**SHORT, "session": "editor"}  # what runs is not ended for what is refused
                refused = [await client.post("/v1/completions", json={**fields, "stream": on}) for on in (False, True)]
                rest = [next(parts) for _ in range(20)]
                health = await client.get("/health")
            await asyncio.gather(*pending)  # those in the queue are answered once there is room
            return refused, health, queued, rest

    refused, health, queued, rest = asyncio.run(everything())
    assert not any(b'"error"' in each for each in rest)
    for each in refused:
        assert each.status_code == 429
        assert int(each.headers["retry-after"]) >= 1
        assert (error_of(each)["type"], error_of(each)["code"]) == ("rate_limit_error", "queue_full")
    assert health.status_code == 200
    assert queued == [200, 200, 200]
    assert httpx.post(small.url + "/v1/completions", json=SHORT, timeout=60).status_code == 200


def test_a_body_that_does_not_come():
    with serving(limits=HttpLimits(body_s=0.1)) as server:
        answer = asyncio.run(ask(server.port, written(SHORT, headers={"Content-Length": "4000"})))
    assert answer.status == 408
    assert "0.1 s" in answer.json["error"]["message"]


def test_what_there_is_when_the_time_is_over():
    """Of a server and of a request: no error, but the text up to there."""
    with serving(limits=HttpLimits(seconds=3.0)) as server:
        choices = httpx.post(server.url + "/v1/completions", json={**ENDLESS, "n": 90}, timeout=60).json()["choices"]
        assert [each["finish_reason"] for each in choices] == ["length"] * 90  # the time is that of all its texts
        assert choices[0]["text"]
        assert not choices[-1]["text"]
        answer = httpx.post(
            server.url + "/completion", json={"prompt": PROMPT, "t_max_predict_ms": 1}, timeout=60
        ).json()
        assert answer["stop_type"] == "limit"


def test_a_newer_request_of_a_session(small):
    outcome = {}

    def older():
        with busy(small, session="editor 1") as (response, parts):
            outcome["status"] = response.status_code
            outcome["rest"] = b"".join(parts).decode()

    thread = threading.Thread(target=older)
    thread.start()
    until(lambda: "codespec_requests_running 1.0" in httpx.get(small.url + "/metrics").text)
    other = httpx.post(small.url + "/v1/completions", json={**SHORT, "session": "editor 1"}, timeout=60)
    thread.join(30)
    assert other.status_code == 200
    assert outcome["status"] == 200  # it had begun
    last = json.loads(outcome["rest"].strip().split("\n\n")[-1].removeprefix("data: "))
    assert (last["error"]["code"], last["error"]["param"]) == ("superseded", "session")


def test_a_newer_request_of_a_session_that_waits(small):
    async def three():
        async with httpx.AsyncClient(base_url=small.url, timeout=60) as client:
            with busy(small) as _:
                fields = {**SHORT, "session": "editor 2"}
                older = asyncio.ensure_future(client.post("/v1/completions", json=fields))
                while await asyncio.to_thread(waiting, small) < 1:
                    await asyncio.sleep(0.02)
                newer = asyncio.ensure_future(client.post("/v1/completions", json=fields))
                superseded = await older
            return superseded, await newer

    superseded, newer = asyncio.run(three())
    assert superseded.status_code == 409
    assert error_of(superseded)["code"] == "superseded"
    assert newer.status_code == 200


@pytest.mark.parametrize("path", ["/v1/completions", "/infill", "/tokenize"])
def test_while_the_model_is_loaded(path):
    loads = threading.Event()

    def load(config, progress):
        loads.wait(60)
        return load_engine(config)

    with serving(load=load, wait=False) as server:
        try:
            for answer in (httpx.post(server.url + path, json=SHORT), httpx.get(server.url + "/health")):
                assert answer.status_code == 503
                assert int(answer.headers["retry-after"]) >= 1
                assert error_of(answer) == {
                    "message": "Loading model", "type": "unavailable_error", "param": None, "code": "loading"
                }  # fmt: skip
            assert httpx.get(server.url + "/v1/models").status_code == 200
            assert httpx.get(server.url + "/metrics").status_code == 200
        finally:
            loads.set()
        until(lambda: httpx.get(server.url + "/health").status_code == 200)
        assert httpx.post(server.url + "/v1/completions", json=SHORT).status_code == 200


def test_where_the_model_cannot_be_loaded(tmp_path):
    def load(config, progress):
        raise CodespecError(f"{tmp_path}: no model")

    with serving(load=load) as server:
        for answer in (httpx.post(server.url + "/v1/completions", json=SHORT), httpx.get(server.url + "/health")):
            assert answer.status_code == 503
            assert error_of(answer)["code"] == "no_model"
            assert str(tmp_path) not in answer.text


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/chat/completions", "/v1/fim/completions"])
def test_another_model(small, path):
    answer = httpx.post(small.url + path, json={**SHORT, "model": "gpt-9"})
    assert answer.status_code == 404
    assert (error_of(answer)["param"], error_of(answer)["code"]) == ("model", "model_not_found")
    assert "gpt-9" not in answer.text
    assert httpx.get(small.url + "/v1/models/gpt-9").status_code == 404


def test_unprocessable_as_mistral_says_it(small):
    for fields, param in (({"top_k": 3}, "top_k"), ({"temperature": "hot"}, "temperature"), ({"stop": 3}, "stop")):
        answer = httpx.post(small.url + "/v1/fim/completions", json={**SHORT, **fields})
        assert answer.status_code == 422
        assert error_of(answer)["param"] == param
    answer = httpx.post(small.url + "/v1/fim/completions", content=b"{", headers={"Content-Type": "application/json"})
    assert (answer.status_code, error_of(answer)["code"]) == (422, "invalid_json")


def test_more_than_a_server_gives(small):
    answer = httpx.post(small.url + "/v1/completions", json={**SHORT, "n": 101})
    assert (answer.status_code, error_of(answer)["param"]) == (400, "prompt")
    fields = {**ENDLESS, "n": 1, "max_tokens": 100_000}
    assert (
        httpx.post(small.url + "/v1/completions", json=fields, timeout=60).json()["usage"]["completion_tokens"] == 500
    )
    bias = {**SHORT, "logit_bias": {"99999999": 1}}
    assert error_of(httpx.post(small.url + "/v1/completions", json=bias))["param"] == "logit_bias"


def test_methods_and_paths(small):
    for path in ("/v1/completions", "/infill", "/tokenize"):
        answer = httpx.get(small.url + path)
        assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
        error_of(answer)
    assert httpx.post(small.url + "/health", json={}).status_code == 405
    for path in ("/v1/embeddings", "/embedding", "/reranking", "/slots", "/lora-adapters", "/v1/responses"):
        assert error_of(httpx.post(small.url + path, json={}))["type"] == "not_found_error"
