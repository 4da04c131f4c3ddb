"""The requests of llama-server's own documents and tests, and those of its editors, byte for byte as they send them.

Of llama.cpp's ``tools/server/README.md`` and ``tools/server/tests/unit``, llama.vim's ``autoload/llama.vim`` and
llama.vscode's ``src/llama-server.ts``.
"""

import json
from typing import Any

import httpx
import openai
import pytest

from tests.present import present

LIFE = "I believe the meaning of life is"
BOOK: list[Any] = [{"role": "system", "content": "Book"}, {"role": "user", "content": "What is the best book"}]
PARTS = [{"type": "text", "text": "What is"}, {"type": "text", "text": "the best book"}]
CODE = {
    "input_prefix": '#include <cstdio>\n#include "llama.h"\n\nint main() {\n',
    "prompt": "    int n_threads = llama_",
    "input_suffix": "}\n",
}
EXTRA = [{"filename": "llama.h", "text": "LLAMA_API int32_t llama_n_threads();\n"}]
EXCLUDED = ["i", "I", "the", "The", "to", "a", "an", "be", "is", "was", "but", "But", "and", "And"]
SHORT = 8
"""Tokens, where a sample does not say how many: it would go on to the end of the context."""


def events(response):
    assert response.status_code == 200, response.text
    lines = [line.removeprefix("data: ") for line in response.text.split("\n\n") if line]
    return [json.loads(line) for line in lines if line != "[DONE]"]


COMPLETIONS = {
    "README": {"prompt": "Building a website can be done in 10 simple steps:", "n_predict": 128},
    "tokens not returned": {"n_predict": 8, "prompt": LIFE, "return_tokens": False},
    "tokens returned": {"n_predict": 64, "prompt": LIFE, "return_tokens": True},
    "a seed": {"prompt": LIFE, "seed": 42, "temperature": 0.0, "cache_prompt": False, "n_predict": SHORT},
    "an object": {"prompt": {"prompt_string": LIFE}, "seed": 42, "temperature": 1.0, "cache_prompt": False},
    "tokens and texts": {"prompt": [1, 2, 3, 4, 5, 6, LIFE, 7, 8, 9, 10, LIFE], "n_predict": SHORT},
    "no end": {"n_predict": 8, "prompt": "Once upon a time", "ignore_eos": True, "temperature": 0.0},
    "an end": {"n_predict": 8, "prompt": "Once upon a time", "ignore_eos": False, "temperature": 0.0},
    "stop": {"prompt": LIFE, "n_predict": 8, "stop": ["User:\n", "Assistant:\n"]},
    "progress": {"prompt": LIFE, "n_predict": 4, "timings_per_token": True, "return_progress": True},
}


@pytest.mark.parametrize("path", ["/completion", "/completions"])
@pytest.mark.parametrize("fields", COMPLETIONS.values(), ids=COMPLETIONS)
def test_completion(client, fields, path):
    fields = {"n_predict": SHORT, **fields}
    answer = client.post(path, json=fields)
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert isinstance(body["content"], str)
    assert body["timings"]["predicted_n"] == body["tokens_predicted"] <= fields["n_predict"]
    assert body["timings"]["prompt_n"] + body["timings"]["cache_n"] == body["tokens_evaluated"]
    assert body["timings"]["prompt_per_token_ms"] >= 0
    assert body["truncated"] is False
    assert isinstance(body["has_new_line"], bool)
    assert body["generation_settings"]["n_predict"] == fields["n_predict"]
    assert bool(body["tokens"]) == fields.get("return_tokens", False)
    streamed = events(client.post(path, json={**fields, "seed": body["generation_settings"]["seed"], "stream": True}))
    assert "".join(each["content"] for each in streamed) == body["content"]
    assert [each["stop"] for each in streamed] == [False] * (len(streamed) - 1) + [True]
    assert all(each["tokens"] for each in streamed[:-1])
    assert streamed[-1]["stop_type"] in ("limit", "eos")


def test_completion_of_several_prompts(client):
    tokens = client.post("/tokenize", json={"content": LIFE, "add_special": True}).json()["tokens"]
    for prompt in ([tokens, tokens], [tokens, LIFE], [tokens, {"prompt_string": LIFE}]):
        body = client.post("/completion", json={"prompt": prompt, "n_predict": SHORT}).json()
        assert [each["index"] for each in body] == [0, 1]
    assert isinstance(client.post("/completion", json={"prompt": tokens, "n_predict": 2}).json()["content"], str)


@pytest.mark.parametrize("more", [{}, {"language": "python"}], ids=["free", "fitting"])
def test_each_of_several_completions_has_its_own_counts(client, more):
    fields = {"prompt": ["def f(", "def f(a):\n    return a\n\n\nf("], "n_predict": 4, **more}
    whole = client.post("/completion", json=fields).json()
    streamed = events(client.post("/completion", json={**fields, "stream": True}))
    for first, second in (whole, [each for each in streamed if each["stop"]]):
        assert first["tokens_evaluated"] < second["tokens_evaluated"]
        for each in (first, second):
            assert each["timings"]["prompt_n"] + each["timings"]["cache_n"] == each["tokens_evaluated"]
    assert max(each["tokens_predicted"] for each in streamed) <= 4


def test_completion_response_fields(client):
    wanted = ["content", "generation_settings/n_predict", "prompt"]
    body = client.post("/completion", json={"n_predict": 32, "prompt": LIFE, "response_fields": wanted}).json()
    assert list(body) == wanted
    assert body["generation_settings/n_predict"] == 32
    assert body["prompt"].endswith(LIFE)
    assert "generation_settings" in client.post(
        "/completion", json={"n_predict": 8, "prompt": LIFE, "response_fields": []}
    ).json()  # fmt: skip


@pytest.mark.parametrize("stream", [False, True])
def test_n_probs(client, stream):
    fields = {"prompt": LIFE, "n_probs": 10, "temperature": 0.0, "n_predict": 5, "stream": stream}
    answer = client.post("/completion", json=fields)
    parts = [each for each in events(answer) if not each["stop"]] if stream else [answer.json()]
    told = [token for each in parts for token in each["completion_probabilities"]]
    assert len(told) == 5
    for token in told:
        assert len(token["top_logprobs"]) == 10
        for each in (token, *token["top_logprobs"]):
            assert isinstance(each["id"], int)
            assert isinstance(each["token"], str)
            assert isinstance(each["bytes"], list)
            assert each["logprob"] <= 0


@pytest.mark.parametrize("openai_style", [False, True])
@pytest.mark.parametrize("tokenized", [False, True])
def test_logit_bias(client, tokenized, openai_style):
    biases = [[f" {word} ", -100] for word in EXCLUDED]
    if tokenized:
        content = " " + " ".join(EXCLUDED) + " "
        biases = [[token, -100] for token in client.post("/tokenize", json={"content": content}).json()["tokens"]]
    fields = {"n_predict": 64, "prompt": "What is the best book", "temperature": 0.0}
    fields["logit_bias"] = {str(name): bias for name, bias in biases} if openai_style else biases
    text = client.post("/completion", json=fields).json()["content"]
    assert text
    assert not any(f" {word} " in text for word in EXCLUDED)


def test_without_an_end_a_text_goes_on(client):
    """The model ends this one at once."""
    fields = {"prompt": "x", "n_predict": 4, "json_schema": None, "logit_bias": []}
    whole = client.post("/completion", json={**fields, "ignore_eos": True, "n_predict": 200}).json()
    assert (whole["stop_type"], whole["tokens_predicted"]) == ("limit", 200)


@pytest.mark.parametrize("extra", [{}, {"input_extra": EXTRA}])
def test_infill(client, extra):
    body = client.post("/infill", json={**CODE, **extra, "n_predict": SHORT}).json()
    assert isinstance(body["content"], str)


@pytest.mark.parametrize(
    "extra", [{}, {"filename": "ok"}, {"filename": 123}, {"filename": 123, "text": "abc"}, {"filename": 1, "text": 4}]
)
def test_infill_with_what_is_no_context(client, extra):
    answer = client.post("/infill", json={**CODE, "input_extra": [extra]})
    assert answer.status_code == 400
    assert answer.json()["error"]["message"]


def test_tokens(client):
    content = "This is a test string with unicode 媽 and emoji 🤗"
    tokens = client.post("/tokenize", json={"content": content}).json()["tokens"]
    assert client.post("/detokenize", json={"tokens": tokens}).json()["content"].strip() == content
    pieces = client.post("/tokenize", json={"content": content, "with_pieces": True}).json()["tokens"]
    assert [each["id"] for each in pieces] == tokens
    text = b"".join(bytes(p) if isinstance(p, list) else p.encode() for p in (each["piece"] for each in pieces))
    assert text.decode() == content


FORMATS = [
    ({"type": "json_object", "schema": {"const": "42"}}, '"42"'),
    ({"type": "json_object", "schema": {"items": [{"type": "integer"}]}}, None),
    ({"type": "json_schema", "json_schema": {"schema": {"const": "foooooo"}}}, '"foooooo"'),
    ({"type": "json_object"}, None),
]
NO_FORMATS = [
    {"type": "sound"},
    {"type": "json_object", "schema": 123},
    {"type": "json_object", "schema": {"type": 123}},
    {"type": "json_object", "schema": {"type": "hiccup"}},
]
CHATS = {
    "a model": {"model": "gpt-3.5-turbo", "messages": BOOK, "max_tokens": 8},
    "no model": {"model": None, "messages": BOOK, "max_tokens": 8},
    "parts": {"max_tokens": 8, "messages": [BOOK[0], {"role": "user", "content": PARTS}]},
    "two answers": {"max_tokens": 8, "n": 2, "messages": BOOK, "id_slot": 0},
    "a grammar": {"max_tokens": 9, "messages": BOOK[1:], "grammar": 'root ::= "a"{5,5}'},
    "a schema": {"max_tokens": 9, "messages": BOOK, "json_schema": {"const": "42"}},
    "timings": {"max_tokens": 8, "messages": BOOK, "timings_per_token": True, "return_progress": True},
    "template": {"max_tokens": 8, "messages": BOOK, "chat_template_kwargs": {"enable_thinking": False}},
}


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/chat/completions"])
@pytest.mark.parametrize("fields", CHATS.values(), ids=CHATS)
def test_a_chat_has_the_shape_that_llama_server_gives(chat_client, fields, path):
    fields = {**fields, "temperature": 0}
    body = chat_client.post(path, json=fields).json()
    assert "cmpl" in body["id"]
    assert body["system_fingerprint"].startswith("b")
    assert body["usage"]["prompt_tokens"] > 8
    assert len(body["choices"]) == fields.get("n", 1)
    for choice in body["choices"]:
        assert choice["message"]["role"] == "assistant"
        assert choice["finish_reason"] in ("length", "stop")
    first, *rest = events(chat_client.post(path, json={**fields, "stream": True}))
    assert first["choices"][0]["delta"]["role"] == "assistant"
    assert not first["choices"][0]["delta"]["content"]
    texts = dict.fromkeys(range(len(body["choices"])), "")
    for each in rest:
        assert each["id"] == first["id"]
        assert each["system_fingerprint"].startswith("b")
        [choice] = each["choices"]
        if choice["finish_reason"] is not None:
            assert "content" not in choice["delta"]
        texts[choice["index"]] += choice["delta"].get("content") or ""
    assert list(texts.values()) == [choice["message"]["content"] for choice in body["choices"]]


@pytest.mark.parametrize(("form", "text"), FORMATS)
def test_response_format(chat_client, form, text):
    fields = {"max_tokens": 20, "messages": BOOK, "response_format": form}
    content = chat_client.post("/chat/completions", json=fields).json()["choices"][0]["message"]["content"]
    assert text is None or content == text


@pytest.mark.parametrize("form", NO_FORMATS)
def test_what_is_no_response_format(chat_client, form):
    answer = chat_client.post("/chat/completions", json={"messages": BOOK, "response_format": form})
    assert answer.status_code == 400
    assert answer.json()["error"]["message"]


@pytest.mark.parametrize(
    "messages",
    [None, "string", [123], [{}], [{"role": 123}], [{"role": "system", "content": 123}], [BOOK[0], {}]],
)
def test_what_are_no_messages(chat_client, messages):
    answer = chat_client.post("/chat/completions", json={"messages": messages})
    assert answer.status_code == 400
    assert answer.json()["error"]["param"].startswith("messages")


@pytest.mark.parametrize(
    "fields",
    [
        {"grammar": "root ::= this is (not valid GBNF"},
        {"messages": BOOK * 100},
        {"messages": BOOK * 100, "stream": True},
        {"add_generation_prompt": True, "continue_final_message": True},
    ],
)
def test_chats_that_are_refused(chat_client, fields):
    answer = chat_client.post("/chat/completions", json={"max_tokens": 8, "messages": BOOK, **fields})
    assert answer.status_code == 400
    assert answer.json()["error"]["message"]


def test_apply_template(chat_client):
    messages = [{"role": "system", "content": "You are a test."}, {"role": "user", "content": "Hi there"}]
    assert "Hi there" in chat_client.post("/apply-template", json={"messages": messages}).json()["prompt"]


@pytest.mark.parametrize("base", ["/v1", ""])
def test_openai_library(chat_server, base):
    with openai.OpenAI(api_key="dummy", base_url=chat_server.url + base, max_retries=0) as library:
        chat = library.chat.completions.create(
            model="gpt-3.5-turbo-instruct", messages=BOOK, max_tokens=8, seed=42, temperature=0.8
        )
        assert present(chat.system_fingerprint).startswith("b")
        assert chat.choices[0].message.content is not None
        if not base:  # `/completions` is llama-server's own
            return
        done = library.completions.create(model="davinci-002", prompt=LIFE, max_tokens=8)
        assert present(done.system_fingerprint).startswith("b")
        assert done.choices[0].text
        parts = library.completions.create(model="davinci-002", prompt=LIFE, max_tokens=8, stream=True)
        assert "".join(each.choices[0].text for each in parts) == done.choices[0].text
        told = library.chat.completions.create(
            model="gpt-3.5-turbo-instruct", temperature=0.0, messages=BOOK, max_tokens=5, logprobs=True, top_logprobs=10
        ).choices[0]
        assert "".join(each.token for each in present(present(told.logprobs).content)) == told.message.content
        streamed = library.chat.completions.create(
            model="gpt-3.5-turbo-instruct", temperature=0.0, messages=BOOK, max_tokens=5, logprobs=True,
            top_logprobs=10, stream=True,
        )  # fmt: skip
        first, *rest = (each.choices[0] for each in streamed)
        assert first.delta.role == "assistant"
        assert not first.delta.content
        assert all(each.delta.role is None for each in rest)
        spoken = "".join(each.delta.content or "" for each in rest)
        assert "".join(token.token for each in rest if each.logprobs for token in each.logprobs.content or ()) == spoken
        assert spoken == told.message.content


def test_about_the_server(client):
    assert client.get("/health").json() == {"status": "ok"}
    assert client.get("/v1/health").json() == {"status": "ok"}
    assert client.get("/models").json() == client.get("/v1/models").json()
    assert client.get("/props").json()["total_slots"] == 16
    assert client.get("/metrics").headers["content-type"].startswith("text/plain")


@pytest.mark.parametrize(
    "path",
    [
        "/embedding", "/embeddings", "/v1/embeddings", "/reranking", "/v1/rerank", "/v1/responses", "/v1/messages",
        "/v1/messages/count_tokens", "/slots/0?action=save", "/lora-adapters", "/chat/completions/input_tokens",
        "/models/load",
    ],
)  # fmt: skip
def test_what_is_not_offered(client, path):
    answer = client.post(path, json={"input": "hello", "model": "GPT-4", "encoding_format": "float"})
    assert answer.status_code == 404
    assert answer.json()["error"]["type"] == "not_found_error"


# llama.vim

VIM = {
    "input_prefix": "import os\n\n",
    "input_suffix": "\n\nprint(area(2, 3))\n\n",
    "input_extra": [{"text": "def volume(a, b, c):\n    return a\n", "time": [12, 345678], "filename": "volume.py"}],
    "prompt": "def area(width, height):",
    "n_predict": 256,
    "n_indent": 0,
    "top_k": 40,
    "top_p": 0.99,
    "stream": False,
    "samplers": ["top_k", "top_p", "infill"],
    "cache_prompt": True,
    "t_max_prompt_ms": 500,
    "t_max_predict_ms": 1500,
    "response_fields": [
        "content", "timings/prompt_n", "timings/prompt_ms", "timings/prompt_per_token_ms", "timings/prompt_per_second",
        "timings/predicted_n", "timings/predicted_ms", "timings/predicted_per_token_ms",
        "timings/predicted_per_second", "truncated", "tokens_cached",
    ],
}  # fmt: skip
VIM_AHEAD = {
    "input_prefix": "",
    "input_suffix": "",
    "input_extra": VIM["input_extra"],
    "prompt": "",
    "n_predict": 0,
    "temperature": 0.0,
    "stream": False,
    "samplers": [],
    "cache_prompt": True,
    "t_max_prompt_ms": 1,
    "t_max_predict_ms": 1,
    "response_fields": [""],
}


def test_llama_vim(client):
    assert client.post("/infill", json=VIM_AHEAD).json() == {}
    answer = client.post("/infill", json=VIM, headers={"Authorization": "Bearer"})
    assert list(answer.json()) == VIM["response_fields"]
    assert answer.json()["content"]
    assert answer.json()["timings/predicted_n"] > 0


# llama.vscode

CODE_FIM = {
    "input_prefix": VIM["input_prefix"], "input_suffix": VIM["input_suffix"], "input_extra": VIM["input_extra"],
    "prompt": VIM["prompt"], "n_predict": 128, "top_k": 40, "top_p": 0.99, "stream": False,
    "samplers": ["top_k", "top_p", "infill"], "cache_prompt": True, "n_indent": 4, "t_max_prompt_ms": 500,
    "t_max_predict_ms": 1500, "lora": [{"id": 0, "scale": 0.5}],
}  # fmt: skip
CODE_AHEAD = {
    "input_prefix": "", "input_suffix": "", "input_extra": VIM["input_extra"], "prompt": "", "n_predict": 0,
    "samplers": [], "cache_prompt": True, "t_max_prompt_ms": 500, "t_max_predict_ms": 1,
}  # fmt: skip
CODE_EDIT = {
    "messages": [{"role": "system", "content": "You are an expert coder."}, {"role": "user", "content": "Rename a."}],
    "stream": False, "cache_prompt": True, "samplers": "edkypmxt", "temperature": 0.8, "dynatemp_range": 0,
    "dynatemp_exponent": 1, "top_k": 40, "top_p": 0.95, "min_p": 0.05, "typical_p": 1, "xtc_probability": 0,
    "xtc_threshold": 0.1, "repeat_last_n": 64, "repeat_penalty": 1, "presence_penalty": 0, "frequency_penalty": 0,
    "dry_multiplier": 0, "dry_base": 1.75, "dry_allowed_length": 2, "dry_penalty_last_n": -1, "max_tokens": -1,
    "timings_per_token": False,
}  # fmt: skip


def test_llama_vscode(client):
    assert client.post("/infill", json=CODE_AHEAD).status_code == 200
    body = client.post("/infill", json=CODE_FIM).json()
    assert body["content"]
    assert {"prompt_n", "prompt_ms", "prompt_per_second", "predicted_n", "predicted_ms", "predicted_per_second"} <= set(
        body["timings"]
    )
    assert isinstance(body["tokens_cached"], int)
    assert body["truncated"] is False
    assert body["generation_settings"]["n_ctx"] > 0
    fields = {"model": "", "prompt": LIFE, "max_tokens": 9, "temperature": 0.1, "top_p": 0.99, "stream": False}
    done = client.post("/v1/completions", json=fields).json()
    assert done["choices"][0]["finish_reason"]
    assert done["usage"]["total_tokens"] > 9


def test_llama_vscode_edits(chat_server):
    with httpx.Client(base_url=chat_server.url, timeout=120) as client:
        ahead = {"messages": CODE_EDIT["messages"], "n_predict": 0, "samplers": [], "t_max_predict_ms": 1}
        assert client.post("/v1/chat/completions", json=ahead).json()["choices"][0]["message"]["content"] == ""
        fields = {**CODE_EDIT, "t_max_predict_ms": 500}  # the model does not know an end
        assert client.post("/v1/chat/completions", json=fields).json()["choices"][0]["message"]["content"]
        tools = {**CODE_EDIT, "tools": [{"type": "function", "function": {"name": "f"}}], "tool_choice": "auto"}
        refused = client.post("/v1/chat/completions", json=tools)
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, "tools")


# Zed's `open_ai_compatible_api` (crates/edit_prediction), with the prompt format `qwen`, which is the embedded model's

ZED: dict[str, Any] = {
    "model": "codespec",
    "prompt": "<|fim_prefix|>def area(width, height):\n    return <|fim_suffix|>\n\nprint(area(2, 3))\n<|fim_middle|>",
    "max_tokens": 64,
    "temperature": None,
    "stop": [
        "<|endoftext|>", "<|file_separator|>", "<|fim_pad|>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>",
        "<fim_prefix>", "<fim_middle>", "<fim_suffix>", "<PRE>", "<SUF>", "<MID>", "[PREFIX]", "[SUFFIX]",
    ],
    "environment": None,
}  # fmt: skip


@pytest.mark.parametrize("null", [True, False])
def test_zed(client, null):
    fields = ZED if null else {name: value for name, value in ZED.items() if value is not None}
    body = client.post("/v1/completions", json=fields).json()
    [choice] = body["choices"]
    assert choice["text"].strip()
    assert not any(each in choice["text"] for each in ZED["stop"])
    assert {"id", "object", "created", "model", "usage"} <= set(body)
    assert {"prompt_tokens", "completion_tokens", "total_tokens"} <= set(body["usage"])
    # The special tokens of the prompt were read as such.
    tokens = client.post("/tokenize", json={"content": ZED["prompt"]}).json()["tokens"]
    assert body["usage"]["prompt_tokens"] == len(tokens)
