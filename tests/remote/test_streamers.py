"""Every kind of engine, asked with its own fields; of those that cannot run here, stand-ins."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("httpx")

from codespec import Completer, Config, Limits, Request, Sampling
from codespec.config_sections import REMOTE_KINDS
from codespec.engine.engine import add_note
from codespec.grammar import Grammar
from codespec.models.registry import EMBEDDED_TARGET
from codespec.protocols import Snippet
from codespec.remote.address import Address
from codespec.remote.connection import Connection
from codespec.remote.errors import Refused
from codespec.remote.load import about_speculation
from codespec.remote.scoring.scoring_engine import SCORERS
from codespec.remote.streaming.asked import family_named
from codespec.remote.streaming.streamers import STREAMERS
from codespec.remote.streaming.streaming_engine import StreamingEngine
from tests.present import present
from tests.remote.faulty_engine import running
from tests.remote.stand_ins import KINDS, StandIn

CONFIG = replace(Config(), max_tokens=24, time_budget_ms=0, grammar="none", gate="off")
PREFIX, SUFFIX = "def one():\n    ", "\n\n\nprint(one())\n"
REQUEST = Request(PREFIX + SUFFIX, len(PREFIX), "python", "/w/main.py", workspace="/w")


@contextmanager
def at(stand_in: StandIn, **options: Any) -> Iterator[StreamingEngine]:
    with running() as faulty:
        faulty.answers = stand_in.answers
        engine = StreamingEngine(Connection(Address(faulty.url), silence_s=60.0), stand_in.kind, **options)
        try:
            yield engine
        finally:
            engine.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_completion(kind: str):
    stand_in = StandIn(kind)
    with at(stand_in) as engine:
        [found] = Completer(engine, CONFIG).complete(REQUEST)
        assert found.text == "return 1"
        assert engine.statistics.tokens == 3
    [body] = stand_in.bodies
    assert "def one():" in str(body)
    assert "print(one())" in str(body) or kind == "lmstudio"


@pytest.mark.parametrize("kind", KINDS)
def test_sampling_and_seeds(kind: str):
    stand_in = StandIn(kind)
    with at(stand_in) as engine:
        sampling = Sampling(temperature=0.7, top_k=0, seed=5, frequency_penalty=0.5)
        for sample in range(2):
            prompt = engine.vocabulary.tokenize("x = ")
            list(engine.generate(prompt, None, replace(sampling, sample=sample), Limits(9)))
    first, second = (body.get("options", body) for body in stand_in.bodies)
    assert first["temperature"] == 0.7
    assert first.get("max_tokens", first.get("num_predict")) == 9
    if kind != "deepseek":
        assert first != second


@pytest.mark.parametrize("kind", KINDS)
def test_the_length_is_used_up(kind: str):
    with at(StandIn(kind, reason="length")) as engine:
        assert list(engine.generate([120]))[-1].finish_reason == "length"


@pytest.mark.parametrize("kind", KINDS)
def test_more_than_was_asked_for_is_not_taken(kind: str):
    with at(StandIn(kind, texts=("a",) * 50)) as engine:
        chunks = list(engine.generate([120], None, None, Limits(max_tokens=5)))
        assert "".join(each.text for each in chunks) == "aaaaa"
        assert chunks[-1].finish_reason == "length"


@pytest.mark.parametrize("kind", KINDS)
def test_the_grammar_cuts(kind: str):
    with at(StandIn(kind, texts=("12", "3x", "4"))) as engine:
        state = engine.grammar_state(Grammar.from_regex("[0-9]+"))
        chunks = list(engine.generate([120], state))
        assert "".join(each.text for each in chunks) == "123"
        assert chunks[-1].finish_reason == "grammar"
        assert bytes(token for each in chunks for token in present(each.round).tokens) == b"123"


@pytest.mark.parametrize("kind", KINDS)
def test_prompts_are_read_ahead_where_that_is_of_use(kind: str):
    stand_in = StandIn(kind)
    with at(stand_in) as engine:
        engine.prefill([120, 121])
        engine.prefill([120, 121])
    assert len(stand_in.bodies) == (kind in ("ollama", "vllm", "sglang"))


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        ("vllm", "structured_outputs", {"json": {"type": "integer"}}),
        ("sglang", "json_schema", '{"type": "integer"}'),
        ("ollama", "format", {"type": "integer"}),
    ],
)
def test_a_schema_is_sent_along(kind: str, field: str, value: object):
    stand_in = StandIn(kind, texts=("1", "2"))
    with at(stand_in) as engine:
        grammar = Grammar.from_json_schema('{"type": "integer"}')
        [found] = Completer(engine, CONFIG).generate("x", grammar)
        assert found.text == "12"
        assert stand_in.bodies[0][field] == value
        engine.grammar_state(grammar)
        list(engine.generate([120], None))  # another text
    assert field not in stand_in.bodies[1]


@pytest.mark.parametrize(
    ("kind", "field"), [("vllm", "structured_outputs"), ("sglang", "ebnf"), ("llama-cpp-python", "grammar")]
)
def test_gbnf_is_sent_along(kind: str, field: str):
    stand_in = StandIn(kind, texts=("1", "2"))
    text = "root ::= [0-9]+"
    with at(stand_in) as engine:
        list(Completer(engine, CONFIG).generate("x", Grammar.from_gbnf(text)))
    assert stand_in.bodies[0][field] == ({"grammar": text} if kind == "vllm" else text)


def test_a_refused_grammar_is_left_out():
    stand_in = StandIn("sglang", texts=("1", "x"), refuses=("ebnf",))
    with at(stand_in) as engine:
        [found] = Completer(engine, CONFIG).generate("x", Grammar.from_gbnf("root ::= [0-9]+"))
        assert (found.text, found.finish_reason) == ("1", "grammar")
        assert "grammar" in engine.notes[0]
    assert "ebnf" not in stand_in.bodies[1]


@pytest.mark.parametrize("kind", ["openai", "ollama", "llama-cpp-python"])
def test_an_engine_without_suffixes_gets_the_markers_of_its_family(kind: str):
    stand_in = StandIn(kind, refuses=("suffix",), model="starcoder2-7b")
    with at(stand_in) as engine:
        completer = Completer(engine, CONFIG)
        for _ in range(2):
            [found] = completer.complete(REQUEST)
            assert found.text == "return 1"
    assert ["suffix" in body for body in stand_in.bodies] == [True, False, False]
    assert stand_in.bodies[1]["prompt"] == f"<fim_prefix>{PREFIX[:-1]}<fim_suffix>{SUFFIX}<fim_middle> "


def test_an_engine_without_suffixes_and_of_no_known_family():
    stand_in = StandIn("openai", refuses=("suffix",), model="secret-7b")
    with at(stand_in) as engine:
        [found] = Completer(engine, CONFIG).complete(REQUEST)
        assert found.text == "return 1"
        assert "after the cursor" in engine.notes[0]
    assert stand_in.bodies[1]["prompt"] == PREFIX


def test_a_prompt_that_is_too_long_is_shortened():
    def stream(request, stand_in):
        if len(stand_in.bodies[-1]["prompt"]) > 500:
            said = "This model's maximum context length is 200 tokens"
            return request.answer({"error": {"message": said}}, 400)
        return request.pieces(*map(stand_in.line, range(4)))

    stand_in = StandIn("openai", stream=stream)
    with at(stand_in) as engine:
        text = "value = 1\n" * 400
        [found] = Completer(engine, CONFIG).complete(Request(text, len(text), "python", "main.py"))
        assert found.text
    assert 2 < len(stand_in.bodies) < 7


def test_other_files_stand_in_comments():
    stand_in = StandIn("openai")
    with at(stand_in) as engine:
        context = (Snippet("other.py", "def two(): ...\n"),)
        Completer(engine, CONFIG).complete(replace(REQUEST, context=context))
    assert stand_in.bodies[0]["prompt"].startswith("# other.py\n# def two(): ...\n")


@pytest.mark.parametrize("kind", ["vllm", "sglang"])
def test_tokens_of_the_model(kind: str):
    stand_in = StandIn(kind, texts=("return", " 1"))
    with at(stand_in, vocabulary=EMBEDDED_TARGET) as engine:
        [found] = Completer(engine, CONFIG).complete(REQUEST)
        assert found.text == "return 1"
        assert engine.context_length == 2048
        spelled = b"".join(engine.vocabulary.token_bytes(token) for token in stand_in.bodies[0]["prompt"])
        assert b"def one():" in spelled
        assert not engine.vocabulary.end_tokens - set(stand_in.bodies[0]["stop_token_ids"])


def test_tokens_are_not_for_every_engine():
    with at(StandIn("openai"), vocabulary=EMBEDDED_TARGET) as engine:
        assert "remote.vocabulary" in engine.notes[0]
        assert engine.vocabulary.size < 300


def test_the_context_is_in_bytes():
    with at(StandIn("vllm")) as engine:
        assert 2 * 2048 < engine.context_length < 3 * 2048
    with at(StandIn("openai"), context_length=1000) as engine:
        assert 2000 < engine.context_length < 3000
    stand_in = StandIn("ollama")
    with at(stand_in, context_length=1000) as engine:
        list(engine.generate([120]))
    assert stand_in.bodies[0]["options"]["num_ctx"] == 1000


def test_no_model_at_all():
    def nothing(request):
        return request.answer({"object": "list", "data": []})

    with running() as faulty:
        faulty.answers = [nothing]
        connection = Connection(Address(faulty.url))
        with pytest.raises(Refused, match="has no model"):
            StreamingEngine(connection, "openai")
        connection.close()


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("Qwen/Qwen2.5-Coder-7B", "qwen"),
        ("bigcode/starcoder2-3b", "starcoder2"),
        ("starcoder", "starcoder"),
        ("deepseek-ai/deepseek-coder-6.7b-base", "deepseek"),
        ("ibm-granite/granite-8b-code-base", "granite"),
        ("JetBrains/Mellum-4b-base", "mellum"),
        ("ibm-granite/granite-4.0-h-tiny-base", "granite4"),
        ("ByteDance-Seed/Seed-Coder-8B-Base", "seed-coder"),
        ("tiiuae/Falcon-H1-Tiny-Coder-90M", "falcon-h1"),
    ],
)
def test_families_by_name(name: str, family: str):
    found = family_named(name)
    assert found is not None
    assert found.name == family


def test_no_family_by_name():
    assert family_named("gpt-oss-20b") is None
    assert family_named("qwen2.5-7b-instruct") is None


def test_every_kind_of_the_settings_is_known() -> None:
    assert set(REMOTE_KINDS) == {"", *STREAMERS}
    assert set(SCORERS) < set(STREAMERS)


@pytest.mark.parametrize(
    "model",
    [
        "Qwen/Qwen3.5-9B", "Qwen/Qwen3-Coder-Next", "Qwen3-Next-80B-A3B-Instruct", "ibm-granite/granite-4.0-h-small",
        "nvidia/Nemotron-H-8B-Base-8K", "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B", "LiquidAI/LFM2-8B-A1B",
        "tiiuae/Falcon-H1-7B", "moonshotai/Kimi-Linear-48B-A3B",
    ],
)  # fmt: skip
def test_speculation_that_corrupts_hybrids_is_warned_of(model: str) -> None:
    assert "ngram" in about_speculation("vllm", model)
    assert about_speculation("llama-server", model) == about_speculation("sglang", model) == ""


@pytest.mark.parametrize(
    "model", ["Qwen/Qwen2.5-Coder-7B", "Qwen/Qwen3-Coder-30B-A3B", "ibm-granite/granite-4.0-micro", "nemotron-mini-4b"]
)
def test_it_is_not_warned_of_elsewhere(model: str) -> None:
    assert about_speculation("vllm", model) == ""


def test_what_is_noted_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    notes: list[str] = []
    for _ in range(2):
        add_note(notes, "it is asked without TLS")
    assert notes == [each.getMessage() for each in caplog.records] == ["it is asked without TLS"]
