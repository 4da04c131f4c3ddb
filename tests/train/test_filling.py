"""Training an adapter that fills in: examples, the file, and a run that goes on."""

import random
from argparse import Namespace
from pathlib import Path

import gguf
import numpy as np
import pytest

from codespec.llama.adapter import check
from codespec.llama.gguf import read_header
from codespec.llama.model import Model
from codespec.models.fitted import FITTED_KEY, adapter_layout, fingerprint
from codespec.models.registry import EMBEDDED_TARGET
from codespec.protocols import CodespecError

torch = pytest.importorskip("torch")

from codespec.train.filling import pipeline  # noqa: E402
from codespec.train.filling.examples import Examples, Markers, cut, example  # noqa: E402
from codespec.train.gguf_file import load_llama  # noqa: E402

SOURCE = Path(__file__).parents[2] / "codespec" / "completion"
MARKERS = Markers(prefix=1, suffix=2, end=0)
TEXT = (SOURCE / "completer.py").read_text("utf-8")


@pytest.fixture(scope="module")
def vocabulary():
    with Model(EMBEDDED_TARGET, vocabulary_only=True) as model:
        yield model.vocabulary


def text_of(vocabulary, tokens):
    return b"".join(map(vocabulary.token_bytes, tokens)).decode()


def test_an_example_is_the_text_around_its_middle(vocabulary):
    rnd = random.Random(1)
    places = [place for place in (cut(rnd, TEXT) for _ in range(300)) if place is not None]
    assert len(places) > 200
    kinds = {"line start": 0, "indentation": 0, "within": 0, "lines": 0}
    for begin, end in places:
        row = example(rnd, TEXT, begin, end, vocabulary, MARKERS)
        if row is None:
            continue
        tokens = row.tokens.tolist()
        assert tokens[0] == MARKERS.suffix
        assert tokens[-1] == MARKERS.end
        marker = tokens.index(MARKERS.prefix)
        after, before_and_middle = text_of(vocabulary, tokens[1:marker]), text_of(vocabulary, tokens[marker + 1 : -1])
        assert TEXT[end:].startswith(after)
        assert TEXT[:end].endswith(before_and_middle)
        # All of the middle is learnt, and its end; from the token on that reaches over the cursor.
        learnt = int((row.weights == 1).sum()) - 1
        middle = text_of(vocabulary, tokens[-1 - learnt : -1])
        assert middle.endswith(TEXT[begin:end])
        assert row.prompt == marker + 1
        assert TEXT[begin:end].startswith(middle[len(middle) - (end - begin) :])
        before = TEXT[:begin].rpartition("\n")[2]
        kinds["lines"] += "\n" in TEXT[begin:end]
        kinds["within" if before.strip() else "indentation" if before else "line start"] += 1
    assert min(kinds.values()) > 10, kinds


def test_batches_hold_what_fits(vocabulary):
    from codespec.train.corpus import CorpusDocument

    documents = [CorpusDocument("a", "completer.py", "python", TEXT)]
    batches = iter(Examples(documents, {"python": 1.0}, vocabulary, MARKERS, 1024, 1))
    for _ in range(10):
        batch = next(batches)
        assert batch.inputs.size <= 1024 or len(batch.inputs) == 1
        assert set(np.unique(batch.weights)) <= {0, 0.5, 1}


def test_a_run_goes_on_and_its_adapter_fits(tmp_path, capsys):
    options = Namespace(
        target=str(EMBEDDED_TARGET), out=tmp_path, corpus=[SOURCE], minutes=5.0, max_steps=1, rank=4, layers=2,
        rate=1.0, decay=0.4,
    )  # fmt: skip
    assert pipeline.run(options) == 0
    path = tmp_path / "fim-target.gguf"
    first = path.read_bytes()
    check(path, EMBEDDED_TARGET)
    layout = adapter_layout(path, 8192)
    assert layout is not None
    assert layout.prefix != layout.suffix
    assert layout.arrange([], [7, 8], [9]) == [layout.suffix, 9, layout.prefix, 7, 8]
    header = read_header(path)
    assert header.metadata[FITTED_KEY] == fingerprint(EMBEDDED_TARGET)
    assert {name.split(".")[1] for name in header.tensors} == {"5", "6"}  # the last two of seven layers
    options.max_steps = 2
    assert pipeline.run(options) == 0
    assert path.read_bytes() != first
    assert "tokens seen" in capsys.readouterr().err
    options.rank = 8
    with pytest.raises(CodespecError, match="another shape of adapter was trained here; choose another --out"):
        pipeline.run(options)


def test_what_cannot_be_trained_on_is_told(tmp_path):
    path = tmp_path / "other.gguf"
    writer = gguf.GGUFWriter(str(path), "qwen2")
    writer.add_tensor("output_norm.weight", np.ones(32, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(CodespecError, match="a model of the llama architecture whose output is its embedding"):
        load_llama(path)
