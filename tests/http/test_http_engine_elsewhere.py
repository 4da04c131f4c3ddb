"""A server whose model is on an engine elsewhere: what is sent there, and who answers while it is away."""

import json
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from codespec import Config
from codespec.config_sections import RemoteConfig
from codespec.daemon.own_models import OwnModels
from codespec.models.registry import EMBEDDED_TARGET
from tests.http.http_servers import serving
from tests.remote.real_llama_server import needs_server, running
from tests.remote.scoring_stand_ins import StandIn

PROMPT = "def area(width, height):\n    return"
PASSWORD = "dedehulfel77"
HELD = f"user = 1\nPASSWORD = '{PASSWORD}'\nx = "
PUBLIC = {"input_prefix": "user = 1\nx = ", "input_suffix": "\n"}
PRIVATE: dict[str, tuple[str, dict[str, Any]]] = {
    "a document": ("/infill", {"input_prefix": HELD, "input_suffix": "\n", "path": "a.py"}),
    "one that must fit": ("/infill", {"input_prefix": HELD, "input_suffix": "\n", "language": "python"}),
    "a file of that name": ("/infill", {**PUBLIC, "input_prefix": f"A={PASSWORD}\nB=", "path": "settings/.env"}),
    "another document": ("/infill", {**PUBLIC, "input_extra": [{"filename": "b.py", "text": HELD}]}),
    "a prompt": ("/v1/completions", {"model": "codespec", "prompt": HELD}),
}


@contextmanager
def served(fallback, own=None):
    """A client, and the engine that stands for vLLM; ``own`` as of ``serving``."""
    elsewhere = StandIn("vllm", EMBEDDED_TARGET, length=2048)
    remote = RemoteConfig(kind="vllm", url=elsewhere.url, vocabulary=str(EMBEDDED_TARGET), fallback=fallback)
    try:
        with (
            serving(config=Config(remote=remote, time_budget_ms=0), own=own) as server,
            httpx.Client(base_url=server.url, timeout=60) as client,
        ):
            yield client, elsewhere
    finally:
        elsewhere.close()


@pytest.fixture(scope="module")
def local():
    with served("local") as both:
        yield both


def sent_since(elsewhere, before):
    """The texts that the engine elsewhere was asked about."""
    prompts = [body["prompt"] for path, body in elsewhere.asked[before:] if path == "/v1/completions"]
    prompts = [each if isinstance(each[0], list) else [each] for each in prompts]
    token_bytes = elsewhere.vocabulary.token_bytes
    return ["".join(token_bytes(token).decode("utf-8", "replace") for token in one) for each in prompts for one in each]


@pytest.mark.parametrize("what", PRIVATE)
def test_a_private_text_is_completed_here(local, what):
    client, elsewhere = local
    path, fields = PRIVATE[what]
    before = len(elsewhere.asked)
    assert client.post(path, json={**fields, "max_tokens": 4, "n_predict": 4}).status_code == 200
    assert sent_since(elsewhere, before) == []


WAYS = {
    "token ids": lambda ids: ("/v1/completions", {"model": "codespec", "prompt": ids(HELD)}),
    "a text between token ids": lambda ids: ("/completion", {"prompt": [*ids("user = 1\n"), HELD, *ids("\ny = ")]}),
    "a text that token ids begin": lambda ids: (
        "/completion",
        {"prompt": [*ids("PASSWORD = '"), f"{PASSWORD}'\nx = "]},
    ),
    "what is being typed": lambda ids: ("/completion", {"prompt": ids(HELD[: HELD.index("'\n")])}),
    "an open call": lambda ids: ("/completion", {"prompt": f'Key key = Keys.hmacShaKeyFor("{KEY}'}),
    "a message": lambda ids: ("/v1/chat/completions", {"messages": [{"role": "user", "content": HELD}]}),
}
KEY = "Xq7Rk2vW9pL4zT8bM3nC6sD1"


@pytest.mark.parametrize("what", WAYS)
def test_nothing_private_leaves_in_another_way(local, what):
    client, elsewhere = local

    def ids(text):
        return client.post("/tokenize", json={"content": text}).json()["tokens"]

    path, fields = WAYS[what](ids)
    before = len(elsewhere.asked)
    client.post(path, json={**fields, "max_tokens": 4, "n_predict": 4})  # the embedded model takes no messages
    sent = json.dumps(elsewhere.asked[before:]) + "".join(sent_since(elsewhere, before))
    assert PASSWORD not in sent
    assert KEY not in sent
    assert "PASSWORD" not in sent


def test_other_texts_are_sent(local):
    client, elsewhere = local
    before = len(elsewhere.asked)
    assert client.post("/infill", json={**PUBLIC, "path": "public.py", "n_predict": 4}).status_code == 200
    assert any(PUBLIC["input_prefix"] in each for each in sent_since(elsewhere, before))


def test_without_a_model_here_a_private_text_is_refused():
    with served("none") as (client, elsewhere):
        before = len(elsewhere.asked)
        answer = client.post("/infill", json={"input_prefix": HELD, "input_suffix": "\n", "path": "a.py"})
        assert answer.status_code == 502
        assert "remote.fallback" in answer.text
        assert PASSWORD not in answer.text
        assert sent_since(elsewhere, before) == []


def test_while_it_is_away_the_model_here_answers():
    with served("local") as (client, elsewhere):
        body = {"model": "codespec", "prompt": PROMPT, "max_tokens": 8, "temperature": 0}
        expected = client.post("/v1/completions", json=body).json()["choices"]
        elsewhere.away = True
        for _ in range(2):
            answer = client.post("/v1/completions", json=body)
            assert answer.status_code == 200
            assert answer.json()["choices"] == expected
        with client.stream("POST", "/v1/completions", json={**body, "stream": True}) as answer:
            events = [json.loads(line[6:]) for line in answer.iter_lines() if line.startswith("data: {")]
        assert "".join(each["choices"][0]["text"] for each in events) == expected[0]["text"]
        assert client.post("/tokenize", json={"content": PROMPT}).status_code == 200


def text_with(client, body, stop):
    """A text, at the beginning of which something stops it."""
    with client.stream("POST", "/v1/completions", json={**body, "stream": True}) as answer:
        lines = answer.iter_lines()
        found = [next(lines) for _ in range(16)]
        stop()
        found += lines
    events = [json.loads(line[6:]) for line in found if line.startswith("data: {")]
    return "".join(each["choices"][0]["text"] for each in events)


def test_a_text_that_was_begun_here_goes_on_here():
    own = OwnModels()
    with served("local", own) as (client, elsewhere):
        body = {"model": "codespec", "prompt": PROMPT, "max_tokens": 300, "temperature": 0}
        elsewhere.away = True
        expected = client.post("/v1/completions", json=body).json()["choices"][0]["text"]

        def stop():
            own.get()[0].submit("editor", lambda models, cancel: None).future.result(60)
            elsewhere.away = False

        assert text_with(client, body, stop) == expected


@needs_server
def test_an_engine_elsewhere_is_not_told_a_grammar_anew_in_the_middle_of_a_text():
    own, grammar = OwnModels(), 'root ::= "[" [a-z0-9, ]*'
    with running() as elsewhere:
        remote = RemoteConfig(kind="llama-server", url=elsewhere.url, vocabulary=str(EMBEDDED_TARGET), fallback="none")
        config = Config(remote=remote, time_budget_ms=0)
        with serving(config=config, own=own) as server, httpx.Client(base_url=server.url, timeout=60) as client:
            body = {"model": "codespec", "prompt": "names = ", "max_tokens": 120, "temperature": 0, "grammar": grammar}
            expected = client.post("/v1/completions", json=body).json()["choices"][0]["text"]

            def stop():
                own.get()[0].submit("editor", lambda models, cancel: None).future.result(60)

            assert len(expected) > 50
            assert text_with(client, body, stop) == expected


def test_a_text_that_was_begun_elsewhere_is_not_gone_on_with_here():
    with served("local") as (client, elsewhere):
        body = {"model": "codespec", "prompt": PROMPT, "max_tokens": 400, "temperature": 0, "stream": True}
        with client.stream("POST", "/v1/completions", json=body) as answer:
            lines = answer.iter_lines()
            next(lines)
            elsewhere.away = True
            last = [line for line in lines if line.startswith("data: {")][-1]
        assert json.loads(last[6:])["error"]["code"] == "unloaded"
