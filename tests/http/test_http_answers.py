"""What is answered: texts, streams, chats, models, refusals."""

import json

import httpx
import pytest

from tests.http.http_servers import until
from tests.http.same_text import compare

PROMPT = "def add(a, b):\n"


UNENFORCEABLE = {"type": "number", "multipleOf": 1e-300}


def json_schema(**more):
    """As OpenAI has it."""
    return {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": UNENFORCEABLE, **more}}}


def events(response):
    """The data of server-sent events, the last one ``[DONE]``."""
    lines = [line for line in response.text.split("\n\n") if line]
    assert all(line.startswith("data: ") for line in lines)
    assert lines[-1] == "data: [DONE]"
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]


def complete(client, **fields):
    return client.post("/v1/completions", json={"prompt": PROMPT, **fields})


def test_a_completion(client):
    answer = complete(client, max_tokens=12).json()
    [choice] = answer["choices"]
    assert choice["text"]
    assert choice["finish_reason"] == "length"
    assert answer["usage"]["completion_tokens"] == 12
    assert answer["object"] == "text_completion"


def test_a_stream_has_the_same_text(client):
    whole = complete(client, max_tokens=20).json()
    parts = events(complete(client, max_tokens=20, stream=True, stream_options={"include_usage": True}))
    *chunks, last = parts
    assert last["timings"]["predicted_n"] == whole["timings"]["predicted_n"] == 20
    assert "".join(each["choices"][0]["text"] for each in chunks) == whole["choices"][0]["text"]
    assert [each["choices"][0]["finish_reason"] for each in chunks][-1] == "length"
    assert last["choices"] == []
    assert last["usage"]["completion_tokens"] == 20


def test_the_last_chunk_of_a_stream_has_the_times(client, chat_client):
    """As llama-server's, whether the usage is asked for or not."""
    *chunks, last = events(complete(client, max_tokens=4, stream=True, temperature=1, n=2))
    assert last["timings"]["predicted_n"] == 8
    assert last["choices"][0]["finish_reason"] == "length"
    assert [each["choices"][0]["index"] for each in chunks if each["choices"][0]["finish_reason"]] == [0]
    assert not any("timings" in each for each in chunks)
    fields = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 4, "stream": True}
    *chunks, last = events(chat_client.post("/v1/chat/completions", json=fields))
    assert last["timings"]["predicted_n"] == 4
    assert last["choices"] == [{"index": 0, "delta": {}, "logprobs": None, "finish_reason": "length"}]
    assert not any("timings" in each or each["choices"][0]["finish_reason"] for each in chunks)


def test_several_prompts_and_texts(client):
    fields = {"temperature": 1, "seed": 3, "n": 2, "max_tokens": 8}
    both = complete(client, prompt=[PROMPT, "class A:\n"], **fields).json()["choices"]
    assert [each["index"] for each in both] == [0, 1, 2, 3]
    alone = complete(client, prompt="class A:\n", **fields).json()["choices"]
    assert [each["text"] for each in both[2:]] == [each["text"] for each in alone]
    assert len({each["text"] for each in both}) == 4


def test_a_stop_text_is_no_part_of_the_text(client):
    whole = complete(client, max_tokens=30).json()["choices"][0]["text"]
    stop = whole[10:14]
    choice = complete(client, max_tokens=30, stop=["never there", stop]).json()["choices"][0]
    assert choice["text"] == whole[: whole.index(stop)]
    assert choice["finish_reason"] == "stop"


def test_echo(client):
    text = complete(client, max_tokens=3, echo=True).json()["choices"][0]["text"]
    assert text.startswith(PROMPT)


def test_without_a_seed_draws_differ(client):
    fields = {"temperature": 1, "max_tokens": 20}
    texts = {complete(client, **fields).json()["choices"][0]["text"] for _ in range(4)}
    assert len(texts) > 1
    texts = {complete(client, **fields, seed=5).json()["choices"][0]["text"] for _ in range(3)}
    assert len(texts) == 1


@pytest.mark.parametrize(
    ("constraint", "fits"),
    [
        ({"response_format": {"type": "json_object"}}, lambda text: text.startswith("{")),
        ({"structured_outputs": {"choice": ["yes", 'no "x"', "ß\n"]}}, ["yes", 'no "x"', "ß\n"].__contains__),
        ({"structured_outputs": {"regex": "[0-9]{3}"}}, lambda text: text.isdigit() and len(text) == 3),
        ({"grammar": 'root ::= "a" [bc] "d"'}, ["abd", "acd"].__contains__),
        ({"grammar": 'start: "a" /[bc]/ "d"'}, ["abd", "acd"].__contains__),
        ({"grammar": "json"}, lambda text: text[:1] in '{["-0123456789tfn'),
        ({"json_schema": {"enum": [1, "x", None]}}, ["1", '"x"', "null"].__contains__),
    ],
)  # fmt: skip
def test_constraints(client, constraint, fits):
    for seed in range(3):
        choice = complete(client, temperature=1, seed=seed, max_tokens=24, **constraint).json()["choices"][0]
        assert fits(choice["text"]), choice


def test_a_chat(chat_client):
    messages = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
    ]
    answer = chat_client.post("/v1/chat/completions", json={"messages": messages, "max_tokens": 9}).json()
    message = answer["choices"][0]["message"]
    assert message["role"] == "assistant"
    text = chat_client.post("/apply-template", json={"messages": messages}).json()["prompt"]
    assert text == "# system: Be brief.\n# user: Hi\n# answer:\n"
    tokens = chat_client.post("/tokenize", json={"content": text}).json()["tokens"]
    assert chat_client.post("/detokenize", json={"tokens": tokens}).json() == {"content": text}
    same = complete(chat_client, prompt=tokens, max_tokens=9)
    assert message["content"] == same.json()["choices"][0]["text"]
    streamed = events(
        chat_client.post("/v1/chat/completions", json={"messages": messages, "max_tokens": 9, "stream": True})
    )
    assert streamed[0]["choices"][0]["delta"]["role"] == "assistant"
    assert "".join(each["choices"][0]["delta"].get("content", "") for each in streamed) == message["content"]


def test_a_model_without_a_template_says_so(client):
    messages = [{"role": "user", "content": "Hi"}]
    response = client.post("/v1/chat/completions", json={"messages": messages})
    assert response.status_code == 400
    assert "no chat template" in response.json()["error"]["message"]


def test_a_template_has_more_variables(chat_client):
    fields = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 4}
    plain = chat_client.post("/v1/chat/completions", json=fields).json()["choices"]
    for variables in ({"engine": 1, "self": 2}, {"messages": [], "add_generation_prompt": False}):  # those it has stay
        answer = chat_client.post("/v1/chat/completions", json={**fields, "chat_template_kwargs": variables})
        assert answer.json()["choices"] == plain


def test_a_template_may_refuse(chat_client):
    messages = [{"role": "tool", "content": "secret"}]
    error = chat_client.post("/v1/chat/completions", json={"messages": messages}).json()["error"]
    assert error["message"].endswith(": no tools")


def test_models_and_health(client):
    assert [each["id"] for each in client.get("/v1/models").json()["data"]] == ["target", "codespec"]
    assert client.get("/v1/models/target").json()["id"] == "target"
    assert client.get("/v1/models/other").status_code == 404
    assert client.get("/health").json() == {"status": "ok"}


def test_metrics(client):
    complete(client, max_tokens=2)
    text = client.get("/metrics").text
    assert 'codespec_requests_total{path="/v1/completions",status="200"}' in text
    assert "codespec_time_to_first_token_seconds_count" in text


@pytest.mark.parametrize(
    ("fields", "status", "param"),
    [
        ({"temperature": -1}, 400, "temperature"),
        ({"temperature": True}, 400, "temperature"),
        ({"max_tokens": 1.5}, 400, "max_tokens"),
        ({"mirostat": 10**400}, 400, "mirostat"),
        ({"stop": [""]}, 400, "stop"),
        ({"n": 0}, 400, "n"),
        ({"prompt": {"a": 1}}, 400, "prompt"),
        ({"prompt": 1}, 400, "prompt"),
        ({"prompt": [1, 10**7]}, 400, "prompt"),
        ({"prompt": "x " * 20000}, 400, "prompt"),
        ({"logit_bias": {"": 1}}, 400, "logit_bias"),
        ({"model": "gpt-9"}, 404, "model"),
        ({"response_format": {"type": "xml"}}, 400, "response_format.type"),
        ({"grammar": "root ::= ("}, 400, "grammar"),
        ({"grammar": "/etc/passwd"}, 400, "grammar"),
        ({"structured_outputs": {"grammar": "cobol"}}, 400, "structured_outputs.grammar"),
        ({"grammar": "root ::= <[999999]>"}, 400, "grammar"),
        ({"json_schema": {"type": "nothing"}}, 400, "json_schema"),
        ({"grammar": "json", "json_schema": {}}, 400, "grammar"),
    ],
)  # fmt: skip
def test_bad_fields_are_named(client, fields, status, param):
    response = complete(client, **fields)
    assert (response.status_code, response.json()["error"]["param"]) == (status, param)


@pytest.mark.parametrize(
    ("fields", "param", "lenient"),
    [
        ({"json_schema": UNENFORCEABLE}, "json_schema", False),
        ({"structured_outputs": {"json": UNENFORCEABLE}}, "structured_outputs.json", False),
        (json_schema(strict=True), "response_format.json_schema.schema", False),
        (json_schema(), None, True),
    ],
)
def test_what_cannot_be_enforced(client, fields, param, lenient):
    answer = complete(client, max_tokens=1, **fields)
    assert answer.status_code == (200 if lenient else 400)
    if not lenient:
        error = answer.json()["error"]
        assert error["param"] == param
        assert error["message"].startswith(f"{param}: /multipleOf: ")
        assert "`response_format` without `strict`" in error["message"]
        assert "--lenient" not in error["message"]


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"{", "application/json", 400),
        (b"[]", "application/json", 400),
        (b"\xff", "application/json", 400),
        (b'{"prompt": "\\ud800"}', "application/json", 400),
        (b'{"prompt": "\xed\xa0\x80"}', "application/json", 400),
        ('{"prompt": "\\ud800"}'.encode("utf-16"), "application/json", 400),
        (b'{"prompt": NaN}', "application/json", 400),
        (b"[" * 100_000, "application/json", 400),
        (b'{"a":' * 300 + b"1" + b"}" * 300, "application/json", 400),
        (b"prompt=x", "application/x-www-form-urlencoded", 415),
        (b" " * (9 << 20), "application/json", 413),
    ],
)
def test_bad_bodies(client, body, kind, status):
    assert client.post("/v1/completions", content=body, headers={"Content-Type": kind}).status_code == status


def test_an_unknown_grammar_is_told_the_known_ones(client):
    assert complete(client, grammar="cobol").json()["error"]["message"].endswith(", typescript, yaml")


def test_other_paths(client):
    assert client.get("/nothing").status_code == 404
    assert client.get("/v1/completions").status_code == 405
    assert client.get("/nothing").json()["error"]["message"]


def test_unknown_fields_are_ignored(client):
    assert complete(client, max_tokens=1, nobody_knows=1, user="me").status_code == 200


def test_who_goes_away_stops_the_work(client, server):
    def running():
        return "codespec_requests_running 1.0" in client.get("/metrics").text

    before = generated_of(client)
    fields = {"prompt": PROMPT, "max_tokens": 8000, "n": 100, "stream": True, "grammar": 'root ::= [a-z ]* "éàü"'}
    with httpx.stream("POST", f"{server.url}/v1/completions", json=fields) as response:
        parts = response.iter_bytes()  # whose end is that of the connection
        next(parts)
        assert running()
    until(lambda: not running())
    until(lambda: generated_of(client) > before)  # of a request that was never answered


def generated_of(client):
    text = client.get("/metrics").text
    return float(text.split("\ncodespec_generated_tokens_total ")[1].split()[0])


def test_the_command_line_gives_the_same_text():
    """More of it: ``python -m tests.http.same_text --count 200``."""
    counts = compare(6, seed=2)
    assert sum(count for (_, same), count in counts.items() if same) == 6
