"""``pydantic-ai``, unchanged: agents whose answers are Pydantic models."""

import asyncio

import openai
import pytest
from pydantic import BaseModel, Field

pytest.importorskip("pydantic_ai", reason="make test installs it")

from pydantic_ai import Agent, NativeOutput
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


class Box(BaseModel):
    width: int = Field(ge=1, le=999)
    sealed: bool


@pytest.fixture
def asked(chat_server):
    """Asks an agent; returns the result."""

    async def ask(prompt, settings, **options):
        async with openai.AsyncOpenAI(base_url=f"{chat_server.url}/v1", api_key="any") as client:
            model = OpenAIChatModel("target", provider=OpenAIProvider(openai_client=client))
            return await Agent(model, **options).run(prompt, model_settings=settings)

    return lambda *arguments, **options: asyncio.run(ask(*arguments, **options))


def test_an_agent_answers_with_a_model(asked):
    settings = {"temperature": 1, "seed": 2, "max_tokens": 200}
    result = asked("A large one", settings, output_type=NativeOutput(Box), instructions="Invent a box.")
    assert isinstance(result.output, Box)
    assert result.usage.output_tokens > 0


def test_an_agent_answers_with_text(asked):
    assert isinstance(asked("Hello", {"max_tokens": 8}).output, str)
