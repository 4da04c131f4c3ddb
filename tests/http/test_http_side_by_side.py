"""Several clients at once: their texts are written side by side, and are those that each gets alone."""

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from codespec.engine.slots import FEW, SLOTS
from tests.http.http_servers import serving, until

PROMPTS = [f"import {name}\n\n\ndef {name}_of(path):\n    " for name in ("os", "json", "re", "math", "csv", "time")]
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 8}},
    "required": ["name"],
    "additionalProperties": False,
}
READ = 'codespec_prompt_tokens_total{kept="read"}'
DIGITS = 'root ::= [0-9]+ "."'


def ask(client, prompt, **fields):
    return client.post("/v1/completions", json={"prompt": prompt, "max_tokens": 40, "temperature": 0, **fields}).json()


def together(client, asked):
    """The answers to several requests that are there at once."""
    with ThreadPoolExecutor(len(asked)) as pool:
        return list(pool.map(lambda fields: ask(client, **fields), asked))


def stream(client, prompt, tokens, begun, **fields):
    """The times of the pieces of an answer, to its very end; ``begun`` is set at the first."""
    body = {"prompt": prompt, "max_tokens": tokens, "temperature": 0, "stream": True, "ignore_eos": True, **fields}
    ended = False
    times = []
    with client.stream("POST", "/v1/completions", json=body) as answer:
        assert answer.status_code == 200
        for line in answer.iter_lines():
            if line.startswith("data: {"):
                times.append(time.monotonic())
                begun.set()
            ended = ended or line == "data: [DONE]"
    assert ended
    return times


def counts(client):
    lines = client.get("/metrics").text.splitlines()
    return {name: float(value) for name, _, value in (line.partition(" ") for line in lines if line[0] != "#")}


def test_each_answer_is_the_one_it_is_alone(client):
    asked: list[dict[str, Any]] = [{"prompt": prompt} for prompt in PROMPTS]
    asked[1] |= {"temperature": 0.7, "seed": 5}
    asked[2] |= {"n": 2, "temperature": 0.7, "seed": 6, "max_tokens": 20}
    asked[3] |= {"stop": ["\n"], "echo": True}
    asked[4] |= {"prompt": [PROMPTS[4], PROMPTS[5]], "max_tokens": 20}
    alone = [ask(client, **each) for each in asked]
    same = 0
    for _ in range(3):
        for one, other in zip(alone, together(client, asked), strict=True):
            assert one["usage"]["prompt_tokens"] == other["usage"]["prompt_tokens"]
            assert len(one["choices"]) == len(other["choices"])
            assert [each["index"] for each in other["choices"]] == [each["index"] for each in one["choices"]]
            same += one["choices"] == other["choices"]
    assert same >= 15  # of 18: what is decoded together is rounded otherwise, and near ties may change places


def test_a_short_answer_does_not_wait_for_a_long_one(client):
    begun = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        long = pool.submit(stream, client, PROMPTS[0], 400, begun)
        assert begun.wait(30)
        short = stream(client, PROMPTS[1], 8, threading.Event())
        assert short[-1] < long.result()[-1]


def test_grammars_and_probabilities_hold_in_slots(client):
    asked = [
        {"prompt": "# a package\n", "json_schema": SCHEMA},
        {"prompt": "number = ", "grammar": DIGITS, "max_tokens": 12, "logprobs": 3},
        {"prompt": PROMPTS[0], "logprobs": 2, "max_tokens": 16},
        {"prompt": PROMPTS[1]},
    ]
    for answers in (together(client, asked) for _ in range(3)):
        assert "name" in json.loads(answers[0]["choices"][0]["text"])
        digits = answers[1]["choices"][0]
        assert digits["text"].rstrip(".").isdigit()
        for each in answers[1:3]:
            told = each["choices"][0]["logprobs"]
            assert "".join(told["tokens"]) == each["choices"][0]["text"]
            assert len(told["token_logprobs"]) == each["usage"]["completion_tokens"]


def test_a_request_that_cannot_be_followed_does_not_disturb_the_others(client):
    asked: list[dict[str, Any]] = [{"prompt": PROMPTS[0]}, {"prompt": [3, 10**7]}, {"prompt": PROMPTS[1]}]
    alone = [ask(client, **each) for each in asked]
    answers = together(client, asked)
    assert "beyond the vocabulary" in answers[1]["error"]["message"]
    for one, other in zip(alone[::2], answers[::2], strict=True):
        assert one["usage"]["completion_tokens"] == other["usage"]["completion_tokens"]


def test_a_client_that_leaves_gives_its_slot_up(client):
    begun = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        long = pool.submit(stream, client, PROMPTS[0], 300, begun)
        assert begun.wait(30)
        for prompt in PROMPTS[1:]:
            body = {"prompt": prompt, "max_tokens": 900, "stream": True, "ignore_eos": True}
            with client.stream("POST", "/v1/completions", json=body) as answer:
                next(answer.iter_lines())
        assert long.result()
    until(lambda: counts(client)["codespec_requests_running"] == 0)


def test_more_clients_than_slots(client):
    assert client.get("/props").json()["total_slots"] == SLOTS
    asked = [{"prompt": f"{PROMPTS[n % 6]}x{n} = ", "max_tokens": 12} for n in range(SLOTS + 5)]
    answers = together(client, asked)
    assert all(each["choices"][0]["finish_reason"] in ("stop", "length") for each in answers)
    assert len(answers) > FEW


@pytest.fixture(scope="module")
def narrow():
    """A server whose slots have room for a quarter of the context."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("codespec.engine.slots.MEMORY", FEW * 256 * 1792)
        with serving() as running, httpx.Client(base_url=running.url, timeout=60) as client:
            yield client


def test_a_prompt_that_is_too_long_for_a_slot_is_answered_too(narrow):
    long = "import os\n" * 150
    asked: list[dict[str, Any]] = [{"prompt": prompt} for prompt in (PROMPTS[0], long, PROMPTS[1], PROMPTS[2])]
    alone = [ask(narrow, **each)["usage"] for each in asked]
    assert alone[1]["prompt_tokens"] > 256
    assert [each["usage"]["completion_tokens"] for each in together(narrow, asked)] == [
        each["completion_tokens"] for each in alone
    ]


def test_a_long_prompt_that_nobody_waits_for_any_more_lets_the_others_go_on(narrow):
    begun = threading.Event()
    any_token = {"temperature": 2, "top_k": 0, "top_p": 1, "min_p": 0}  # no repetition, which would be over soon
    body = {"prompt": "import os\n" * 150, "max_tokens": 500, "stream": True, "ignore_eos": True, **any_token}
    with ThreadPoolExecutor(2) as pool:
        with narrow.stream("POST", "/v1/completions", json=body) as answer:
            lines = answer.iter_lines()
            next(lines)
            others = [pool.submit(stream, narrow, prompt, 30, begun) for prompt in PROMPTS[:2]]
            time.sleep(0.2)
            assert not begun.is_set()
        assert all(each.result() for each in others)
    until(lambda: counts(narrow)["codespec_requests_running"] == 0)


def test_a_text_that_outgrows_its_slot_goes_on_alone(narrow):
    begun, before = threading.Event(), counts(narrow)[READ]
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(stream, narrow, PROMPTS[0], 60, begun)
        assert begun.wait(30)
        answer = ask(narrow, PROMPTS[1], max_tokens=400, ignore_eos=True)
        other.result()
    until(lambda: counts(narrow)["codespec_requests_running"] == 0)
    assert counts(narrow)[READ] - before < 100  # what was written is not read again
    assert answer["usage"]["completion_tokens"] == 400
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["usage"]["prompt_tokens"] < 30


def test_the_counts_are_those_of_the_answers(client):
    before = counts(client)
    answers = together(client, [{"prompt": prompt} for prompt in PROMPTS])
    until(lambda: counts(client)["codespec_requests_running"] == 0)
    after = counts(client)
    told = sum(each["usage"]["completion_tokens"] for each in answers)
    assert after["codespec_generated_tokens_total"] - before["codespec_generated_tokens_total"] == told
    passes = after["codespec_target_passes_total"] - before["codespec_target_passes_total"]
    assert 0 < passes <= told + 12
