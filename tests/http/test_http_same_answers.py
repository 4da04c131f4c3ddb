"""The draft changes nothing of an answer, nor does streaming. More: ``python -m tests.http.same_answers``."""

import pytest

from tests.http.answer_forms import events
from tests.http.same_answers import both, compare

LIST = "a = [alpha, beta, gamma, delta]\n"


@pytest.fixture(scope="module")
def pair():
    """Clients of a server that drafts and of one that does not."""
    with both(exact=True) as clients:
        yield [*clients.values()]


def test_answers_with_drafts_and_without():
    report = compare(24, seed=5000)
    assert report.failures == []
    assert report.counts.total() == 24
    assert report.stopped > 3


@pytest.mark.parametrize(
    ("stops", "text"),
    [([" gamma, d", "mma"], " beta, ga"), (["beta, g", " gamma", "bet"], " "), (["ta,", "a,"], " be")],
)
def test_stop_texts_within_a_round(pair, stops, text):
    fields = {"prompt": LIST * 12 + "a = [alpha,", "max_tokens": 40, "temperature": 0, "stop": stops}
    usage = []
    for client in pair:
        whole = client.post("/v1/completions", json=fields).json()
        assert (whole["choices"][0]["text"], whole["choices"][0]["finish_reason"]) == (text, "stop")
        more = {"stream": True, "stream_options": {"include_usage": True}}
        parts = events(client.post("/v1/completions", json={**fields, **more}).text)
        assert "".join(each["choices"][0]["text"] for each in parts[:-1]) == text
        own = client.post("/completion", json={**fields, "n_predict": 40, "return_tokens": True}).json()
        assert (own["content"], own["stop_type"]) == (text, "word")
        counts = [whole["usage"], parts[-1]["usage"]]
        usage += [each["completion_tokens"] for each in counts] + [own["tokens_predicted"], len(own["tokens"])]
        written = client.post("/detokenize", json={"tokens": own["tokens"]}).json()["content"]
        assert written.startswith(text + own["stopping_word"])
    assert len(set(usage)) == 1


def test_offsets_are_characters_of_the_text(pair):
    text = "aé😀文字"
    for client in pair:
        fields = {"prompt": "x", "guided_choice": [text], "max_tokens": 30, "logprobs": 1}
        whole = client.post("/v1/completions", json=fields).json()["choices"][0]
        told = whole["logprobs"]
        assert whole["text"] == "".join(told["tokens"]) == text
        assert all(0 <= each < len(text) for each in told["text_offset"])
        assert all(text[at:].startswith(token) for token, at in zip(told["tokens"], told["text_offset"], strict=True))
        assert all(len(each) == 1 for each in told["top_logprobs"])
        parts = events(client.post("/v1/completions", json={**fields, "stream": True}).text)
        streamed = [each["choices"][0]["logprobs"] for each in parts if each["choices"][0]["logprobs"]]
        for name in ("tokens", "token_logprobs", "text_offset"):
            assert [value for each in streamed for value in each[name]] == told[name]


def test_greedy_answers_that_must_fit_stay_the_same(pair):
    """Also where other texts are drawn beside the greedy one, or instead of it."""
    several = {"prompt": '    return {\n        "tokens": s.tokens,\n        "acc', "n": 3, "language": "python"}
    for client in pair:
        answers = [client.post("/v1/completions", json={**several, "max_tokens": 12}).json() for _ in range(3)]
        texts = [[each["text"] for each in answer["choices"]] for answer in answers]
        assert texts[0] == texts[1] == texts[2]


def test_echo_begins_with_the_prompt_where_there_is_a_suffix(pair):
    for client in pair:
        fields = {"prompt": "def f(", "suffix": "):\n    pass\n", "echo": True, "max_tokens": 4}
        plain = client.post("/v1/completions", json={**fields, "echo": False}).json()["choices"][0]["text"]
        assert client.post("/v1/completions", json=fields).json()["choices"][0]["text"] == "def f(" + plain
