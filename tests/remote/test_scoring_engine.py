"""Scoring engines: the text is that of the target on this machine, whatever is drafted; with stand-ins for engines."""

import itertools
import threading
import traceback
from contextlib import closing, contextmanager

import numpy as np
import pytest

from tests import permuted

pytest.importorskip("httpx")

from typing import Any

from codespec import Grammar, LocalEngine, Sampling
from codespec.draft.costs import CostCurve
from codespec.draft.storage.profiles import Profiles
from codespec.languages import by_id
from codespec.models.registry import EMBEDDED, EMBEDDED_TARGET
from codespec.protocols import CodespecError, Limits
from codespec.remote.address import Address
from codespec.remote.connection import Connection
from codespec.remote.errors import Refused
from codespec.remote.scoring.scoring_engine import ScoringEngine
from tests.remote.faulty_engine import until
from tests.remote.scoring import CODE, PROMPTS, state_of, text_of, tokens_of
from tests.remote.scoring_stand_ins import StandIn

KINDS = ("vllm", "sglang")
JSON = Grammar.from_json_schema(
    '{"type": "object", "properties": {"name": {"type": "string"}, "sizes": {"type": "array", "items": '
    '{"type": "integer"}}}, "required": ["name", "sizes"], "additionalProperties": false}'
)


@pytest.fixture(scope="module")
def local():
    engine = LocalEngine(EMBEDDED_TARGET, exact=True)
    yield engine
    engine.close()


@pytest.fixture(scope="module", params=KINDS)
def stand_in(request):
    server = StandIn(request.param, EMBEDDED_TARGET)
    yield server
    server.close()


@contextmanager
def connected(server, kind=None, vocabulary=EMBEDDED_TARGET, **options):
    connection = Connection(Address(server.url))
    try:
        engine = ScoringEngine(connection, kind or server.kind, vocabulary, **options)
        try:
            yield engine
        finally:
            engine.close()
    finally:
        connection.close()


@pytest.fixture
def engine(stand_in):
    stand_in.delay_s = 0.0
    stand_in.may_answer.set()
    with connected(stand_in) as engine:
        yield engine


def with_drafts(engine, language="python"):
    engine.drafts.choose(engine.drafts.find("auto", by_id(language)))
    assert engine.drafts.chosen is not None
    return engine


@pytest.mark.parametrize("language", PROMPTS)
def test_greedy_text_is_the_local_targets(local, engine, language):
    prompt, grammar = PROMPTS[language], Grammar.load(language)
    for state in (lambda engine: None, lambda engine: state_of(engine, grammar, prompt)):
        expected = text_of(local, prompt, state(local))
        assert text_of(engine, prompt, state(engine)) == expected
        assert text_of(with_drafts(engine, language), prompt, state(engine)) == expected
        engine.drafts.choose(None)


def test_a_schema_whose_tokens_are_seldom_among_the_best(local, engine):
    prompt = "def main():\n    return "
    expected = text_of(local, prompt, local.grammar_state(JSON))
    assert text_of(with_drafts(engine), prompt, engine.grammar_state(JSON)) == expected


@pytest.mark.parametrize("seed", range(4))
def test_sampled_text_is_the_local_targets_as_far_as_it_is_decided(local, engine, seed):
    sampling = Sampling(temperature=0.7, seed=seed)
    expected, _ = text_of(local, PROMPTS["python"], sampling=sampling)
    found, ended = text_of(with_drafts(engine), PROMPTS["python"], sampling=sampling)
    assert found == expected[: len(found)]
    # An engine that names as many as are wanted leaves nothing open.
    assert found == expected or (ended == "grammar" and engine._kind == "vllm")
    assert len(found) > 3


def test_drafts_save_requests(local, engine):
    with_drafts(engine)
    engine.costs.fixed = True
    text_of(engine, CODE, count=48)
    assert engine.statistics.accepted > 12
    assert engine.statistics.target_calls < 36


@pytest.mark.parametrize("text", [CODE, PROMPTS["python"], PROMPTS["rust"]])
def test_one_request_for_each_proposal_and_one_stream_for_what_is_between_two(engine, stand_in, text):
    before = len(stand_in.asked)
    prompt = tokens_of(with_drafts(engine), text)
    proposed = [bool(chunk.round.proposed) for chunk in engine.generate(prompt, limits=Limits(max_tokens=24))]
    streamed = ["stream" in body for _, body in stand_in.asked[before:]]
    runs = [(each, len(list(rounds))) for each, rounds in itertools.groupby(proposed)]
    assert streamed == [not each for each, length in runs for _ in range(length if each else 1)]


def test_a_text_without_drafts_is_one_request(local, engine, stand_in):
    before = len(stand_in.asked)
    assert text_of(engine, CODE, count=20, speculate=False) == text_of(local, CODE, count=20)
    assert len(stand_in.asked) - before == 1


def test_a_stream_of_which_no_more_is_wanted_is_closed(engine, stand_in):
    prompt, streamed, left = tokens_of(engine, CODE), stand_in.streamed, stand_in.left
    for chunk in engine.generate(prompt, limits=Limits(max_tokens=500), speculate=False):
        assert chunk.round.tokens
        if engine.statistics.tokens == 3:
            break
    until(lambda: stand_in.left > left)
    assert stand_in.streamed < streamed + 400


def test_sampled_text_is_not_followed(engine, stand_in):
    before = len(stand_in.asked)
    text_of(engine, CODE, count=4, sampling=Sampling(temperature=0.7, seed=1))
    assert not any("stream" in body for _, body in stand_in.asked[before:])


@pytest.mark.parametrize("kind", KINDS)
def test_an_engine_that_refuses_streams_is_asked_for_one_a_text(local, kind):
    with closing(StandIn(kind, EMBEDDED_TARGET, streams=False)) as server, connected(server) as engine:
        before = len(server.asked)
        assert text_of(engine, CODE, count=12, speculate=False) == text_of(local, CODE, count=12)
        assert len(server.asked) - before == 1 + 12


def test_a_token_costs_less_than_a_request_only_where_it_is_streamed(engine):
    def cost(sampling):
        text_of(engine, CODE, count=1, sampling=sampling)
        engine.costs.replace(CostCurve((0,), (1, 2), ((1000.0, 1100.0),)))
        return engine.costs.kept(0)[1]

    assert cost(Sampling(temperature=0.7)) == 1000.0
    assert cost(Sampling()) < 1000.0


def test_a_prefill_lets_the_engine_read_once(engine, stand_in):
    prompt = tokens_of(engine, CODE)
    before = len(stand_in.asked)
    assert engine.prefill(prompt) == len(prompt)
    assert engine.prefill(prompt) == 0
    assert len(stand_in.asked) == before + 1
    body = stand_in.asked[-1][1]
    # Of a text that vLLM has whole it reads the last token again, and what is known of that is wanted then.
    assert body.get("prompt") == prompt[:-1] if stand_in.kind == "vllm" else body["input_ids"] == prompt
    assert not {"prompt_logprobs", "logprobs", "return_logprob"} & set(body)


def test_abort_ends_a_request_that_waits(engine, stand_in):
    stand_in.may_answer.clear()
    ended = []
    for number, stop in enumerate(("abort", "cancel", "prefill")):
        flag = threading.Event()

        def once_it_waits(count=number + 1, end=engine.abort if stop == "abort" else flag.set):
            until(lambda: stand_in.waiting == count)
            end()

        thread = threading.Thread(target=once_it_waits)
        thread.start()
        if stop == "prefill":
            engine.prefill(tokens_of(engine, "x = 1\n"), flag)
        else:
            ended.append(text_of(engine, CODE, cancel=flag)[1])
        thread.join()
    assert ended == ["cancelled", "cancelled"]
    assert stand_in.waiting == 3, "none was answered"
    stand_in.may_answer.set()
    assert text_of(engine, CODE, count=4)[1] == "length"


def test_a_full_context_ends_the_text(stand_in):
    with connected(stand_in, context_length=64) as engine:
        prompt = tokens_of(engine, CODE)[:50]
        found, reason = text_of(with_drafts(engine), prompt, count=40)
        assert reason == "length"
        assert 8 < len(found) < 15
        with pytest.raises(CodespecError, match=r"remote\.context"):
            list(engine.generate(tokens_of(engine, CODE * 2), limits=Limits(max_tokens=4)))


def test_what_it_says_of_itself(engine, stand_in):
    about = engine.about["remote"]
    assert about["kind"] == stand_in.kind
    assert about["url"] == stand_in.url
    assert about["model"] == engine.name == "stand-in"
    assert about["round_trip_ms"] > 0
    assert engine.context_length == stand_in.length
    assert (engine.threads, engine.choices) == (0, {})


def test_the_target_has_no_adapters_here(engine):
    engine.use_adapter(None)
    assert engine.adapter_problem == ""


def test_repeat_penalties_are_refused(engine):
    with pytest.raises(CodespecError, match="repeat_penalty"):
        text_of(engine, CODE, sampling=Sampling(repeat_penalty=1.2))


def test_requests_are_measured_once(stand_in, tmp_path):
    stand_in.delay_s = 0.02
    profiles = Profiles(tmp_path)
    with connected(stand_in, profiles=profiles) as engine:
        calls = iter(range(5))
        assert not engine.measure(lambda: next(calls, None) is not None)
        assert engine.measure(lambda: True)
        assert engine.costs.measured
        costs = engine.costs.kept(0)
        assert costs[2] >= 20
        assert costs[32] < 16 * costs[2]  # the way there and back is in it
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"127.0.0.1" not in kept
    with connected(stand_in, profiles=profiles) as engine:
        before = len(stand_in.asked)
        assert engine.measure(lambda: True)
        assert len(stand_in.asked) == before
    stand_in.delay_s = 0.0


@pytest.mark.parametrize("wrong", ["model", "context"])
def test_settings_that_do_not_fit_are_refused(stand_in, wrong):
    options: dict[str, dict[str, Any]] = {"model": {"model": "nobody"}, "context": {"context_length": 1 << 20}}
    with pytest.raises(Refused, match=f"remote.{wrong}") as caught, connected(stand_in, **options[wrong]):
        pass
    engines = {frame.f_locals.get("self") for frame, _ in traceback.walk_tb(caught.tb)}
    [refused] = [each for each in engines if isinstance(each, ScoringEngine)]
    assert refused.model.pointer is None  # or every try would hold its vocabulary for ever


def test_another_vocabulary_is_refused(stand_in, tmp_path):
    other = permuted.write(EMBEDDED_TARGET, tmp_path / "other.gguf")
    with pytest.raises(Refused, match=r"remote\.vocabulary"), connected(stand_in, vocabulary=other):
        pass


def test_another_kind_is_refused(stand_in):
    other = next(kind for kind in KINDS if kind != stand_in.kind)
    with pytest.raises(Refused, match=r"remote\.kind"), connected(stand_in, kind=other):
        pass


def test_a_draft_of_a_few_tokens_is_no_vocabulary(stand_in, tmp_path):
    trimmed = permuted.write_trimmed(EMBEDDED / "draft-c.gguf", tmp_path / "draft.gguf", np.arange(2_000))
    with pytest.raises(Refused, match="name the target"), connected(stand_in, vocabulary=trimmed):
        pass
