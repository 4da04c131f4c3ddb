"""llama.cpp's tools as peers: what they print is read right, and what they do wrong never stops a benchmark."""

import os
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.decode import llama_cpp as peers
from benchmarks.decode.llama_cpp import LOOKUP, SERVER, SIMPLE, PeerOptions, PeerPrompt, PeerResult, PeerSetting
from codespec.llama.model import Model
from codespec.models.registry import EMBEDDED_TARGET
from tests.present import present

TEXT = "<|fim_prefix|><|fim_suffix|><|fim_middle|>def add(a, b):\n    return"
PROMPT = PeerPrompt(tuple(range(11)), TEXT)
GENERATED = " _is_(1, b, b, b, b"

# Printed by llama.cpp of llama-cpp-python 0.3.36 for the embedded models, greedily, 12 tokens asked for.
SHOWN = f"\n\n{TEXT}{GENERATED}\n\n\n\n".encode()
SIMPLE_LOG = """\
0.00.062.208 I common_speculative_init_result: loading draft model 'codespec/data/draft-python.gguf'
0.00.137.505 I encoded   11 tokens in    0.004 seconds, speed: 2874.314 t/s
0.00.137.531 I decoded   13 tokens in    0.032 seconds, speed:  411.875 t/s
0.00.137.547 I
0.00.137.562 I n_draft   = 4
0.00.137.577 I n_predict = 13
0.00.137.592 I n_drafted = 22
0.00.137.607 I n_accept  = 7
0.00.137.622 I accept    = 31.818%
"""
LOOKUP_LOG = """\
0.00.104.047 I encoded   11 tokens in    0.012 seconds, speed: 2007.025 t/s
0.00.104.048 I decoded   13 tokens in    0.022 seconds, speed:  601.045 t/s
0.00.104.048 I
0.00.104.049 I n_draft      = 4
0.00.104.049 I n_predict    = 13
0.00.104.049 I n_drafted    = 4
0.00.104.050 I t_draft_flat = 0.01 ms
0.00.104.051 I t_draft      = 0.05 ms, 13.25 us per token, 75471.70 tokens per second
0.00.104.051 I n_accept     = 4
0.00.104.052 I accept       = 100.000%
"""
ANSWER: dict[str, Any] = {
    "index": 0, "content": ":  # type: ignore[", "tokens": [32, 227, 320, 623, 32, 1215, 5580, 4781], "stop": True,
    "tokens_predicted": 8, "tokens_evaluated": 11, "stop_type": "limit", "tokens_cached": 38,
    "timings": {
        "cache_n": 0, "prompt_n": 11, "prompt_ms": 3.1, "predicted_n": 8, "predicted_ms": 30.717,
        "predicted_per_token_ms": 4.388, "draft_n": 6, "draft_n_accepted": 5,
    },
}  # fmt: skip


def test_what_speculative_simple_prints():
    result = peers.parse_tool(SHOWN, SIMPLE_LOG, PROMPT, first_is_free=False)
    assert (result.tokens, result.decoded, result.drafted, result.accepted) == (13, 13, 22, 7)
    assert result.decode_ms == pytest.approx(31.563, abs=0.001)
    assert result.text == GENERATED
    assert (result.error, result.ids) == (None, None)


def test_what_lookup_prints():
    result = peers.parse_tool(SHOWN, LOOKUP_LOG, PROMPT, first_is_free=True)
    assert (result.tokens, result.decoded, result.drafted, result.accepted) == (13, 12, 4, 4)
    assert result.decode_ms == pytest.approx(21.629, abs=0.001)
    assert result.text == GENERATED


def test_what_the_server_answers():
    result = peers.parse_answer(ANSWER, PROMPT)
    assert (result.tokens, result.decoded, result.drafted, result.accepted) == (8, 7, 6, 5)
    assert result.decode_ms == 30.717
    assert result.ids == tuple(ANSWER["tokens"])
    without = {**ANSWER, "timings": {"predicted_n": 8, "predicted_ms": 30.717}}
    assert peers.parse_answer(without, PROMPT).drafted == 0


def test_another_prompt_than_was_meant_is_an_error():
    other = replace(PROMPT, tokens=PROMPT.tokens[1:])
    for result in (
        peers.parse_answer(ANSWER, other),
        peers.parse_tool(SHOWN, SIMPLE_LOG, other, first_is_free=False),
        peers.parse_tool(SHOWN, SIMPLE_LOG, replace(PROMPT, text="import"), first_is_free=False),
        peers.parse_tool(SHOWN, "", PROMPT, first_is_free=False),
    ):
        assert result.error
        assert result.as_json().keys() == {"error"}


def test_a_prompt_as_text_gives_its_tokens_again():
    with Model(EMBEDDED_TARGET, vocabulary_only=True) as model:
        vocabulary = model.vocabulary
        tokens = [
            present(vocabulary.fim_token("pre")),
            present(vocabulary.fim_token("mid")),
            *vocabulary.tokenize("def naïve():\n"),
        ]
        prompt = peers.prompt_of(vocabulary, tokens)
        assert prompt.text == "<|fim_prefix|><|fim_middle|>def naïve():\n"
        assert vocabulary.tokenize(prompt.text, special=True) == tokens == list(prompt.tokens)


def test_every_setting_is_one_of_a_kind():
    for draft in (False, True):
        settings = peers.default_settings(draft)
        assert len({(s.mode, s.name) for s in settings}) == len(settings)
        assert any(s.needs_draft for s in settings) == draft
        assert settings[0] == PeerSetting("server plain", "plain", SERVER)


def test_the_best_of_a_mode_is_the_fastest_that_did_not_fail():
    def outcome(mode, name, ms, error=None):
        result = PeerResult(error=error, tokens=10, decoded=10, decode_ms=ms, drafted=4, accepted=1)
        return peers.SettingResult(PeerSetting(mode, name, SIMPLE), (result, result))

    results = [outcome("a", "1", 30), outcome("a", "2", 20), outcome("a", "3", 10, "crashed"), outcome("b", "1", 5)]
    assert {mode: best.setting.name for mode, best in peers.best(results).items()} == {"a": "2", "b": "1"}
    assert results[1].ms_per_token == 2
    assert results[1].acceptance == 0.25


@pytest.fixture
def programs(tmp_path):
    """A folder for fake programs, made by name and Python code, and a file for a model."""
    if os.name != "posix":
        pytest.skip("the fakes are scripts")

    def make(name, code):
        path = tmp_path / name
        path.write_text(f"#!{sys.executable} -S\nimport sys, time\n" + textwrap.dedent(code))
        path.chmod(0o755)
        return tmp_path

    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    make.model = tmp_path / "model.gguf"  # type: ignore[attr-defined]
    return make


FAKE_TOOL = f"""
    text = open(sys.argv[sys.argv.index("--file") + 1]).read()
    if "crash" in text:
        sys.exit("the reason")
    if "hang" in text:
        time.sleep(60)
    sys.stdout.write("\\n\\n" + text[:-1] + {GENERATED!r} + "\\n\\n\\n\\n")
    sys.stderr.write({SIMPLE_LOG!r})
"""


def test_a_tool_that_fails_costs_one_result(programs):
    folder = programs(SIMPLE, FAKE_TOOL)
    prompts = [PROMPT, replace(PROMPT, text="crash"), replace(PROMPT, text="hang"), PROMPT]
    settings = [PeerSetting("simple", "x", SIMPLE), PeerSetting("lookup", "x", LOOKUP)]
    options = PeerOptions(timeout=15)
    found, missing = (peers.measure(each, folder, programs.model, prompts, options) for each in settings)
    errors = [None, "ended with status 1: the reason", "more than 15 s", None]
    assert [result.error for result in found.results] == errors
    assert found.results[0].text == GENERATED
    assert all("no llama-lookup in" in present(result.error) for result in missing.results)


FAKE_SERVER = """
    import json
    from http.server import BaseHTTPRequestHandler, HTTPServer

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.answer(200, {})

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            assert body["top_k"] == 1
            self.answer(*((400, {"error": "refused"}) if body["prompt"] == [0] else (200, ANSWER)))

        def answer(self, status, value):
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(value).encode())

    ANSWER = json.loads(sys.argv[sys.argv.index("--answer") + 1])
    HTTPServer(("127.0.0.1", int(sys.argv[sys.argv.index("--port") + 1])), Handler).serve_forever()
"""


def test_the_server_is_started_once_asked_and_ended(programs):
    import json

    folder = programs(SERVER, FAKE_SERVER)
    setting = PeerSetting("server", "x", SERVER, ("--answer", json.dumps(ANSWER)))
    prompts = [PROMPT, replace(PROMPT, tokens=(0,)), PROMPT]
    found = peers.measure(setting, folder, programs.model, prompts, PeerOptions(timeout=20))
    assert [result.error for result in found.results] == [
        None, 'RuntimeError: status 400: {"error": "refused"}', None,
    ]  # fmt: skip
    assert found.results[0] == peers.parse_answer(ANSWER, PROMPT)


def test_a_server_that_does_not_start_is_an_error_for_every_prompt(programs):
    folder = programs(SERVER, "sys.exit('the reason')")
    settings = [PeerSetting("server", "x", SERVER), PeerSetting("server", "y", SERVER, needs_draft=True)]
    ended, without = (peers.measure(each, folder, programs.model, [PROMPT] * 2) for each in settings)
    assert [result.error for result in ended.results] == ["RuntimeError: ended with status 1: the reason"] * 2
    assert "no draft model" in present(without.results[0].error)


def test_the_environment_is_the_benchmarks_choice(monkeypatch):
    monkeypatch.setenv("GOMP_SPINCOUNT", "1")
    monkeypatch.setenv("LLAMA_ARG_THREADS", "7")
    assert "GOMP_SPINCOUNT" not in peers.environment(None)
    assert peers.environment(20_000)["GOMP_SPINCOUNT"] == "20000"
    assert "LLAMA_ARG_THREADS" not in peers.environment(None)


def test_greedy_and_sampled_requests():
    line = peers._sampling(PeerOptions(temperature=0.8, ignore_eos=True))
    assert line[line.index("--top-k") + 1] == "40"
    assert "--ignore-eos" in line
    assert peers.request(PROMPT, PeerOptions())["top_k"] == 1
    assert peers.request(PROMPT, PeerOptions(grammar='root ::= "a"'))["grammar"] == 'root ::= "a"'


def test_a_peer_has_all_cpus(tmp_path):
    folder = Path(tmp_path)
    (folder / SIMPLE).touch()
    line = peers.command(PeerSetting("simple", "x", SIMPLE), folder, EMBEDDED_TARGET, None, PeerOptions())
    assert line[line.index("--threads-batch") + 1] == str(os.cpu_count())


def test_every_kind_of_n_grams_is_tried():
    lines = [each.arguments for each in peers.default_settings(draft=False) if "--spec-type" in each.arguments]
    kinds = {line[line.index("--spec-type") + 1] for line in lines}
    assert kinds == {"ngram-mod", "ngram-simple", "ngram-map-k", "ngram-map-k4v", "ngram-cache"}
