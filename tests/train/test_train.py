"""The training pipeline on a small corpus: about a minute, resumed on the way, loaded by llama.cpp at the end."""

import gzip
import itertools
import json
import math
import shutil
import sysconfig
import time
from dataclasses import replace
from pathlib import Path

import gguf
import numpy as np
import pytest

from tests import marked_vocabulary

torch = pytest.importorskip("torch", reason="torch is not installed; `make test-train` installs it and runs this file")
pytest.importorskip("tokenizers", reason="tokenizers is not installed; `make test-train` installs it")

from benchmarks.commands import main as benchmark  # noqa: E402
from codespec.cli.main import main  # noqa: E402
from codespec.engine.local import LocalEngine  # noqa: E402
from codespec.llama.context import Context  # noqa: E402
from codespec.llama.model import Model  # noqa: E402
from codespec.models.fim import fim_format  # noqa: E402
from codespec.models.info import inspect  # noqa: E402
from codespec.protocols import CodespecError, Limits  # noqa: E402
from codespec.train import corpus, data, gguf_file, judge, pipeline, tokenizer  # noqa: E402
from codespec.train.model import DRAFT, TINY, TINY_DRAFT, Llama  # noqa: E402
from codespec.train.own_thread import in_own_thread  # noqa: E402
from codespec.train.student import Student  # noqa: E402
from codespec.train.teacher import Lesson, SamplePacker, Teacher  # noqa: E402
from codespec.train.torch_teacher import TorchReader, TorchTeacher  # noqa: E402
from codespec.train.train import Recipe, TrainingRun, separators_of  # noqa: E402
from codespec.train.trim import frequent, trim_of  # noqa: E402
from tests.present import present  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

STANDARD_LIBRARY = Path(sysconfig.get_path("stdlib"))


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    """A tiny target and draft, trained by the command line in two parts each."""
    source = tmp_path_factory.mktemp("source")
    for path in sorted(STANDARD_LIBRARY.glob("*.py"))[:120]:
        (source / path.name).write_bytes(path.read_bytes())
    out = tmp_path_factory.mktemp("run")
    target = ["train", "target", "--out", str(out), "--corpus", str(source), "--size", "tiny", "--quantization", "f32"]
    assert main([*target, "--minutes", "9", "--max-steps", "60"]) == 0
    assert main([*target, "--minutes", "9", "--max-steps", "400"]) == 0
    draft = ["train", "draft", "--language", "python", "--out", str(out), "--size", "tiny"]
    assert main([*draft, "--minutes", "9", "--max-steps", "200"]) == 0
    return out


def test_it_learns(run_folder):
    log = [json.loads(line) for line in (run_folder / "target" / "log.jsonl").read_text().splitlines()]
    assert log[-1]["loss"] < 0.85 * math.log(TINY.vocabulary)
    summary = json.loads((run_folder / "target.json").read_text())
    assert summary["steps"] == 400
    assert 0.5 < summary["bits_per_byte"]["python"] < 4


def test_a_resumed_run_goes_on_where_it_was(run_folder):
    steps = [json.loads(line)["tokens"] for line in (run_folder / "target" / "log.jsonl").read_text().splitlines()]
    assert steps == sorted(steps)
    vocabulary = tokenizer.load(run_folder / "tokenizer.json")
    again = TrainingRun(TINY, Recipe(), vocabulary, run_folder / "target")
    assert (again.steps, again.tokens) == (400, 400 * 4 * TINY.context)
    assert again.seconds > 0


def test_another_shape_does_not_overwrite_a_run(run_folder):
    vocabulary = tokenizer.load(run_folder / "tokenizer.json")
    with pytest.raises(ValueError, match="another shape of model was trained here"):
        TrainingRun(DRAFT, Recipe(), vocabulary, run_folder / "target")


def test_llama_cpp_computes_the_same_logits(run_folder):
    model = pipeline.load_model(run_folder / "target")
    vocabulary = tokenizer.load(run_folder / "tokenizer.json")
    ids = vocabulary.encode(Path(__file__).read_text("utf-8")).ids[:100]
    with torch.no_grad():
        expected = model(torch.tensor([ids]))[0].numpy()
    with Model(run_folder / "target.gguf") as loaded, Context(loaded, exact=False) as context:
        logits = context.sequence().decode(ids)
        # The cache is of 16-bit floats.
        assert np.abs(logits - expected).max() < 0.05 * np.abs(expected).max()
        assert (logits.argmax(axis=1) == expected.argmax(axis=1)).mean() > 0.95


def test_llama_cpp_cuts_text_into_the_same_tokens(run_folder):
    vocabulary = tokenizer.load(run_folder / "tokenizer.json")
    texts = [
        (STANDARD_LIBRARY / "argparse.py").read_text("utf-8"),
        "a  b\n\n\n\tc 12345 'don't' naïve 🦙\r\n",
        " ",
        "\n \n",
        "x" * 500,
    ]
    with Model(run_folder / "target.gguf", vocabulary_only=True) as model:
        for text in texts:
            assert model.vocabulary.tokenize(text) == vocabulary.encode(text).ids


def test_the_pair_completes(run_folder):
    engine = LocalEngine(run_folder / "target.gguf", draft_length=4)
    try:
        engine.drafts.choose(run_folder / "draft-python.gguf")
        prompt = engine.vocabulary.tokenize("import os\nimport sys\n\ndef main(")
        # The draft by itself: whether it pays beside so small a target is a question of the clock.
        list(engine.generate(prompt, limits=Limits(60), speculate=present(engine.drafts.model)))
        assert engine.statistics.accepted > 0
    finally:
        engine.close()


def test_drafts_are_compared(run_folder, tmp_path, capsys):
    for name in ("corpus.jsonl.gz", "tokenizer.json", "target.gguf", "draft-python.gguf"):
        shutil.copy(run_folder / name, tmp_path)
    shutil.copytree(run_folder / "target", tmp_path / "target")
    general = ["train", "draft", "--language", "general", "--out", str(tmp_path), "--size", "tiny"]
    assert in_own_thread(lambda: main([*general, "--max-steps", "1"])) == 0  # llama.cpp computes in this thread
    capsys.readouterr()
    assert benchmark(["compare", "--out", str(tmp_path), "--places", "20", "--tokens", "8"]) == 0
    summary = json.loads((tmp_path / "acceptance.json").read_text())
    accepted = {name: figures["accepted"] for name, figures in summary["accepted"]["python"].items()}
    assert accepted["python"] > accepted["general"]  # which has learnt nothing
    [row] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| python |")]
    assert row.startswith(f"| python | {accepted['general']:.1%} | {accepted['python']:.1%} | ")
    assert row.endswith(" | – |")  # there is no other language's
    target = (tmp_path / "target.gguf").rename(tmp_path / "elsewhere.gguf")
    assert benchmark(["compare", "--out", str(tmp_path), "--places", "20", "--tokens", "8"]) == 2
    again = ["compare", "--out", str(tmp_path), "--target", str(target), "--places", "20", "--tokens", "8"]
    assert benchmark(again) == 0
    assert json.loads((tmp_path / "acceptance.json").read_text())["accepted"] == summary["accepted"]
    target.rename(tmp_path / "target.gguf")
    capsys.readouterr()
    assert benchmark(["compare", "--out", str(tmp_path), "--also", "sql", "markdown"]) == 2
    assert "no files are held out in sql, markdown" in capsys.readouterr().err


def test_a_target_goes_on_from_a_gguf_file(run_folder, tmp_path):
    out = tmp_path / "more"
    out.mkdir()
    (out / "corpus.jsonl.gz").write_bytes((run_folder / "corpus.jsonl.gz").read_bytes())
    begin = ["train", "target", "--out", str(out), "--from", str(run_folder / "target.gguf"), "--size", "tiny"]
    assert main([*begin, "--max-steps", "20"]) == 0
    old, new = (tokenizer.load(folder / "tokenizer.json") for folder in (run_folder, out))
    for text in ("def f(x):\n\treturn 'ä€😀'\n", "<|fim_prefix|>a <|fim_middle|>  b"):
        assert old.encode(text).ids == new.encode(text).ids
    [first] = (json.loads(line)["loss"] for line in (out / "target" / "log.jsonl").read_text().splitlines())
    assert first < 0.9 * math.log(TINY.vocabulary)  # a new one begins with about the whole of it


def test_what_the_target_said_is_learnt_several_times(run_folder, tmp_path):
    for name in ("corpus.jsonl.gz", "tokenizer.json"):
        (tmp_path / name).write_bytes((run_folder / name).read_bytes())
    shutil.copytree(run_folder / "target", tmp_path / "target")
    draft = ["train", "draft", "--language", "python", "--out", str(tmp_path), "--size", "tiny", "--minutes", "9"]
    for steps, lessons in ((60, 2), (80, 3)):  # a lesson is 16 steps long, and learnt twice
        assert main([*draft, "--passes", "2", "--max-steps", str(steps)]) == 0
        assert json.loads((tmp_path / "draft-python.json").read_text())["steps"] == steps
        assert len(list((tmp_path / "draft-python" / "lessons").iterdir())) == lessons
    log = [json.loads(line) for line in (tmp_path / "draft-python" / "log.jsonl").read_text().splitlines()]
    assert log[-1]["loss"] < 0.95 * math.log(TINY.vocabulary)


def test_lessons_hold_what_the_target_said(run_folder):
    target = pipeline.load_model(run_folder / "target")
    vocabulary = tokenizer.load(run_folder / "tokenizer.json")
    taught = TorchTeacher(target, vocabulary, corpus.load(run_folder)[:20], Recipe(weights=(("python", 1.0),)))
    lesson, again, other = map(taught.lesson, (0, 0, 1))
    assert (lesson.tokens == again.tokens).all()
    assert (lesson.tokens != other.tokens).any()
    inputs = torch.from_numpy(lesson.tokens[:2, :-1].astype(np.int64))
    shares, ids = target(inputs).float().softmax(-1).topk(8)
    assert np.allclose(lesson.shares[:2, :, :8], shares, atol=0.01)
    assert (lesson.ids[:2, :, 0] == ids[:, :, 0].numpy()).mean() > 0.98  # bfloat16 where the processor has it
    begins = np.isin(lesson.tokens[:, 1:], separators_of(vocabulary))
    assert (lesson.learnt == ~begins).all()
    assert begins.any()


def test_every_file_is_in_the_manifest_with_its_licence(run_folder):
    packages = json.loads(gzip.decompress((run_folder / "manifest.json.gz").read_bytes()))
    documents = corpus.load(run_folder)
    listed = {(p["package"], file) for p in packages for file in p["files"]}
    assert listed == {(d.package, d.path) for d in documents}
    assert all(p["licence"] for p in packages)


def test_a_draft_for_a_language_without_files(run_folder):
    with pytest.raises(ValueError, match="no cobol files"):
        pipeline.train_draft(run_folder, "cobol")


def test_an_unfinished_export_leaves_the_old_file(run_folder, monkeypatch, tmp_path):
    path = tmp_path / "model.gguf"
    path.write_bytes(b"old")
    model = pipeline.load_model(run_folder / "target")
    with pytest.raises(KeyError):
        gguf_file.write_gguf(model, tokenizer.load(run_folder / "tokenizer.json"), path, "x", "q3_k")
    assert path.read_bytes() == b"old"


@pytest.fixture(scope="module")
def distilled(run_folder, tmp_path_factory):
    """A draft for the tiny target as a user would train one: from the GGUF file alone, on a folder."""
    source = tmp_path_factory.mktemp("mine")
    for path in sorted(STANDARD_LIBRARY.glob("*.py"))[120:160]:
        (source / path.name).write_bytes(path.read_bytes())
    out = tmp_path_factory.mktemp("distilled")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CODESPEC_DATA", str(out / "data"))
        patch.setenv("CODESPEC_CACHE", str(out / "cache"))
        target = ["--target", str(run_folder / "target.gguf"), "--language", "python"]
        target += ["--size", "tiny"]
        options = [*target, "--minutes", "0.5", "--out", str(out / "run")]
        assert main(["train", "draft", *options, "--corpus", str(source)]) == 0
        first = json.loads((out / "run" / "draft-python-target.json").read_text())
        more = ["--minutes", "0.3", "--out", str(out / "again"), "--corpus", str(source)]
        installed = out / "data" / "models" / "draft-python-target.gguf"
        before = installed.read_bytes()
        code = main(["train", "draft", *target, *more])
        again = json.loads((out / "again" / "draft-python-target.json").read_text())
        assert (code, again["better"]) in ((0, True), (1, False))
        assert (installed.read_bytes() != before) is again["better"]
    return out, first


def test_a_draft_for_a_gguf_target(distilled, run_folder):
    out, summary = distilled
    path = out / "data" / "models" / "draft-python-target.gguf"
    info = inspect(path)
    assert info.languages == ("python",)
    assert info.vocabulary == inspect(run_folder / "target.gguf").vocabulary
    quality = summary["quality"]
    assert quality["agreement"] > 0.15
    assert 0 < quality["acceptance"] <= quality["first"] <= 1
    assert 1 < quality["tokens_per_pass"] <= judge.LENGTH + 1
    assert 0.5 < quality["bits_per_byte"] < 6
    assert quality["ms_per_token"] > 0
    assert summary["from"] is None
    engine = LocalEngine(run_folder / "target.gguf")
    try:
        engine.drafts.choose(path)
        assert not engine.notes
    finally:
        engine.close()


def test_a_draft_for_a_vocabulary_alone(distilled, run_folder, monkeypatch, capsys):
    out, _ = distilled
    monkeypatch.setenv("CODESPEC_DATA", str(out / "others"))
    monkeypatch.setenv("CODESPEC_CACHE", str(out / "cache"))
    source = json.loads((out / "run" / "run.json").read_text())["corpus"]
    # No weights are read.
    vocabulary = out / "vocabulary.gguf"
    reader = gguf.GGUFReader(run_folder / "target.gguf")
    first = min(tensor.data_offset for tensor in reader.tensors)
    whole = bytearray((run_folder / "target.gguf").read_bytes())
    whole[first:] = bytes(len(whole) - first)
    vocabulary.write_bytes(whole)
    options = ["train", "draft", "--vocabulary", str(vocabulary), "--language", "python", "--size", "tiny"]
    options += ["--minutes", "0.5", "--name", "of-texts", "--out", str(out / "texts")]
    assert main([*options, "--corpus", *source]) == 0
    assert "right at" in capsys.readouterr().out
    installed = out / "others" / "models" / "of-texts.gguf"
    assert inspect(installed).vocabulary == inspect(run_folder / "target.gguf").vocabulary
    assert json.loads((out / "texts" / "of-texts.json").read_text())["right"] > 0.1
    found = Lesson.load(min((out / "texts" / "lessons").glob("*.npz")))
    assert (found.ids[..., 0] == found.tokens[:, 1:]).all()
    assert (found.shares == 1).all()
    # And the target teaches it the rest.
    more = ["train", "draft", "--target", str(run_folder / "target.gguf"), "--language", "python", "--size", "tiny"]
    more += ["--minutes", "0.3", "--from", str(installed), "--out", str(out / "rest"), "--corpus", *source]
    assert main(more) in (0, 1)
    assert json.loads((out / "rest" / "draft-python-target.json").read_text())["from"] == str(installed)


def test_a_general_draft_learns_from_all_languages(run_folder, tmp_path, monkeypatch):
    monkeypatch.setenv("CODESPEC_DATA", str(tmp_path / "data"))
    files = {"a.py": "x = 1\n", "b.js": "let x = 1;\n", "c.rs": "let x = 1;\n", "d.go": "x := 1\n"}
    for name, text in files.items():
        folder = tmp_path / "mine" / name[0]
        folder.mkdir(parents=True)
        for number in range(4):
            (folder / f"{number}{name[1:]}").write_text(text * (40 + number) + name)
    options = [
        "--vocabulary",
        str(run_folder / "target.gguf"),
        "--size",
        "tiny",
        "--max-steps",
        "2",
        "--minutes",
        "0.5",
    ]
    options += ["--out", str(tmp_path / "run"), "--corpus", str(tmp_path / "mine"), "--language", "general"]
    assert main(["train", "draft", *options]) in (0, 1)
    [draft] = (tmp_path / "run").glob("draft-general-*.gguf")
    assert inspect(draft).languages == ("general",)


def test_a_target_says_the_same_in_both_libraries(run_folder):
    path = run_folder / "target.gguf"
    with TorchReader(path, TINY.context) as ours:
        text = ours.vocabulary.tokenize((STANDARD_LIBRARY / "ast.py").read_text())[: TINY.context + 1]
        found = ours.lesson([(text, [True] * TINY.context)])

    def in_llama():
        with Teacher(path, TINY.context) as teacher:
            return teacher.lesson([(text, [True] * TINY.context)])

    expected = in_own_thread(in_llama)
    assert (found.tokens == expected.tokens).all()
    assert (found.ids[..., 0] == expected.ids[..., 0]).mean() > 0.9
    assert np.abs(found.shares[..., 0].astype(float) - expected.shares[..., 0]).mean() < 0.02


def test_a_lesson_of_fewer_rows_than_a_step(distilled, tmp_path):
    out, _ = distilled
    lesson = Lesson.load(min((out / "run" / "lessons").glob("*.npz")))
    short = Lesson(*(getattr(lesson, name)[:1] for name in ("tokens", "learnt", "ids", "shares")))
    short.save(tmp_path / "lesson-00000.npz")
    student = Student(Llama(replace(TINY_DRAFT, vocabulary=TINY.vocabulary)), Recipe(rows=4), tmp_path)
    student.train([tmp_path / "lesson-00000.npz"], time.monotonic() + 60, 2)
    assert student.steps == 2


def test_a_new_draft_goes_on_from_the_old_one(distilled):
    out, first = distilled
    again = json.loads((out / "again" / "draft-python-target.json").read_text())
    assert again["from"].endswith("draft-python-target.gguf")
    assert again["before"]["agreement"] == pytest.approx(first["quality"]["agreement"], abs=0.02)
    assert again["quality"]["agreement"] > first["quality"]["agreement"] - 0.03


def test_weights_come_back_from_a_gguf_file(run_folder, tmp_path):
    model = gguf_file.load_gguf(run_folder / "target.gguf")  # f32
    expected = pipeline.load_model(run_folder / "target")
    tokens = torch.arange(40, 90)[None]
    with torch.no_grad():
        assert torch.allclose(model(tokens), expected(tokens), atol=1e-4)
    gguf_file.write_gguf_like(model, run_folder / "target.gguf", tmp_path / "like.gguf", "x", "f32", ["go"])
    assert inspect(tmp_path / "like.gguf").fim == inspect(run_folder / "target.gguf").fim
    assert inspect(tmp_path / "like.gguf").languages == ("go",)
    with pytest.raises(CodespecError, match="no model of `codespec train`"):
        gguf_file.load_gguf(marked_vocabulary.write(tmp_path / "odd.gguf", []))


def test_the_tokens_of_a_trimmed_draft(run_folder):
    documents = corpus.load(run_folder)
    with Model(run_folder / "target.gguf", vocabulary_only=True) as target:
        [trim] = frequent(target, documents, [400])
        vocabulary = target.vocabulary
        assert trim.size == 400
        assert (np.diff(trim.tokens) > 0).all()
        kept = set(trim.tokens.tolist())
        assert vocabulary.control_tokens | vocabulary.end_tokens <= kept
        assert len({vocabulary.token_bytes(token) for token in kept} & {bytes([b]) for b in range(256)}) == 256
        text = "".join(document.text for document in documents[:40])
        counts = np.bincount(vocabulary.tokenize(text), minlength=vocabulary.size)
        assert counts[trim.tokens].sum() > 0.8 * counts.sum()
        with pytest.raises(CodespecError, match="tokens are always kept"):
            frequent(target, documents, [400, 200])


def test_weights_for_some_of_the_tokens(run_folder):
    whole = pipeline.load_model(run_folder / "target")
    tokens = np.array([2, 40, 41, 300])
    model = gguf_file.with_tokens(whole, tokens)
    with torch.no_grad():
        assert torch.allclose(
            model(torch.tensor([[1, 3, 2]]))[..., :4], whole(torch.tensor([[40, 300, 41]]))[..., tokens]
        )


def test_a_trimmed_draft(distilled, run_folder, monkeypatch, capsys):
    out, first = distilled
    monkeypatch.setenv("CODESPEC_DATA", str(out / "data"))
    monkeypatch.setenv("CODESPEC_CACHE", str(out / "cache"))
    options = ["train", "draft", "--target", str(run_folder / "target.gguf"), "--language", "python", "--size", "tiny"]
    options += ["--trim", "400", "--minutes", "0.3", "--name", "trimmed"]
    source = json.loads((out / "run" / "run.json").read_text())["corpus"]
    code = main([*options, "--out", str(out / "trimmed"), "--corpus", *source])
    summary = json.loads((out / "trimmed" / "trimmed.json").read_text())
    assert code == (0 if summary["better"] else 1)
    assert summary["vocabulary"] == 400
    assert summary["quality"]["bits_per_byte"] is None
    assert summary["quality"]["acceptance"] > 0
    # It has gone on from the whole one.
    assert summary["from"] is not None
    assert summary["quality"]["agreement"] > first["quality"]["agreement"] - 0.1
    path = out / "trimmed" / "trimmed.gguf"
    info = inspect(path)
    assert (info.trimmed, info.vocabulary) == (True, inspect(run_folder / "target.gguf").vocabulary)
    assert np.array_equal(present(trim_of(path, TINY.vocabulary)).tokens, np.load(out / "trimmed" / "tokens.npy"))
    # And it can be gone on from, but not with other tokens.
    more = [*options, "--from", str(path), "--corpus", *source]
    assert main([*more, "--out", str(out / "more")]) in (0, 1)
    assert json.loads((out / "more" / "trimmed.json").read_text())["from"] == str(path)
    more[more.index("--trim") + 1] = "380"
    assert main([*more, "--out", str(out / "other")]) == 2
    assert "has other tokens of the target's" in capsys.readouterr().err


def test_rows_are_samples_end_to_end(run_folder):
    documents = corpus.load(run_folder)[:20]
    with Model(run_folder / "target.gguf", vocabulary_only=True) as model:
        layout = present(fim_format(model))
        packer = SamplePacker(data.RowSampler(documents, {"python": 1.0}, 1), model.vocabulary, layout, 0, 1)
        rows = list(itertools.islice(packer.rows(100), 60))
        texts = "".join(document.text for document in documents)
        orders = set()
        for tokens, learnt in rows:
            assert (len(tokens), len(learnt)) == (101, 100)
            for token, wanted in zip(tokens[1:], learnt, strict=True):
                if not wanted:
                    assert token in layout.markers  # a sample begins with one
            if layout.prefix in tokens:
                after = tokens[tokens.index(layout.prefix) + 1 :][:1]
                orders.add("spm" if after == [layout.suffix] else "psm")
        assert orders == {"psm", "spm"}
        plain = [tokens for tokens, _ in rows if layout.markers.isdisjoint(tokens[1:])]
        text = b"".join(map(model.vocabulary.token_bytes, plain[0])).decode("utf-8", "ignore")
        assert text[text.index("\n") : -8] in texts  # behind a path
