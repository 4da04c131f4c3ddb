"""Models made large for timing: a cost-scaled one answers as before, a random one loads."""

import sys

import numpy as np
import pytest

from benchmarks import inflate
from benchmarks.commands import main
from codespec.engine.local import LocalEngine
from codespec.errors import CodespecError
from codespec.llama.context import Context
from codespec.llama.model import Model
from codespec.models.fim import fim_format
from codespec.models.registry import EMBEDDED_TARGET
from codespec.protocols import Limits, Sampling
from tests.present import present

pytest.importorskip("gguf")

PROMPTS = ["def area(self):\n    return ", "import os\nfor name in ", "class Point:\n    def __init__(self, x, y):\n"]


@pytest.fixture(scope="module")
def scaled(tmp_path_factory):
    out = tmp_path_factory.mktemp("inflate") / "scaled.gguf"
    assert main(["inflate", "--out", str(out), "--layers", "10", "--ffn", "1024"]) == 0
    assert [path.name for path in out.parent.iterdir()] == [out.name]
    return out


def logits(path, text):
    with Model(path, plain_buffers=True) as model:
        context = Context(model)
        try:
            tokens = model.vocabulary.tokenize(text)
            return np.array(context.sequence().decode(tokens, len(tokens)))
        finally:
            context.close()


def greedy(path, text):
    engine = LocalEngine(path)
    try:
        prompt = engine.vocabulary.tokenize(text)
        return "".join(chunk.text for chunk in engine.generate(prompt, None, Sampling(), Limits(24)))
    finally:
        engine.close()


@pytest.mark.parametrize("text", PROMPTS)
def test_a_cost_scaled_model_gives_the_same_logits(scaled, text):
    # Not the same bits: the sums of the wider layers are split differently.
    difference = np.abs(logits(scaled, text) - logits(EMBEDDED_TARGET, text)).max()
    assert difference < 0.05


@pytest.mark.parametrize("text", PROMPTS)
def test_a_cost_scaled_model_writes_the_same_text(scaled, text):
    assert greedy(scaled, text) == greedy(EMBEDDED_TARGET, text) != ""


def test_a_cost_scaled_model_is_larger_and_says_so(scaled):
    with Model(scaled) as model, Model(EMBEDDED_TARGET) as original:
        assert model.parameter_count > original.parameter_count * 1.3
        assert model.metadata(inflate.COST_SCALED) == "true"
        assert "cost-scaled" in present(model.metadata("general.name"))
        assert fim_format(model) == fim_format(original)
        assert model.trained_context == original.trained_context


def test_what_is_added_is_not_zero_and_adds_nothing(scaled):
    import gguf

    tensors = {tensor.name: tensor for tensor in gguf.GGUFReader(scaled).tensors}

    def values(name):
        return gguf.quants.dequantize(tensors[name].data, tensors[name].tensor_type)

    assert not values("blk.0.ffn_down.weight")[:, 896:].any()
    assert not values("blk.9.ffn_down.weight").any()
    assert not values("blk.9.attn_output.weight").any()
    for name in ("blk.0.ffn_gate.weight", "blk.0.ffn_up.weight", "blk.9.ffn_up.weight"):
        assert values(name)[896:].any(axis=1).all()


def test_another_quantization_loads(tmp_path):
    out = inflate.cost_scale(EMBEDDED_TARGET, tmp_path / "small.gguf", 7, 896, "q4_0")
    assert out.stat().st_size < 0.7 * EMBEDDED_TARGET.stat().st_size
    assert np.abs(logits(out, PROMPTS[0]) - logits(EMBEDDED_TARGET, PROMPTS[0])).mean() < 1.0


def test_random_weights_with_a_real_vocabulary(tmp_path):
    out = tmp_path / "random.gguf"
    arguments = ["inflate", "--out", str(out), "--random", str(EMBEDDED_TARGET), "--layers", "1"]
    assert main([*arguments, "--ffn", "256"]) == 0
    assert np.isfinite(logits(out, PROMPTS[0])).all()


@pytest.mark.parametrize("size", [(4, 1024), (10, 512), (10, 1000)])
def test_sizes_that_cannot_be_are_refused(tmp_path, size):
    with pytest.raises(CodespecError):
        inflate.cost_scale(EMBEDDED_TARGET, tmp_path / "none.gguf", *size)
    assert not list(tmp_path.iterdir())


def test_gguf_missing_names_the_extra(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "gguf", None)
    assert main(["inflate", "--out", str(tmp_path / "none.gguf")]) == 2
    assert "-m pip install" in capsys.readouterr().err


def test_no_model_to_scale(tmp_path, capsys):
    assert main(["inflate", "--out", str(tmp_path / "x.gguf"), "--target", str(tmp_path / "none.gguf")]) == 2
    assert "no such model file" in capsys.readouterr().err
