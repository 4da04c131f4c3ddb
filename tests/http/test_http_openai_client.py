"""The official ``openai`` client, unchanged."""

import asyncio
import enum
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import openai
import pytest
from pydantic import BaseModel, Field

from codespec.http.security import Access
from tests.http.http_servers import serving, until

PROMPT = "def add(a, b):\n"
MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "A shirt, please."}]
ENDLESS: dict[str, Any] = {"extra_body": {"grammar": 'root ::= [a-z ]* "éàü"'}, "max_tokens": 8000, "n": 100}


class Size(enum.Enum):
    SMALL, LARGE = "small", "large"


class Sleeve(BaseModel):
    length: int = Field(ge=0, le=99)
    rolled: bool


class Shirt(BaseModel):
    """What is ordered."""

    size: Size
    sleeves: list[Sleeve] = Field(max_length=2)
    label: str | None = Field(max_length=8)


def client_of(server, **options):
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key="k" * 20, timeout=60, **options)


@pytest.fixture
def ai(chat_server):
    with client_of(chat_server, max_retries=0) as client:
        yield client


def idle(ai):
    return "codespec_requests_running 0.0" in ai.get("/../metrics", cast_to=str)


def test_models(ai):
    assert [each.id for each in ai.models.list()] == ["target", "codespec"]
    assert ai.models.retrieve("target").owned_by == "codespec"
    with pytest.raises(openai.NotFoundError) as refused:
        ai.models.retrieve("gpt-9")
    assert refused.value.code == "model_not_found"


def test_a_completion(ai):
    answer = ai.completions.create(model="target", prompt=PROMPT, max_tokens=7, temperature=0, stop=["\n\n\n"], n=1)
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage.completion_tokens == 7
    stream = ai.completions.create(model="target", prompt=PROMPT, max_tokens=7, temperature=0, stream=True)
    assert "".join(each.choices[0].text for each in stream) == answer.choices[0].text


def test_token_ids_and_several_prompts(ai):
    answer = ai.completions.create(model="target", prompt=[[5, 6, 7], [8, 9]], max_tokens=2, n=2, temperature=1, seed=1)
    assert [each.index for each in answer.choices] == [0, 1, 2, 3]
    assert answer.usage.prompt_tokens >= 5


def test_a_suffix(ai):
    answer = ai.completions.create(model="target", prompt="def f(", suffix="):\n    return a\n", max_tokens=4)
    assert answer.choices[0].text


def test_a_chat(ai):
    wanted = {"model": "target", "messages": MESSAGES, "max_completion_tokens": 9, "temperature": 0}
    message = ai.chat.completions.create(**wanted).choices[0].message
    assert (message.role, message.refusal, message.tool_calls) == ("assistant", None, None)
    stream = list(ai.chat.completions.create(**wanted, stream=True, stream_options={"include_usage": True}))
    assert stream[0].choices[0].delta.role == "assistant"
    assert "".join(each.choices[0].delta.content or "" for each in stream if each.choices) == message.content
    assert stream[-1].usage.completion_tokens == 9
    assert [each.choices[0].finish_reason for each in stream if each.choices][-1] == "length"


@pytest.mark.parametrize("seed", range(3))
def test_a_pydantic_model(ai, seed):
    answer = ai.chat.completions.parse(
        model="target", messages=MESSAGES, response_format=Shirt, temperature=1, seed=seed, max_completion_tokens=400
    )
    shirt = answer.choices[0].message.parsed
    assert isinstance(shirt, Shirt)
    assert answer.choices[0].finish_reason == "stop"


def test_a_pydantic_model_in_a_stream(ai):
    with ai.chat.completions.stream(
        model="target", messages=MESSAGES, response_format=Shirt, temperature=1, seed=4, max_completion_tokens=400
    ) as stream:
        kinds = {event.type for event in stream}
        shirt = stream.get_final_completion().choices[0].message.parsed
    assert isinstance(shirt, Shirt)
    assert {"chunk", "content.delta", "content.done"} <= kinds


def test_a_text_that_is_cut_off_is_told(ai):
    with pytest.raises(openai.LengthFinishReasonError):
        ai.chat.completions.parse(model="target", messages=MESSAGES, response_format=Shirt, max_completion_tokens=2)


def test_a_prediction(ai):
    text = ai.completions.create(model="target", prompt=PROMPT, max_tokens=40, temperature=0).choices[0].text
    answer = ai.completions.create(
        model="target", prompt=PROMPT, max_tokens=40, temperature=0,
        extra_body={"prediction": {"type": "content", "content": text}},
    )  # fmt: skip
    assert answer.choices[0].text == text
    assert answer.usage.completion_tokens_details.accepted_prediction_tokens > 0


def test_closing_a_stream_ends_the_work(ai):
    stream = ai.completions.create(model="target", prompt=PROMPT, stream=True, **ENDLESS)
    next(stream)
    stream.close()
    until(lambda: idle(ai))


def test_a_cancelled_task_ends_the_work(chat_server, ai):
    async def cancelled():
        async with openai.AsyncOpenAI(base_url=f"{chat_server.url}/v1", api_key="any") as client:
            task = asyncio.create_task(client.completions.create(model="target", prompt=PROMPT, **ENDLESS))
            await asyncio.to_thread(until, lambda: not idle(ai))
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(cancelled())
    until(lambda: idle(ai))


def test_what_a_newer_request_ended_is_not_sent_again(chat_server):
    """It would end the newer one, which would then be sent again, too."""
    statuses = []
    with client_of(chat_server) as ai:
        ai._client.event_hooks["response"] = [lambda response: statuses.append(response.status_code)]
        session = {"model": "target", "prompt": PROMPT, "temperature": 1}
        endless = {**ENDLESS, "extra_body": {**ENDLESS["extra_body"], "session": "one"}}
        with ThreadPoolExecutor(1) as older:
            ended = older.submit(ai.completions.create, **session, **endless)
            until(lambda: not idle(ai))
            assert ai.completions.create(**session, max_tokens=4, extra_body={"session": "one"}).choices[0].text
            with pytest.raises(openai.ConflictError):
                ended.result(60)
    assert statuses.count(409) == 1


def test_refusals_are_the_clients_errors(ai):
    with pytest.raises(openai.BadRequestError) as refused:
        ai.completions.create(model="target", prompt=PROMPT, temperature=-1)
    assert (refused.value.param, refused.value.type) == ("temperature", "invalid_request_error")
    with pytest.raises(openai.NotFoundError):
        ai.completions.create(model="gpt-9", prompt=PROMPT)
    with pytest.raises(openai.NotFoundError):
        ai.embeddings.create(model="target", input="x")


def test_keys():
    with serving(access=Access("127.0.0.1", ("k" * 20,))) as server:
        with client_of(server) as client:
            assert client.models.list().data
        with client_of(server) as client, pytest.raises(openai.AuthenticationError):
            client.with_options(api_key="wrong").models.list()
