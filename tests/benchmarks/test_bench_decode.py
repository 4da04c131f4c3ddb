"""``python -m benchmarks decode``: a tiny real run, and each of its parts by itself."""

import contextlib
import html
import io
import json
import os
import statistics
import sys
import textwrap
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import codespec
from benchmarks import progress
from benchmarks.commands import main
from benchmarks.decode import decode, trace
from benchmarks.decode import peers as decode_peers
from benchmarks.decode import report as decode_report
from benchmarks.decode.decode import Bench, Measured, Options, Oracle, Sample
from benchmarks.decode.llama_cpp import SERVER, default_settings
from benchmarks.decode.prompts import SETS, Prompt, prompts
from codespec.draft.costs import CostCurve
from codespec.models.registry import EMBEDDED
from codespec.protocols import Round, Sampling
from codespec.speculative.sampling import LogitSampler

TOKENS = 12
FILES = Path(codespec.__file__).parent / "draft"
TINY = ["decode", str(FILES), "--prompts", "1", "--repeats", "1", "--tokens", str(TOKENS)]


def called(arguments):
    """Exit code and standard output."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        code = main(arguments)
    return code, out.getvalue()


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    out = tmp_path_factory.mktemp("decode")
    code, printed = called([*TINY, "--sets", "code,json,code-replayed", "--fixed", "2", "--out", str(out)])
    assert code == 0
    return out, printed


@pytest.fixture(scope="module")
def bench():
    # Made-up costs, which need no measuring.
    curve = CostCurve((0,), (1, 33), ((1.0, 9.0),))
    bench = Bench(Options(draft=EMBEDDED / "draft-python.gguf", tokens=TOKENS, curve=curve))
    yield bench
    bench.close()


def test_a_run_writes_its_figures(tiny):
    out, printed = tiny
    report = json.loads((out / "decode.json").read_text("utf-8"))
    assert report["target"] == "target.gguf"
    assert report["draft"] == "draft-python.gguf"
    assert report["time"] == "measured"
    assert not report["cost_scaled"]
    assert [found["set"] for found in report["sets"]] == ["code", "json", "code replayed"]
    for found in report["sets"]:
        arms = ["target", "combined", *(["forced"] if found["set"] == "json" else []), "ngram", "model", "oracle"]
        assert list(found["arms"]) == [*arms, "fixed 2"]
        assert found["bound"] >= 1
        assert found["arms"]["target"]["speed"] == 1
        for arm, figures in found["arms"].items():
            assert figures["slowest_prompt"] <= figures["speed"]
            assert figures["same_text"].endswith(" of 1")
            [text] = found["texts"]
            [ms] = text["arms"][arm]["ms"]
            assert ms == pytest.approx(text["arms"][arm]["ms_per_token"][0] * (TOKENS - 1), rel=0.01)
        assert f"{found['set']}, T = 0: 1 prompts, each once, {TOKENS} tokens" in printed
        assert f"could give: {found['bound']:.2f}x" in printed


def test_a_run_draws_and_traces(tiny):
    out, printed = tiny
    assert (out / "decode.svg").read_text("utf-8").count(">oracle<") == 3
    page = (out / "decode.html").read_text("utf-8")
    assert page.count("<h3>") == 3
    assert "<script" not in page
    assert "http" not in page.partition("<body>")[0]
    report = json.loads((out / "decode.json").read_text("utf-8"))
    for found in report["sets"]:
        assert html.escape(found["texts"][0]["prompt"]) in page
    if find_spec("matplotlib"):
        assert (out / "decode.png").read_bytes().startswith(b"\x89PNG")
    else:
        assert "-m pip install matplotlib" in printed


def test_modelled_time_is_said_to_be_so_everywhere(tiny, tmp_path):
    costs = str(tiny[0] / "decode.json")
    arguments = ["--sets", "code", "--arms", "combined", "--draft", "none", "--costs", costs, "--out", str(tmp_path)]
    code, printed = called([*TINY, *arguments])
    assert code == 0
    for text in (printed, *((tmp_path / f"decode.{kind}").read_text("utf-8") for kind in ("json", "svg", "html"))):
        assert "modelled time" in text
    report = json.loads((tmp_path / "decode.json").read_text("utf-8"))
    assert report["sets"][0]["share_of_oracle"] is None
    assert report["draft"] is None


def test_a_cost_scaled_model_is_said_to_be_one():
    report = {"cost_scaled": True, "target": "big.gguf", "target_bytes": 1.6e9, "time": "measured", "load_average": 0}
    assert decode_report.labels(report) == [
        "cost-scaled: big.gguf writes the embedded model's text at the cost of a model of 1.6 GB"
    ]
    assert decode_report.labels({**report, "cost_scaled": False}) == []


@pytest.mark.parametrize("name", SETS)
def test_prompts_are_the_same_again_and_fit_their_grammar(bench, name):
    files = decode.default_files()[::3]
    found = prompts(bench.engine, name, files, 2, TOKENS, seed=3)
    assert found == prompts(bench.engine, name, files, 2, TOKENS, seed=3)
    assert found != prompts(bench.engine, name, files, 2, TOKENS, seed=4)
    for prompt in found:
        assert prompt.text
        assert len(prompt.tokens) + TOKENS <= bench.engine.context_length
        assert (prompt.grammar or "none") == (name if name in ("json", "python") else "none")
        prompt.state(bench.engine)  # raises where its grammar refuses what stands before the cursor
        assert prompt.known is None or len(prompt.known) == TOKENS


def test_replayed_text_is_written_whatever_is_proposed(bench):
    [prompt] = prompts(bench.engine, "code replayed", sorted(FILES.glob("*.py")), 1, TOKENS, seed=1)
    assert prompt.known is not None
    wrong = tuple(token + 1 for token in prompt.known)
    for temperature in (0.0, 0.8):
        for arm, known in (("target", None), ("combined", None), ("fixed 3", None), ("oracle", wrong)):
            assert bench.run(prompt, arm, temperature, known).tokens == prompt.known
    sample = bench.run(prompt, "oracle", 0.0, prompt.known)
    assert sum(step.accepted for step in sample.rounds) == sum(len(step.proposed) for step in sample.rounds) > 0


def test_the_oracle_proposes_what_comes():
    oracle = Oracle(range(10), 4)
    sampler = LogitSampler(Sampling(), 0)

    def propose(tokens, more):
        return oracle.propose(tokens, None, sampler, more)

    assert propose([0, 1], lambda confidence: True).tokens == (2, 3, 4, 5)
    assert propose(range(8), lambda confidence: True).tokens == (8, 9)
    assert propose(range(10), lambda confidence: True).tokens == ()
    left = iter([True, True, False])
    assert propose([0], lambda confidence: next(left)).tokens == (1, 2)


def measured_of(texts, prompt=None):
    """Texts by arm, each with its milliseconds; one pass wrote the last two tokens."""
    measured = Measured("code", 0.0, [prompt or Prompt("x.py:1", (1, 2))])
    for arm, (tokens, ms) in texts.items():
        rounds = (Round((tokens[0],)), Round(tuple(tokens[1:]), tuple(tokens[1:-1]), len(tokens) - 2))
        measured.samples[0, arm] = [Sample(ms, tuple(tokens), rounds, (0.1,), {"model": (4, 2)})]
    return measured


def test_the_bound_cuts_a_text_into_the_cheapest_passes():
    curve = CostCurve((0,), (1, 2, 33), ((1.0, 1.2, 100.0),))
    # Five tokens after the first: passes over 2, 2 and 1.
    assert decode._bound(measured_of({"target": (range(6), 5)}), 0, curve) == pytest.approx(5 / 3.4)
    flat = CostCurve((0,), (1, 33), ((2.0, 2.0),))
    assert decode._bound(measured_of({"target": (range(6), 5)}), 0, flat) == pytest.approx(5)


def test_what_is_saved_and_what_of_the_best():
    texts = {"target": (range(6), 10.0), "combined": (range(6), 5.0), "oracle": (range(6), 4.0)}
    found = decode.summarize(measured_of(texts), CostCurve((0,), (1, 33), ((2.0, 2.0),)))
    assert (found["saving"], found["share_of_oracle"], found["share_of_bound"]) == (0.5, 0.833, 0.625)
    assert decode.share(2.0, 0.9) is None
    assert decode.share(0.5, 2.0) == -2


def test_the_interval_holds_the_median():
    values = [1.0, 1.1, 1.3, 0.9, 2.0, 1.2, 1.25]
    low, high = decode.bootstrap(values)
    assert min(values) <= low <= statistics.median(values) <= high <= max(values)
    assert decode.bootstrap(values) == (low, high)
    assert decode.bootstrap([1.5]) == (1.5, 1.5)


def test_a_trace_shows_sources_and_fates_and_escapes():
    class Vocabulary:
        def token_bytes(self, token):
            return [b"<b>", b"\n", b"\xc3", b"\xa9", b"&", b"\x00"][token]

    vocabulary: Any = Vocabulary()
    steps = [
        Round((0,)),
        Round((2, 3, 1), (2, 3, 4), 2, ("model", "ngram", "forced")),
        Round((5, 0), (5,), 1, ("forced",)),
    ]
    shown = trace.rounds(steps, vocabulary)
    assert shown == (
        '<span class="r" title="the prompt&#x27;s own pass">&lt;b&gt;</span>'
        '<span class="r" title="pass 1: 3 proposed, 2 accepted"><b class="m"></b><b class="n">é</b><del>&amp;</del>'
        "<i>⏎</i>\n</span>"
        '<span class="r" title="pass 2: 1 proposed, 1 accepted"><b class="f">�</b>&lt;b&gt;</span>'
    )


ERRORS = [
    (["--peers", "nowhere"], "--peers nowhere: no llama-server there; give the folder"),
    (["--sets", "code,poems"], "no set 'poems'; there are: all, code, json, "),
    (["--arms", "magic"], "no arm 'magic'; there are: all, target, "),
    (["--draft", "none", "--fixed", "2"], "--fixed asks the draft model, and there is none"),
    (["--draft", "none", "--arms", "model"], "the arm 'model' needs a draft model"),
    (["--target", "nonesuch"], "no target model 'nonesuch'"),
    (["README.md"], "README.md: no Python file"),
    (["--sets", "code,json", "Makefile"], "Makefile: no Python file; only the sets code, code-replayed are made of"),
    (["--sets", "code", "nowhere.go"], "nowhere.go: cannot be read"),
    (["nowhere.py"], "nowhere.py: cannot be read"),
    (["--costs", "nowhere.json"], "nowhere.json: no cost curve"),
]


@pytest.mark.parametrize(("arguments", "message"), ERRORS, ids=lambda value: str(value)[:30])
def test_bad_input_is_one_line(arguments, message, capsys):
    assert main(["decode", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert message in captured.err


@pytest.mark.parametrize("arguments", [["--fixed", "0"], ["--fixed", "4-40"], ["--repeats", "0"], ["--tokens", "1"]])
def test_bad_usage(arguments):
    with pytest.raises(SystemExit) as caught:
        main(["decode", *arguments])
    assert caught.value.code == 2


def test_the_few_settings_are_of_the_many():
    assert {(each.mode, each.name) for each in default_settings(draft=True)} > decode_peers.FEW


def test_what_llama_cpp_cannot_do_is_passed_over():
    def reason(**prompt):
        return decode_peers.why_not(Measured("x", 0.0, [Prompt("x", (1,), **prompt)]))

    assert reason() is reason(grammar="json") is reason(grammar="python") is None
    assert "replayed" in reason(known=(1, 2))


PEERS = (("server plain", "plain"), ("server ngram-cache", "default"))

FAKE_SERVER = """
    import json
    from http.server import BaseHTTPRequestHandler, HTTPServer

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.answer({})

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path.startswith("/slots/0?action="):
                return self.answer({})
            assert body["cache_prompt"]
            assert body["ignore_eos"] and body["grammar"].count("root   ::= file") == 1
            count = body["n_predict"]
            timings = {"predicted_n": count, "predicted_ms": 1.0 * (count - 1)}
            seen = len(body["prompt"])
            self.answer({"tokens_evaluated": seen, "timings": timings, "content": "?", "tokens": [0] * count})

        def answer(self, value):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(value).encode())

        def log_message(self, *_):
            pass

    HTTPServer(("127.0.0.1", int(sys.argv[sys.argv.index("--port") + 1])), Handler).serve_forever()
"""


@pytest.mark.skipif(os.name != "posix", reason="the fake is a script")
def test_peers_stand_beside_ours(tmp_path, monkeypatch):
    program = tmp_path / SERVER
    program.write_text(f"#!{sys.executable} -S\nimport sys\n" + textwrap.dedent(FAKE_SERVER))
    program.chmod(0o755)
    monkeypatch.setattr(decode_peers, "FEW", frozenset({*PEERS, ("lookup", "n-max 4")}))
    arguments = ["--sets", "json,code-replayed", "--arms", "combined", "--peers", str(tmp_path)]
    code, printed = called([*TINY, *arguments, "--peer-settings", "few", "--out", str(tmp_path)])
    assert code == 0
    found, replayed = json.loads((tmp_path / "decode.json").read_text("utf-8"))["sets"]
    plain, cache, lookup = found["peers"]["settings"]
    assert plain["ms_per_token"] == 1
    assert plain["same_text"] == "0 of 1"
    ours = found["texts"][0]["arms"]
    assert plain["combined_over_it"] == pytest.approx(1 / plain["ours_around"], rel=1e-2, abs=1e-3)  # rounded
    assert plain["ours_around"] == pytest.approx(sum(found["peers"]["between"][:2]) / 2, rel=1e-2)
    times = ours["target"]["ms_per_token"][0], ours["combined"]["ms_per_token"][0]
    assert plain["speed"] == pytest.approx(times[0] / times[1] / plain["combined_over_it"], rel=1e-2)
    assert "no llama-lookup" in lookup["results"][0]["error"]
    assert found["peers"]["best"].keys() == {"server plain"}
    fastest = found["peers"]["fastest"]
    assert (fastest["mode"], fastest["rounds"]) == ("server plain", decode_peers.ROUNDS)
    assert fastest["interval"][0] <= fastest["combined_over_it"] <= fastest["interval"][1]
    assert "both run again in alternation, 3 times" in printed
    assert found["peers"]["disturbance"]["samples"] == 3 + decode_peers.ROUNDS
    assert cache["acceptance"] is None
    assert found["peers"]["idle"] == {"settings": ["server ngram-cache, default"], "server_ms_per_token": [1, 1]}
    assert "1 of 3 settings proposed nothing and are left out" in printed
    assert "1 of 3 settings failed" in printed
    assert "replayed" in replayed["peers"]["skipped"]
    assert "llama.cpp&#x27;s best" in (tmp_path / "decode.svg").read_text("utf-8")


def test_progress_where_nobody_watches_is_a_line_now_and_then(monkeypatch, capsys):
    say = progress.progress()
    say("1/3")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(progress, "SELDOM_S", 0.0)
    for message in ("2/3", "3/3", ""):
        say(message)
    assert capsys.readouterr().err == "2/3\n3/3\n"
