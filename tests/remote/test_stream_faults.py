"""What goes wrong with a stream once it has begun."""

from __future__ import annotations

import itertools
import json
import random
import threading
import time
from collections.abc import Callable, Iterator

import pytest

pytest.importorskip("httpx")

from codespec.grammar import Grammar
from codespec.protocols import Limits
from codespec.remote.address import Address
from codespec.remote.connection import Connection
from codespec.remote.errors import Away, Refused
from codespec.remote.streaming.streaming_engine import StreamingEngine
from tests.remote.faulty_engine import FaultyEngine, Request, running

PROMPT = [120, 61]
KINDS = ("llama-server", "ollama", "openai", "mistral")


def line(kind: str, text: str, reason: str | None = None) -> bytes:
    if kind == "ollama":
        return json.dumps({"response": text, "done": bool(reason), "done_reason": reason or ""}).encode() + b"\n"
    if kind == "llama-server":
        found = {"content": text, "stop": bool(reason), "stop_type": "limit" if reason == "length" else "eos"}
    else:
        choice = {"delta": {"content": text}} if kind == "mistral" else {"text": text}
        found = {"choices": [{"index": 0, "finish_reason": reason, **choice}]}
    return b"data: " + json.dumps(found).encode() + b"\n\n"


@pytest.fixture
def faulty() -> Iterator[FaultyEngine]:
    with running() as found:
        yield found


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def engine(faulty: FaultyEngine, kind: str, request: pytest.FixtureRequest) -> Iterator[StreamingEngine]:
    """It may be silent for 60 seconds, or for as many as a test says."""
    faulty.answers = [lambda request: request.answer({"data": [{"id": "m"}], "models": [{"name": "m"}]})]
    found = StreamingEngine(Connection(Address(faulty.url), silence_s=getattr(request, "param", 60.0)), kind, model="m")
    yield found
    found.close()


def streams(faulty: FaultyEngine, *pieces: bytes, end: bool = True) -> None:
    faulty.answers = [lambda request: request.pieces(*pieces, end=end)]


def said(engine: StreamingEngine, **options) -> tuple[str, str | None]:
    chunks = list(engine.generate(PROMPT, **options))
    return "".join(each.text for each in chunks), chunks[-1].finish_reason


def test_a_whole_stream(faulty, engine, kind):
    streams(faulty, line(kind, "a"), line(kind, "b"), line(kind, "", "stop"))
    assert said(engine) == ("ab", "stop")


def test_it_drops(faulty, engine, kind):
    streams(faulty, line(kind, "a"), end=False)
    with pytest.raises(Away, match="broke"):
        said(engine)


def test_it_ends_without_an_end(faulty, engine, kind):
    streams(faulty, line(kind, "a"))
    with pytest.raises(Away, match="broke off"):
        said(engine)


def test_it_is_empty(faulty, engine, kind):
    streams(faulty)
    with pytest.raises(Away, match="broke off"):
        said(engine)


@pytest.mark.parametrize("engine", [1.5], indirect=True)
def test_it_is_silent(faulty, engine, kind):
    def hangs(request: Request) -> None:
        request.pieces(line(kind, "a"), end=False)
        request.hang()

    faulty.answers = [hangs]
    with pytest.raises(Away, match="in time"):
        said(engine)


def test_it_is_slow(faulty, engine, kind):
    def slow(request: Request) -> None:
        request.pieces(end=False)
        for text in "abcd":
            time.sleep(0.05)
            for at in range(0, len(line(kind, text)), 7):  # lines come in parts
                request.piece(line(kind, text)[at : at + 7])
        request.piece(line(kind, "", "stop"))

    faulty.answers = [slow]
    assert said(engine) == ("abcd", "stop")


def test_its_time_is_over(faulty, engine, kind):
    def slow(request: Request) -> None:
        request.pieces(line(kind, "a"), end=False)
        request.hang()

    faulty.answers = [slow]
    assert said(engine, limits=Limits(time_budget_ms=3000)) == ("a", "time")
    assert faulty.closed.wait(60)


def endless(piece: bytes) -> Callable[[Request], None]:
    def answer(request: Request) -> None:
        request.pieces(end=False)
        while not request.engine.over.is_set():
            request.piece(piece)

    return answer


def test_it_does_not_end(faulty, engine, kind):
    faulty.answers = [endless(line(kind, "ab"))]
    assert said(engine, limits=Limits(max_tokens=7)) == ("ab" * 7, "length")
    assert faulty.closed.wait(60)


def test_it_says_nothing_without_end(faulty, engine, kind):
    faulty.answers = [endless(b"\n" if kind == "ollama" else b": ping\n\n")]
    with pytest.raises(Away, match="sends events without text"):
        said(engine)
    assert faulty.closed.wait(60)


def test_a_line_is_huge(faulty, engine, kind):
    streams(faulty, line(kind, "a" * 100_000), line(kind, "b"), line(kind, "", "stop"))
    text, reason = said(engine, limits=Limits(max_tokens=8))
    assert reason == "length"
    assert len(text) == 100_000  # one piece; no second one is taken


@pytest.mark.parametrize("garbage", [b"<html>502</html>\n", b"data: {\n\n", b"data: 17\n\n", b"{\n", b"\xff\xfe\n"])
def test_it_sends_garbage(faulty, engine, kind, garbage):
    streams(faulty, line(kind, "a"), garbage, line(kind, "b"), line(kind, "", "stop"))
    with pytest.raises(Away, match="holds what is no"):
        said(engine)


def test_half_a_character(faulty, engine, kind):
    whole = line(kind, "@").replace(b"@", "ä".encode())
    half = line(kind, "b@").replace(b"@", b"\xc3")
    streams(faulty, whole, half, line(kind, "c"), line(kind, "", "stop"))
    assert said(engine) == ("äb", "length")


@pytest.mark.parametrize("error", ["the disk is full", {"message": "the disk is full", "code": 500}])
def test_an_error_within_the_stream(faulty, engine, kind, error):
    failed = json.dumps({"error": error}).encode()
    streams(faulty, line(kind, "a"), failed + b"\n" if kind == "ollama" else b"data: " + failed + b"\n\n")
    with pytest.raises(Away, match="the disk is full"):
        said(engine)


def test_fields_of_other_types(faulty, engine, kind):
    odd = {"choices": [], "usage": 3, "timings": [], "content": 7, "response": None, "tokens": "x"}
    piece = json.dumps(odd).encode()
    streams(faulty, piece + b"\n" if kind == "ollama" else b"data: " + piece + b"\n\n", line(kind, "a", "stop"))
    assert said(engine) == ("a", "stop")


def test_the_grammar_closes_the_stream(faulty, engine, kind):
    faulty.answers = [endless(line(kind, "12x"))]
    state = engine.grammar_state(Grammar.from_regex("[0-9]+"))
    engine.grammar_state(Grammar.from_regex("a"))
    assert said(engine, grammar=state) == ("12", "grammar")
    assert faulty.closed.wait(60)


def test_another_thread_stops_it(faulty, engine, kind):
    faulty.answers = [hanging(kind)]
    chunks = engine.generate(PROMPT)
    assert next(chunks).text == "a"
    threading.Timer(0.05, engine.abort).start()
    assert [each.finish_reason for each in chunks] == ["cancelled"]
    assert faulty.closed.wait(60)


def hanging(kind: str) -> Callable[[Request], None]:
    def answer(request: Request) -> None:
        request.pieces(line(kind, "a"), end=False)
        request.hang()

    return answer


def test_a_refusal_is_not_asked_again(faulty, engine, kind):
    faulty.answers = [lambda request: request.answer({"error": "no such thing"}, 400)]
    faulty.seen.clear()
    with pytest.raises(Refused, match="no such thing"):
        said(engine)
    assert faulty.asked == 1


def test_the_connection_is_used_again(faulty, engine, kind):
    streams(faulty, line(kind, "a"), line(kind, "", "stop"), *([] if kind == "ollama" else [b"data: [DONE]\n\n"]))
    faulty.ports.clear()
    for _ in range(3):
        assert said(engine) == ("a", "stop")
    assert len(faulty.ports) == 1


def test_streams_that_are_left_give_their_connections_back(faulty: FaultyEngine):
    """At whatever moment: of the few connections there is always one left."""
    faulty.answers = [lambda request: request.pieces(*[b"data: x\n\n"] * 5)]
    connection = Connection(Address(faulty.url), silence_s=60.0)
    chance = random.Random(1)
    for _ in range(80):
        with connection.stream("/v1/completions", {}) as lines:
            for _line in itertools.islice(lines, chance.randrange(12)):
                pass
            time.sleep(chance.random() * 0.002)
    connection.close()
