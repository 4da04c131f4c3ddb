"""Examples of next edits: made on files, and found between versions of files."""

import json
import random
import resource

import numpy as np
import pytest

pytest.importorskip("tokenizers", reason="tokenizers is not installed; `make test-train` installs it")
pytest.importorskip("datasketch", reason="datasketch is not installed; `make test-train` installs it")

from benchmarks.commands import main as benchmark
from benchmarks.training.edit_cases import cases
from benchmarks.training.edits import changes, making, rows
from benchmarks.training.edits.alike import alike, said
from benchmarks.training.edits.examples import Shares, made
from benchmarks.training.edits.source import Names, apply, source_of
from benchmarks.training.edits.versions import Hunk, real
from codespec.edits.formats.embedded import Embedded
from codespec.languages import by_id
from codespec.models.info import inspect
from codespec.models.registry import EMBEDDED_TARGET
from codespec.syntax.tree import well_formed
from codespec.train import tokenizer
from codespec.train.corpus import CorpusDocument, is_held_out
from codespec.train.rows import batch_of
from tests.present import present

PYTHON = '''
def area(width, height=1):
    """The area of width times height."""
    if width < 0 or height < 0:
        raise ValueError(f"negative: {width}")
    return width * height


class Box:
    def __init__(self, width):
        self.width = width
        self.volume = area(width) * self.width

    def grow(self, by):
        self.width += by
        return area(self.width, by)


print(area(2), area(3), Box(4).width, "width", "negative", "negative", 1024, 1024)
'''
JAVASCRIPT = """
function area(width, height) {
  const scale = { width, height };
  return scale.width * height * width;
}
const sizes = [1, 2].map((size) => area(size, size));
console.log(area(sizes[0], 2), sizes, "sizes", { sizes: sizes.length });
class Box { constructor(width) { this.width = width; } grow(by) { this.width += by; return area(this.width, by); } }
module.exports = { area, Box, total: sizes.reduce((sum, each) => sum + each, 0) };
"""
GO = """
package box

import "fmt"

type Box struct{ Width int }

func (b *Box) Grow(by int) int {
	b.Width += by
	for i, each := range []int{by} {
		fmt.Println(i, each, b.Width)
	}
	return area(b.Width, by)
}

func area(width int, height int) int {
	if width > height {
		return width * height
	}
	return area(height, width) + width
}

func Grown(box *Box, by int) (*Box, error) {
	if by < 0 {
		return nil, fmt.Errorf("by: %d", by)
	}
	box.Grow(by)
	return box, nil
}
"""
TEXTS = {"python": PYTHON, "javascript": JAVASCRIPT, "go": GO}
NAMES = Names(["alpha", "beta_gamma", "deltaEpsilon", "Zeta", "ETA", "theta", "iota", "kappa", "lambda_mu"])


def source(language):
    found = source_of(CorpusDocument("package", f"box.{language}", language, TEXTS[language]))
    assert found is not None
    return found


def all_made(language, makers=changes.MAKERS, shares=None):
    found = source(language)
    examples = [made(found, random.Random(seed), NAMES, makers, shares or Shares()) for seed in range(300)]
    return [each for each in examples if each is not None]


def changed(language, maker, name):
    """The file after all of a change of this name."""
    found = source(language)
    for seed in range(3000):
        change = maker(found, random.Random(seed), NAMES)
        if change is not None and TEXTS[language][slice(*change.replacements[0][:2])] == name:
            new = [each.text.rpartition(" ")[2] for each in change.replacements]
            return apply(TEXTS[language], change.replacements), new[0]
    raise AssertionError(name)


def test_a_parameter_is_renamed_in_its_function():
    text, new = changed("python", changes.rename_local, "width")
    start, end = PYTHON.index("class Box"), len(PYTHON)
    if text[:start] == PYTHON[:start]:  # the one of `__init__`
        assert f"def __init__(self, {new}):\n        self.width = {new}\n" in text
        assert f"area({new}) * self.width" in text
    else:
        assert text.count(new) == 6
        assert "width times height" in text
        assert text[-(end - start) :] == PYTHON[start:]


def test_an_attribute_is_renamed_with_what_it_is_called_in_an_object():
    text, new = changed("javascript", changes.rename_local, "width")
    assert f"{{ width: {new}, height }}" in text or f"this.width = {new};" in text


def test_a_go_receiver_is_renamed():
    text, new = changed("go", changes.rename_local, "b")
    assert f"func ({new} *Box) Grow(by int)" in text
    assert text.count(f"{new}.Width") == 3


@pytest.mark.parametrize("language", TEXTS)
def test_examples_are_what_happened(language):
    examples = all_made(language)
    assert len({each.kind for each in examples}) >= 4
    for each in examples:
        prompt, updated = each.prompt()
        assert each.text == prompt.before + prompt.window + prompt.after
        assert each.updated == prompt.before + updated + prompt.after
        assert (each.kind == "none") == (each.text == each.updated)
        assert 0 <= each.offset <= len(each.text)
        last = each.recent[-1]
        assert "".join(each.text.splitlines(keepends=True)[last.line :]).startswith(last.after)
        assert all(recent.before != recent.after for recent in each.recent)


def test_what_is_made_of_python_is_python():
    kinds = ((1.0, changes.rename_local), (1.0, changes.rename_global), (1.0, changes.change_literal))
    for each in all_made("python", kinds):
        assert well_formed(by_id("python"), each.updated)


OLD = "".join(f"line{number} = {number}\n" for number in range(60))


def test_real_edits_of_a_window():
    new = OLD.replace("line20 = 20", "line20 = value(20)").replace("line23 = 23", "line23 = value(23)")
    new = new.replace("line50 = 50", "line50 = other(50)")
    first, second = (CorpusDocument("package", "a.py", "python", text) for text in (OLD, new))
    (found,) = real(first, second, random.Random(1), around=10)
    assert found.text == OLD.replace("line20 = 20", "line20 = value(20)")
    assert found.updated == found.text.replace("line23 = 23", "line23 = value(23)")
    assert found.recent[-1].before == "line20 = 20\n"
    assert found.recent[-1].line == 20


def test_hunks_that_do_the_same_follow_from_the_first():
    new = OLD.replace("line20 = 20", "line20 = value(20)").replace("line23 = 23", "other = 23")
    for line in (30, 32, 34):
        new = new.replace(f"line{line} = {line}\n", f"line{line}: int = {line}\n")
    first, second = (CorpusDocument("package", "a.py", "python", text) for text in (OLD, new))
    found = list(alike(first, second, random.Random(1)))
    carried = [each for each in found if each.kind == "real"]
    assert carried
    for each in carried:
        prompt, updated = each.prompt()
        assert all(": int" in recent.after and ": int" not in recent.before for recent in each.recent)
        assert {line for line in updated.splitlines() if line not in prompt.window.splitlines()} <= {
            f"line{line}: int = {line}" for line in (30, 32, 34)
        }
        assert each.text == prompt.before + prompt.window + prompt.after
        assert each.updated == prompt.before + updated + prompt.after
        last = each.recent[-1]
        assert "".join(each.text.splitlines(keepends=True)[last.line :]).startswith(last.after)
    assert all(each.text == each.updated for each in found if each.kind == "none")


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("f(a)\n", "f(a, b)\n", (("f(", "b"),)),
        ("x = width\n", "x = height\n", (("width", "height"),)),
        ("x = 1\n", "y = 1\n", (("x", "y"),)),
        ("\n", "", ()),
        ("import a\n", "", (("import a", ""),)),
        ("(1)\n", "[1]\n", ()),
        ("", "import a\n", ()),
    ],
)
def test_what_a_hunk_says(old, new, what):
    lines = old.splitlines(keepends=True)
    assert said(lines, Hunk(0, len(lines), tuple(new.splitlines(keepends=True)))) == what


def test_a_rewritten_file_says_nothing():
    old, new = (CorpusDocument("package", "a.py", "python", text) for text in (OLD, "x = 1\n" * 60))
    assert not list(real(old, new, random.Random(1)))
    assert not list(alike(old, new, random.Random(1)))


def held_out(number):
    return next(name for name in (f"p{number}x{each}" for each in range(10_000)) if is_held_out(name))


def test_cases_are_of_held_out_packages_and_always_the_same():
    documents = [CorpusDocument(held_out(number), f"{language}/box", language, text)
                 for number in range(3) for language, text in TEXTS.items()]  # fmt: skip
    documents += [CorpusDocument("learnt", "box", "python", PYTHON)]
    assert not is_held_out("learnt")
    found = list(cases(documents, {}, 4))
    assert found == list(cases(reversed(documents), {}, 4))
    assert {each.package for each in found} == {held_out(number) for number in range(3)}
    assert {each.kind for each in found} == {"rename", "parameter", "none"}
    assert all(sum(each.kind == "rename" and each.language == name for each in found) <= 4 for name in TEXTS)


@pytest.fixture(scope="module")
def vocabulary():
    return tokenizer.of_gguf(EMBEDDED_TARGET)


def test_rows_hold_prompt_and_answer(vocabulary):
    for each in all_made("go")[:40]:
        prompt, updated = each.prompt()
        row = present(rows.row_of(prompt, updated, vocabulary))
        answer = vocabulary.decode(row.tokens[row.prompt : -1].tolist())
        assert Embedded().read(answer, prompt) == (None if each.kind == "none" else updated)
        assert len(row.weights) == len(row.tokens) - row.prompt
        assert (row.weights.max() > 1) == (each.kind != "none")


def test_shards_hold_rows_and_batches_their_labels(vocabulary, tmp_path):
    documents = [
        CorpusDocument(f"learnt{at}", "box", language, TEXTS[language]) for at in range(9) for language in TEXTS
    ]
    making.make(tmp_path, documents, [], vocabulary, 40)
    (path,) = tmp_path.glob("shard-*.npz")
    content = path.read_bytes()
    kept = rows.read_shard(path)
    assert len(kept) > 20
    making.make(tmp_path, documents, [], vocabulary, 40)
    assert path.read_bytes() == content
    path.unlink()
    making.make(tmp_path, documents, [], vocabulary, 40)
    assert all(np.array_equal(a.tokens, b.tokens) for a, b in zip(kept, rows.read_shard(path), strict=True))
    batch = batch_of(kept[:3])
    flat = batch.inputs.flatten()
    assert len(batch.labels) == sum(len(row.tokens) - row.prompt for row in kept[:3])
    ends = np.cumsum([len(row.tokens) - row.prompt for row in kept[:3]]) - 1
    inside = np.setdiff1d(np.arange(len(batch.labels)), ends)
    assert np.array_equal(flat[batch.places[inside] + 1], batch.labels[inside])


def test_a_shard_whose_write_was_interrupted_is_none(vocabulary, tmp_path):
    prompt, updated = all_made("go")[0].prompt()
    row = present(rows.row_of(prompt, updated, vocabulary))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, before[1]))
    try:
        with pytest.raises(OSError, match="large"):
            rows.write_shard(tmp_path / "shard-0000.npz", [row])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(tmp_path.iterdir())
    with pytest.raises(FileNotFoundError, match="no examples"):
        next(iter(rows.Batches(tmp_path, 100, 1)))


def test_shards_hold_real_edits_of_all_versions(vocabulary, tmp_path):
    now = PYTHON + OLD
    documents = [CorpusDocument(f"learnt{at}", "box", "python", now) for at in range(9)]
    before = now.replace("height", "depth")
    texts = before, before.replace("width", "length")
    previous = [making.by_place([CorpusDocument("learnt1", "box", "python", text)]) for text in texts]
    shards = {}
    for name, versions in {"none": [], "one": previous[:1], "two": previous}.items():
        making.make(tmp_path / name, documents, versions, vocabulary, 54)
        (path,) = (tmp_path / name).glob("shard-*.npz")
        shards[name] = [vocabulary.decode(row.tokens[: row.prompt].tolist()) for row in rows.read_shard(path)]
    assert len(shards["none"]) < len(shards["one"]) <= len(shards["two"])
    assert any(":\ndepth\nheight\n" in prompt for prompt in shards["one"])
    assert any(":\nlength\nwidth\n" in prompt for prompt in shards["two"])
    assert len(shards["two"]) <= 1 + (1 + making.REAL) * len(shards["none"])


@pytest.mark.parametrize("names", [[], ["doThing", "theSum"], ["x1", "_"]])
def test_a_corpus_of_few_names_lends_some(names):
    found, rnd = Names(names), random.Random(1)
    drawn = [found.any(case, rnd) for case in ("word", "snake", "upper")] + [found.word(rnd)]
    assert all(name.isidentifier() for name in drawn)


def test_nothing_to_make_examples_of(vocabulary, tmp_path):
    with pytest.raises(ValueError, match="no edits"):
        making.make(tmp_path, [CorpusDocument("p", "a.md", "markdown", "text " * 200)], [], vocabulary, 40)


@pytest.mark.slow
def test_the_command_trains_and_goes_on(tmp_path):
    pytest.importorskip("torch", reason="torch is not installed; `make test-train` installs it")
    source = tmp_path / "mine"
    source.mkdir()
    for language, ending in (("python", "py"), ("javascript", "js"), ("go", "go")):
        (source / f"box.{ending}").write_text(TEXTS[language])
    out = tmp_path / "run"
    command = ["train-edit", "--out", str(out), "--corpus", str(source), "--examples", "20", "--minutes", "9"]
    assert benchmark([*command, "--max-steps", "1"]) == 0
    assert benchmark([*command, "--max-steps", "2"]) == 0
    tokens = [json.loads(line)["tokens"] for line in (out / "edit" / "log.jsonl").read_text().splitlines()]
    assert len(tokens) == 2
    assert 0 < tokens[0] < tokens[1]
    assert inspect(out / "edit.gguf").vocabulary == inspect(EMBEDDED_TARGET).vocabulary
    assert inspect(out / "edit.gguf").languages == ("edit",)
    assert benchmark(["edit-cases", str(out), "--out", str(tmp_path / "cases.jsonl")]) == 0
    assert (tmp_path / "cases.jsonl").exists()
    assert benchmark(["edit-cases", str(source), "--out", str(tmp_path / "none")]) == 2
