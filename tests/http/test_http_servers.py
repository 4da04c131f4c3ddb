"""llama-server's and Mistral's interfaces, with the requests that editors send."""

import json

import pytest

PREFIX, LINE, SUFFIX = "import os\n\n\ndef size_of(path):\n", "    return os.", "\n\n\nprint(size_of('a'))\n"
LLAMA_VIM = {
    "input_prefix": PREFIX,
    "input_suffix": SUFFIX,
    "input_extra": [{"text": "def size(path): ...\n", "time": [1, 2], "filename": "other.py"}],
    "prompt": LINE,
    "n_predict": 12,
    "n_indent": 4,
    "top_k": 40,
    "top_p": 0.99,
    "stream": False,
    "samplers": ["top_k", "top_p", "infill"],
    "cache_prompt": True,
    "t_max_prompt_ms": 5000,
    "t_max_predict_ms": 5000,
}
FIELDS = ["content", "timings/prompt_n", "timings/prompt_ms", "timings/predicted_n", "truncated", "tokens_cached"]


def test_llama_vim(client):
    answer = client.post("/infill", json=LLAMA_VIM | {"response_fields": [*FIELDS, "no/thing"]}).json()
    assert list(answer) == FIELDS
    assert answer["content"]
    assert answer["truncated"] is False
    whole = client.post("/infill", json=LLAMA_VIM | {"return_tokens": True}).json()
    assert whole["content"] == answer["content"]
    assert whole["timings"]["cache_n"] > 0
    assert whole["tokens_predicted"] == len(whole["tokens"]) <= 12


def test_llama_vscode_prepares(client):
    """It has the server read a prompt, for the next request to go on from."""
    fields = LLAMA_VIM | {"input_prefix": "# nothing like it\n" * 20, "n_predict": 0, "samplers": []}
    assert client.post("/infill", json=fields).json()["content"] == ""
    again = client.post("/infill", json=fields | {"n_predict": 1}).json()
    assert again["timings"]["prompt_n"] < 4


def test_an_infill_that_must_fit(client):
    answer = client.post("/infill", json=LLAMA_VIM | {"language": "python", "n_predict": 24}).json()
    compile(PREFIX + LINE + answer["content"] + SUFFIX, "a.py", "exec")


FITTED = {"prompt": PREFIX + LINE, "suffix": SUFFIX, "language": "python", "max_tokens": 24}


def test_what_fits_is_cut_at_a_stop_text_too(client):
    whole = client.post("/v1/completions", json=FITTED).json()["choices"][0]["text"]
    stop = whole[2:4]
    [choice] = client.post("/v1/completions", json=FITTED | {"stop": ["never there", stop]}).json()["choices"]
    assert (choice["text"], choice["finish_reason"]) == (whole[: whole.index(stop)], "stop")
    echo = client.post("/v1/completions", json=FITTED | {"echo": True}).json()["choices"][0]["text"]
    assert echo == FITTED["prompt"] + whole


def test_what_fits_has_no_probabilities(client):
    """They are told of a text that need not fit, which is the default where they are asked for."""
    assert client.post("/v1/completions", json=FITTED | {"logprobs": 1}).json()["choices"][0]["logprobs"]
    answer = client.post("/v1/completions", json=FITTED | {"logprobs": 1, "fit": True})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "fit")


def test_no_more_tokens_are_told_of_what_fits_than_were_asked_for(client):
    text = '{"a": 1 "b": 2}'
    fields = {"language": "json", "max_tokens": 6, "seed": 1}
    spent = []
    for at in range(len(text) + 1):
        place = fields | {"prompt": text[:at], "suffix": text[at:]}
        usage = client.post("/v1/completions", json=place).json()["usage"]
        several = client.post("/v1/completions", json=place | {"n": 2}).json()["usage"]
        assert usage["prompt_tokens"] == several["prompt_tokens"]  # which each attempt reads again
        assert usage["prompt_tokens_details"]["cached_tokens"] <= usage["prompt_tokens"]
        spent.append(usage["completion_tokens"])
    assert 0 < max(spent) <= fields["max_tokens"]


def test_no_token_of_what_fits(client):
    answer = client.post("/v1/completions", json=FITTED | {"max_tokens": 0}).json()
    assert (answer["choices"][0]["text"], answer["usage"]["completion_tokens"]) == ("", 0)


def test_a_completion_of_llama_server(client):
    fields = {"prompt": "def f(", "n_predict": 6, "n_probs": 2, "return_tokens": True}
    answer = client.post("/completion", json=fields).json()
    assert answer["stop_type"] == "limit"
    assert answer["tokens_predicted"] == 6
    chances = answer["completion_probabilities"]
    assert [each["id"] for each in chances] == answer["tokens"]
    assert all(each["top_logprobs"][0]["logprob"] >= each["logprob"] for each in chances)
    streamed = client.post("/completion", json=fields | {"stream": True}).text
    events = [json.loads(line.removeprefix("data: ")) for line in streamed.split("\n\n") if line]
    assert "".join(each["content"] for each in events) == answer["content"]
    assert [each["stop"] for each in events] == [False] * (len(events) - 1) + [True]
    both = client.post("/completions", json={"prompt": ["def f(", [1, "x"]], "n_predict": 2}).json()
    assert [each["index"] for each in both] == [0, 1]


def test_a_stopping_word(client):
    whole = client.post("/completion", json={"prompt": "def f(", "n_predict": 9}).json()["content"]
    answer = client.post("/completion", json={"prompt": "def f(", "n_predict": 9, "stop": [whole[3:6]]}).json()
    assert (answer["stop_type"], answer["stopping_word"]) == ("word", whole[3:6])


VALID = {
    "/v1/completions": {"prompt": "a", "max_tokens": 1},
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "a"}], "max_tokens": 1},
    "/completion": {"prompt": "a", "n_predict": 1},
    "/infill": {"input_prefix": "a", "input_suffix": "b", "n_predict": 1},
    "/v1/fim/completions": {"prompt": "a", "max_tokens": 1},
}
IGNORED = {
    "/v1/completions": {"nobody_knows": [1], "user": "u", "skip_special_tokens": True, "service_tier": "auto"},
    "/v1/chat/completions": {"nobody_knows": {}, "store": False, "reasoning_effort": "low", "metadata": {"a": "b"}},
    "/completion": {"nobody_knows": 1, "samplers": ["top_k"], "n_indent": 4, "cache_prompt": True, "id_slot": 3},
    "/infill": {"nobody_knows": 1, "samplers": "edkypmxt", "n_indent": 4, "n_keep": 0, "lora": [{"id": 0}]},
}
CHANGING = {
    "mirostat": 2, "dry_multiplier": 0.8, "typical_p": 0.5, "xtc_probability": 0.5, "dynatemp_range": 1,
    "top_n_sigma": 1, "use_beam_search": True, "min_tokens": 3, "post_sampling_probs": True,
}  # fmt: skip
NEUTRAL = {
    "mirostat": 0, "dry_multiplier": 0, "typical_p": 1.0, "xtc_probability": 0, "dynatemp_range": 0,
    "top_n_sigma": -1, "use_beam_search": False, "min_tokens": 0, "post_sampling_probs": None,
}  # fmt: skip


@pytest.mark.parametrize("path", IGNORED)
def test_unknown_fields_change_nothing(chat_client, path):
    """As the table in docs/http.md has it, here and below."""
    whole = [chat_client.post(path, json={**VALID[path], **more}) for more in ({}, IGNORED[path], NEUTRAL)]
    assert [each.status_code for each in whole] == [200] * 3
    texts = [each.json().get("content", each.json().get("choices")) for each in whole]
    assert texts[0] == texts[1] == texts[2]


@pytest.mark.parametrize("path", IGNORED)
@pytest.mark.parametrize("name", CHANGING)
def test_what_would_change_the_text_unseen_is_refused(chat_client, path, name):
    answer = chat_client.post(path, json={**VALID[path], name: CHANGING[name]})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, name)


@pytest.mark.parametrize("name", ["nobody_knows", "top_k", "mirostat", "samplers", "n_predict", "logit_bias"])
def test_mistral_knows_no_other_fields(client, name):
    path = "/v1/fim/completions"
    answer = client.post(path, json={**VALID[path], name: NEUTRAL.get(name, 1)})
    assert (answer.status_code, answer.json()["error"]["param"]) == (422, name)


@pytest.mark.parametrize("name", ["tools", "functions", "audio"])
def test_chats_have_no_tools(chat_client, name):
    path = "/v1/chat/completions"
    assert chat_client.post(path, json={**VALID[path], name: []}).status_code == 200
    answer = chat_client.post(path, json={**VALID[path], name: [{"type": "function"}]})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, name)


def test_props(client, chat_client):
    assert client.get("/props").json()["default_generation_settings"]["n_ctx"] > 0
    assert "# answer" in chat_client.get("/props").json()["chat_template"]


MISTRAL = {"model": "codespec", "prompt": PREFIX + LINE, "suffix": SUFFIX, "max_tokens": 8, "random_seed": 1}


def test_mistral(client):
    answer = client.post("/v1/fim/completions", json=MISTRAL | {"stop": ["never there"], "temperature": 0}).json()
    assert answer["choices"][0]["message"]["content"]
    same = client.post("/v1/completions", json={name: MISTRAL[name] for name in ("prompt", "suffix", "max_tokens")})
    assert answer["choices"][0]["message"]["content"] == same.json()["choices"][0]["text"]


def test_a_stream_of_mistral(client):
    """Each chunk has a choice with a content, as Continue reads them; the last one has the counts, too."""
    whole = client.post("/v1/fim/completions", json=MISTRAL).json()
    text = client.post("/v1/fim/completions", json=MISTRAL | {"stream": True}).text
    *chunks, last, done = [line.removeprefix("data: ") for line in text.split("\n\n") if line]
    chunks, last = [json.loads(each) for each in chunks], json.loads(last)
    contents = [each["choices"][0]["delta"]["content"] for each in (*chunks, last)]
    assert "".join(contents) == whole["choices"][0]["message"]["content"]
    assert {each["choices"][0]["finish_reason"] for each in chunks} == {None}
    assert last["choices"][0]["finish_reason"] == whole["choices"][0]["finish_reason"]
    assert last["usage"]["completion_tokens"] == whole["usage"]["completion_tokens"]
    assert done == "[DONE]"


@pytest.mark.parametrize("fields", [{"top_k": 4}, {"prompt": None}, {"max_tokens": "x"}])
def test_mistral_refuses_what_it_does_not_know(client, fields):
    answer = client.post("/v1/fim/completions", json=MISTRAL | fields)
    assert (answer.status_code, answer.json()["error"]["param"]) == (422, next(iter(fields)))


def test_logprobs(client, chat_client):
    fields = {"prompt": "def f(", "max_tokens": 6}
    choice = client.post("/v1/completions", json=fields | {"logprobs": 3}).json()["choices"][0]
    told = choice["logprobs"]
    assert "".join(told["tokens"]) == choice["text"]
    best = [max(each.values()) for each in told["top_logprobs"]]
    assert all(own <= most for own, most in zip(told["token_logprobs"], best, strict=True))
    assert told["text_offset"][0] == 0
    stop = choice["text"][2:4]
    cut = client.post("/v1/completions", json=fields | {"logprobs": 0, "stop": stop}).json()["choices"][0]
    assert "".join(cut["logprobs"]["tokens"]).startswith(cut["text"])
    messages = [{"role": "user", "content": "x"}]
    chat = chat_client.post(
        "/v1/chat/completions", json={"messages": messages, "max_tokens": 3, "logprobs": True, "top_logprobs": 2}
    ).json()["choices"][0]
    content = chat["logprobs"]["content"]
    assert b"".join(bytes(each["bytes"]) for each in content).decode() == chat["message"]["content"]
    assert len(content[0]["top_logprobs"]) == 2


def test_logprobs_do_not_depend_on_the_draft(client):
    """What drafts propose is verified in one pass: the rows told must be those of the tokens."""
    fields = {"prompt": "for i in range(10):\n    print(i)\n" * 4, "max_tokens": 24, "logprobs": 1}
    choice = client.post("/v1/completions", json=fields).json()["choices"][0]
    assert all(
        next(iter(best.values())) == pytest.approx(own)
        for best, own in zip(choice["logprobs"]["top_logprobs"], choice["logprobs"]["token_logprobs"], strict=True)
    )


def test_a_prediction_is_counted(client):
    text = "def area(width, height):\n    return width * height\n\n\ndef volume(width, height, depth):\n"
    fields = {"prompt": text, "max_tokens": 24, "temperature": 0}
    plain = client.post("/v1/completions", json=fields).json()
    prediction = {"type": "content", "content": plain["choices"][0]["text"]}
    answer = client.post("/v1/completions", json=fields | {"prediction": prediction}).json()
    assert answer["choices"][0]["text"] == plain["choices"][0]["text"]
    details = answer["usage"]["completion_tokens_details"]
    assert details["accepted_prediction_tokens"] > 0  # how many is a matter of what passes cost
    assert plain["usage"]["completion_tokens_details"]["accepted_prediction_tokens"] == 0
