"""Texts of a real llama-server: the same as here, held to grammars, cut off at once."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("httpx")

from typing import Any

from codespec import Completer, Config, Limits, LocalEngine, Request, Sampling
from codespec.completion.cache import CompletionCache
from codespec.completion.prompt.prompt import Prompts
from codespec.draft.sequence import common_prefix
from codespec.engine.engine import Engine
from codespec.grammar import Grammar
from codespec.llama.context import Context
from codespec.llama.model import Model
from codespec.models.registry import EMBEDDED_TARGET
from codespec.protocols import Chunk, Snippet
from codespec.remote.address import Address
from codespec.remote.connection import Connection
from codespec.remote.streaming.streaming_engine import StreamingEngine
from tests.present import present
from tests.remote.faulty_engine import until
from tests.remote.real_llama_server import RunningServer, needs_server, running

pytestmark = needs_server

TEXT = "import os\n\n\ndef main(argv):\n    if not argv:\n        raise \n    return os.path.join(*argv)\n"
BASE = replace(Config(), max_tokens=24, time_budget_ms=0, grammar="none", gate="off")
ROOT = Path(__file__).parents[2]
NOISE = 0.15
"""Of logits, between two programs: 200 prompts had differences at distances of 0.0006 to 0.077."""
END = 0
"""The token with which the embedded target ends a text."""
COUNT = int(os.environ.get("CODESPEC_COUNT", "12"))


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with running() as found:
        yield found


def engine_at(server: RunningServer, **options) -> StreamingEngine:
    return StreamingEngine(Connection(Address(server.url)), "llama-server", **options)


@pytest.fixture(scope="module")
def texts(server: RunningServer) -> Iterator[StreamingEngine]:
    found = engine_at(server)
    yield found
    found.close()


@pytest.fixture(scope="module")
def tokens(server: RunningServer) -> Iterator[StreamingEngine]:
    found = engine_at(server, vocabulary=EMBEDDED_TARGET)
    yield found
    found.close()


@pytest.fixture(scope="module")
def local() -> Iterator[LocalEngine]:
    found = LocalEngine(EMBEDDED_TARGET, context_length=4096)
    yield found
    found.close()


@pytest.fixture(params=["texts", "tokens"])
def either(request: pytest.FixtureRequest) -> StreamingEngine:
    return request.getfixturevalue(request.param)


def whole(chunks: list[Chunk]) -> str:
    return "".join(each.text for each in chunks)


def prompt_at(engine: Engine, index: int) -> list[int]:
    """A prompt at a place of this project's own files."""
    files = sorted((ROOT / "codespec").rglob("*.py"))
    text = files[index * 7 % len(files)].read_text("utf-8")
    lines = text.splitlines(keepends=True)
    at = sum(map(len, lines[: 3 + index * 13 % max(4, len(lines))]))
    return Prompts(engine.vocabulary, engine.fim_format()).prompt(text[:at], text[at : at + 2000], "file.py", 900)


def tokens_of(engine: Engine, prompt: list[int]) -> list[int]:
    chunks = engine.generate(prompt, None, Sampling(), Limits(max_tokens=16))
    return [token for each in chunks for token in present(each.round).tokens]


def test_the_greedy_text_is_the_local_one(tokens: StreamingEngine, local: LocalEngine):
    """Two programs add up in different orders: where two tokens are as good as equal, either may win."""
    different = []
    with Model(EMBEDDED_TARGET) as model, closing(Context(model, context_length=1024)) as context:
        judge = context.sequence()
        for index in range(COUNT):
            prompt = prompt_at(local, index)
            here, there = tokens_of(local, prompt), tokens_of(tokens, prompt)
            if here != there:
                same = common_prefix(here, there)
                judge.rollback(0)
                logits = judge.decode([*prompt, *here[:same]], 1)[0]
                one, other = (each[same] if same < len(each) else END for each in (here, there))
                different.append((index, float(abs(logits[one] - logits[other]))))
    print(len(different), "of", COUNT, "differ; distances of the two best logits:", different)
    assert all(distance < NOISE for _, distance in different)
    assert len(different) <= 1 + COUNT // 5


def test_counts_and_times_are_the_engines(tokens: StreamingEngine):
    prompt = prompt_at(tokens, 0)
    chunks = list(tokens.generate(prompt, None, Sampling(), Limits(max_tokens=8)))
    assert tokens.statistics.tokens == sum(len(present(each.round).tokens) for each in chunks)
    first = tokens.statistics
    assert first.prefill_tokens + first.reused_tokens == len(prompt)
    list(tokens.generate(prompt, None, Sampling(), Limits(max_tokens=8)))
    assert tokens.statistics.prefill_tokens < 8 < tokens.statistics.reused_tokens
    assert tokens.pass_ms(100) > 0


def test_a_prompt_is_read_ahead(either: StreamingEngine):
    prompt = prompt_at(either, 301)
    assert either.prefill(prompt) > 8
    assert either.prefill(prompt) == 0  # it is there
    list(either.generate(prompt, None, Sampling(), Limits(max_tokens=4)))
    assert either.statistics.prefill_tokens <= 8


def test_seeds_give_texts_of_their_own(tokens: StreamingEngine):
    prompt, limits = prompt_at(tokens, 0), Limits(max_tokens=16)
    warm = Sampling(temperature=1.0, seed=7)

    def text(sample: int) -> str:
        return whole(list(tokens.generate(prompt, None, replace(warm, sample=sample), limits)))

    text(0)  # from now on the whole prompt is kept, so that nothing is added up in another order
    several = [text(sample) for sample in (0, 1, 2, 0)]
    assert len(set(several)) > 1
    assert several[0] == several[3]


def test_a_cancelled_text_frees_its_slot(server: RunningServer, either: StreamingEngine):
    took = []
    for _ in range(5):
        flag = threading.Event()
        chunks = either.generate(prompt_at(either, 2), None, Sampling(temperature=1.5), Limits(2000), flag)
        next(chunks)
        assert server.busy()
        flag.set()
        began = time.monotonic()
        rest = list(chunks)
        assert rest[-1].finish_reason in ("cancelled", "stop")
        until(lambda: not server.busy())
        took.append(time.monotonic() - began)
    print("slot free after", [f"{each * 1e3:.0f} ms" for each in took])


def test_another_thread_aborts(server: RunningServer, either: StreamingEngine):
    chunks = either.generate(prompt_at(either, 2), None, Sampling(temperature=1.5), Limits(2000))
    next(chunks)
    threading.Timer(0.05, either.abort).start()
    assert list(chunks)[-1].finish_reason in ("cancelled", "stop")
    until(lambda: not server.busy())


def test_a_closed_text_frees_its_slot(server: RunningServer, either: StreamingEngine):
    chunks: Any = either.generate(prompt_at(either, 2), None, Sampling(temperature=1.5), Limits(2000))
    next(chunks)
    chunks.close()
    until(lambda: not server.busy())


def test_the_time_is_over(server: RunningServer, either: StreamingEngine):
    chunks = list(either.generate(prompt_at(either, 2), None, Sampling(temperature=1.5), Limits(3000, 60.0)))
    assert chunks[-1].finish_reason in ("time", "stop")
    until(lambda: not server.busy())


def test_a_grammar_is_kept_to(either: StreamingEngine):
    """From the text's start the engine itself is told the grammar; nothing is cut."""
    grammar = Grammar.from_gbnf('root ::= "[" [0-9]+ ("," [0-9]+)* "]"')
    completer = Completer(either, replace(BASE, temperature=0.8))
    [found] = completer.generate("numbers = ", grammar, limits=Limits(max_tokens=40))
    assert found.text.startswith("[")
    assert set(found.text) <= set("[0123456789,]")


def test_a_schema_is_kept_to(either: StreamingEngine):
    schema = '{"type": "object", "properties": {"a": {"type": "integer", "maximum": 99}}, "required": ["a"]}'
    completer = Completer(either, BASE)
    [found] = completer.generate("", Grammar.from_json_schema(schema), limits=Limits(max_tokens=60))
    assert found.text.startswith("{")


def test_a_grammar_that_the_engine_does_not_know_cuts(either: StreamingEngine):
    grammar = Grammar.from_regex("[a-z ]{3}[0-9]+")
    [found] = Completer(either, BASE).generate("def main(", grammar, limits=Limits(max_tokens=20))
    assert found.finish_reason in ("grammar", "length")


def judged(language: str, text: str) -> bool:
    """Whether the language's own parser takes a document."""
    if language == "python":
        try:
            compile(text, "file.py", "exec")
        except SyntaxError:
            return False
        return True
    command = ["node", "--check", "-"] if language == "javascript" else ["gofmt", "-e"]
    return subprocess.run(command, input=text.encode(), capture_output=True, check=False).returncode == 0


PLACES = {
    "python": (
        "import os\n\n\ndef total(numbers):\n    result = 0\n    for number in numbers:\n        number += 1\n        ",
        "\n    return result\n\n\nprint(total([1, 2, 3]))\n",
    ),
    "javascript": (
        "function total(numbers) {\n  let result = 0;\n  for (const number of numbers) {\n    ",
        "\n  }\n  return result;\n}\n\nconsole.log(total([1, 2, 3]));\n",
    ),
    "go": (
        "package main\n\nfunc total(numbers []int) int {\n\tresult := 0\n\tfor _, number := range numbers {\n\t\t",
        "\n\t}\n\treturn result\n}\n",
    ),
}
TOOLS = {"javascript": "node", "go": "gofmt"}


@pytest.mark.parametrize("language", PLACES)
def test_completions_fit(either: StreamingEngine, language: str):
    if (tool := TOOLS.get(language)) and shutil.which(tool) is None:
        pytest.skip(f"no {tool}")
    config = replace(Config(), max_tokens=48, time_budget_ms=0, temperature=0.9)
    prefix, suffix = PLACES[language]
    said = 0
    for seed in range(12):
        completer = Completer(either, replace(config, seed=seed))
        typed = prefix + "res"[: seed % 4]
        for each in completer.complete(Request(typed + suffix, len(typed), language, f"file.{language[:2]}")):
            said += bool(each.text)
            if each.text:
                assert each.report["grammar"].startswith(language)
                assert judged(language, typed + each.text + suffix), typed + "|" + each.text
    print(language, said, "of 12 say something")
    assert said


def test_the_word_before_the_cursor_goes_on(either: StreamingEngine):
    """It is in the state, for engines that write it again; an engine that cannot is given it as its beginning."""
    prefix = TEXT[: TEXT.index("    return")] + "    retu"
    [found] = Completer(either, BASE).complete(Request(prefix + "\n", len(prefix), "python", "main.py"))
    assert found.backed_up
    assert found.text.startswith("rn")


def test_what_is_typed_along_changes_little(either: StreamingEngine):
    """The engine reads the new end of the prompt only."""
    completer = Completer(either, replace(BASE, max_tokens=4))
    prefix, suffix = PLACES["python"]
    typed = "result += number"
    read = []
    for end in range(len(typed) + 1):
        text = prefix + typed[:end]
        completer.complete(Request(text + suffix, len(text), "python", "main.py"))
        read.append(either.statistics.prefill_tokens)
    assert max(read[1:]) < 60


def test_typed_along_and_ahead(either: StreamingEngine):
    """What is typed along is answered from memory, and what comes behind a completion is read ahead."""
    completer, cache = Completer(either, BASE), CompletionCache()
    prefix, suffix = (
        "def area(width, height):\n    return width * height\n\n\ndef sides(width, height):\n    return ",
        "\n",
    )
    request = Request(prefix + suffix, len(prefix), "python", "main.py")
    found = completer.complete(request)
    cache.store("main.py", request, found)
    text = found[0].text
    assert text
    for typed in range(1, len(text)):
        along = Request(prefix + text[:typed] + suffix, len(prefix) + typed, "python", "main.py")
        [rest] = present(cache.find("main.py", along))
        assert rest.text == text[typed:]
    accepted = prefix + text + "\n"
    behind = Request(accepted + suffix, len(accepted), "python", "main.py")
    completer.prefill(behind)
    completer.complete(behind)
    assert either.statistics.prefill_tokens <= 4


def test_other_files_and_the_path_are_sent():
    context = (Snippet("other.py", "def helper(numbers):\n    return sum(numbers)\n"),)
    request = Request("import other\n\nother.\n", 20, "python", "/w/main.py", workspace="/w", context=context)
    with running("-b", "256") as server, closing(engine_at(server)) as engine:  # beside a larger batch is no room
        completer = Completer(engine, BASE)
        completer.complete(request)
        more = engine.statistics.prefill_tokens + engine.statistics.reused_tokens
        completer.complete(replace(request, context=()))
        assert engine.statistics.prefill_tokens + engine.statistics.reused_tokens < more - 8


def test_a_long_document_is_sent_in_part(either: StreamingEngine):
    text = "value = 1  # ä€🦙\n" * 4000
    [found] = Completer(either, BASE).complete(Request(text + "va", len(text) + 2, "python", "main.py"))
    assert found.finish_reason in ("stop", "length")


def test_alternatives(either: StreamingEngine):
    prefix, suffix = PLACES["python"]
    request = Request(prefix + suffix, len(prefix), "python", "main.py", count=3)
    found = Completer(either, BASE).complete(request)
    assert len({each.text for each in found}) == len(found) > 1


def test_it_says_what_it_is(either: StreamingEngine, server: RunningServer):
    about: Any = either.about
    assert about == {
        "remote": {
            "kind": "llama-server",
            "url": server.url,
            "model": about["remote"]["model"],
            "mode": "stream",
        }
    }
    assert either.name == "target"
    assert Completer(either, BASE).status(["python"])["remote"]["kind"] == "llama-server"
