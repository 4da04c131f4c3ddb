"""Next edits replayed: a model file that writes what it is told, in codespec and in llama.cpp's own server."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, replace
from pathlib import Path

import pytest

pytest.importorskip("gguf")

from benchmarks.commands import main
from benchmarks.edit.case import Case
from benchmarks.edit_speed.arms import ARMS, Bench
from benchmarks.edit_speed.cases import chosen, tokens_of
from benchmarks.edit_speed.edit_speed import SMALL
from benchmarks.edit_speed.peers import selected, settings, title
from benchmarks.edit_speed.replay_model import CONTEXT, ReplayModel
from codespec.draft.costs import LONGEST, CostCurve
from codespec.edits.request import RecentEdit
from codespec.engine.local import LocalEngine
from codespec.models.registry import EMBEDDED_TARGET
from codespec.protocols import CodespecError, Limits, Sampling

SERVERS = Path(os.environ.get("CODESPEC_LLAMA_TOOLS", Path(__file__).parents[2] / ".venv/llama-tools/build/bin"))
CURVE = CostCurve((0,), (1, LONGEST), ((50.0, 82.0),))
CURVE_FILE = Path(__file__).parents[2] / "examples" / "costs-1.5b-amx.json"


def rename(count: int = 24) -> Case:
    """A name that was changed where it comes first."""
    old = "".join(f"    total_{n} = scale(item, {n}) + offset_{n}\n" for n in range(count))
    first = "def measure(item):\n"
    after = "def measure(product):\n"
    recent = (RecentEdit("shop/cart.py", 0, first, after),)
    lines = old.splitlines(keepends=True)
    updated = "".join([*(each.replace("item", "product") for each in lines[:18]), *lines[18:]])
    text = after + old
    offset = len(after) + sum(map(len, lines[:8]))
    return Case("rename", "shop", "shop/cart.py", "python", text, offset, recent, after + updated)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> ReplayModel:
    return ReplayModel(EMBEDDED_TARGET, tmp_path_factory.mktemp("replay") / "replay.gguf", SMALL)


def as_line(case: Case) -> str:
    return json.dumps(asdict(case))


def test_it_writes_what_it_is_told_after_every_prompt(model: ReplayModel) -> None:
    engine = LocalEngine(model.path)
    try:
        for text in (
            "one two three four five six seven\n" * 4,
            "def area(self):\n    return self.width * self.height\n",
        ):
            tokens = engine.vocabulary.tokenize(text)
            model.say(tokens)
            chunks = engine.generate(tokens[:6], None, Sampling(temperature=0.0), Limits(len(tokens) - 6))
            assert [token for chunk in chunks if chunk.round for token in chunk.round.tokens] == tokens[6:]
    finally:
        engine.close()


def test_a_text_that_is_too_long_is_refused(model: ReplayModel) -> None:
    with pytest.raises(CodespecError, match="at most"):
        model.say([5] * CONTEXT)


def test_a_file_of_the_same_shape_is_found_again(model: ReplayModel) -> None:
    written = model.path.stat().st_mtime_ns
    ReplayModel(EMBEDDED_TARGET, model.path, SMALL)
    assert model.path.stat().st_mtime_ns == written


def test_every_arm_writes_the_text_and_drafts_save_passes(model: ReplayModel) -> None:
    bench = Bench(model, CURVE)
    try:
        case = tokens_of(rename(), bench.engine.vocabulary)
        assert case is not None
        bench.prepare(case)
        samples = {arm: bench.run(case, arm) for arm in ARMS}
    finally:
        bench.close()
    assert samples["target"].ms_per_token == pytest.approx(50.0, rel=0.2)
    assert len(samples["oracle"].passes) <= len(samples["all"].passes) < len(case.written) / 5
    assert samples["all"].by_source["window"][1] > len(case.written) / 2
    assert samples["without window"].by_source.get("window", (0, 0)) == (0, 0)


def test_cases_of_more_than_a_window_or_without_a_change_are_left_out(model: ReplayModel) -> None:
    engine = LocalEngine(model.path)
    try:
        vocabulary, case = engine.vocabulary, rename(60)
        same, far = replace(case, updated=case.text), replace(case, updated=case.text + "end\n")
        assert tokens_of(same, vocabulary) is tokens_of(far, vocabulary) is None
        assert len(chosen([same, far, case, case, case], 2, vocabulary)) == 2
    finally:
        engine.close()


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "cases.jsonl").write_text(as_line(rename()) + "\n" + as_line(rename(30)) + "\n")
    line = ["edit-speed", "--cases", str(tmp_path / "cases.jsonl"), "--costs", str(CURVE_FILE), "--out", str(tmp_path)]
    assert main(line) == 0
    assert "share of the oracle's saving" in capsys.readouterr().out
    report = json.loads((tmp_path / "edit-speed.json").read_text())
    assert report["cases"] == len(report["samples"]) == 2
    assert report["modelled"]
    assert report["arms"]["target"]["speed"] == 1.0
    assert 1.0 < report["arms"]["all"]["total"] <= report["arms"]["oracle"]["total"] * 1.05
    assert report["arms"]["oracle"]["total"] <= report["bound"] * 1.05


def test_no_cases(tmp_path: Path) -> None:
    (tmp_path / "cases.jsonl").write_text("")
    assert main(["edit-speed", "--cases", str(tmp_path / "cases.jsonl"), "--costs", str(CURVE_FILE)]) != 0


def test_settings_are_chosen_by_how_they_begin() -> None:
    assert selected("") == settings()
    assert {each.mode for each in selected("server ngram-mod;server ngram-cache")} == {
        "server ngram-mod",
        "server ngram-cache",
    }
    assert len({title(each) for each in settings()}) == len(settings())
    with pytest.raises(CodespecError, match="none begins so"):
        selected("server nothing")


@pytest.mark.tools
@pytest.mark.skipif(not (SERVERS / "llama-server").is_file(), reason="make llama-server")
def test_llama_cpp_writes_the_same(tmp_path: Path) -> None:
    (tmp_path / "cases.jsonl").write_text(as_line(rename(30)) + "\n" + as_line(rename()) + "\n")
    chosen_settings = "server ngram-simple, size-n 4, size-m 15;server ngram-mod, n-match 8, n-min 2, n-max 7"
    line = ["edit-speed", "--cases", str(tmp_path / "cases.jsonl"), "--costs", str(CURVE_FILE), "--out", str(tmp_path)]
    assert main([*line, "--peers", str(SERVERS), "--peer-settings", chosen_settings]) == 0
    report = json.loads((tmp_path / "edit-speed.json").read_text())
    peers = [name for name in report["arms"] if name.startswith("server ")]
    assert len(peers) == 2
    assert report["best_peer"] in peers
    for name in peers:
        assert report["arms"][name]["tokens_per_pass"] > 1.5
        assert 1.0 < report["arms"][name]["total"] <= report["bound"] * 1.05
    for row in report["samples"]:
        for name in peers:
            (drafted, accepted), passes = row[name]["by_source"]["ngram"], row[name]["passes"]
            assert sum(passes) == len(passes) + drafted
            assert 0 <= accepted <= drafted
