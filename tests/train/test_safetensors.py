"""The folder with safetensors that an export writes: transformers is the judge of what it holds."""

import json

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed; `make test-train` installs it and runs this file")
transformers = pytest.importorskip(
    "transformers", reason="transformers is not installed; `make test-train` installs it"
)

from codespec.llama.context import Context  # noqa: E402
from codespec.llama.model import Model  # noqa: E402
from codespec.train import tokenizer  # noqa: E402
from codespec.train.gguf_file import write_gguf  # noqa: E402
from codespec.train.model import Llama, ModelShape  # noqa: E402
from codespec.train.safetensors_folder import write_safetensors  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

SHAPE = ModelShape(vocabulary=400, width=96, layers=3, heads=3, kv_heads=1, feed_forward=128, context=128)
TEXT = "def größe(values):\n    return [value + 1 for value in values if isn't(value, 3.14)]  # 日本語\n\n\n"


@pytest.fixture(scope="module")
def vocabulary():
    return tokenizer.train([TEXT * 3, "class Point:\n    pass\n"], SHAPE.vocabulary)


@pytest.fixture(scope="module", params=["f32", "q8_0"])
def export(request, vocabulary, tmp_path_factory):
    """A model that nobody has trained, every weight of which counts, in both forms."""
    out = tmp_path_factory.mktemp("export")
    torch.manual_seed(5)
    model = Llama(SHAPE)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.05)
    write_gguf(model, vocabulary, out / "target.gguf", "random", request.param)
    write_safetensors(model, vocabulary, out / "target-safetensors", request.param)
    return model, out, request.param


def test_transformers_computes_the_same(export, vocabulary):
    model, out, quantization = export
    tokens = vocabulary.encode(TEXT).ids
    theirs = transformers.AutoModelForCausalLM.from_pretrained(out / "target-safetensors", dtype=torch.float32)
    with torch.no_grad():
        expected, found = model(torch.tensor([tokens]))[0], theirs(torch.tensor([tokens])).logits[0]
    bound = 1e-4 if quantization == "f32" else 0.1
    assert torch.allclose(found, expected, atol=bound)
    with Model(out / "target.gguf") as loaded, Context(loaded, context_length=128) as context:
        of_gguf = torch.from_numpy(context.sequence().decode(tokens).copy())
    # llama.cpp rounds what it multiplies weights of 8 bits with.
    assert torch.allclose(of_gguf, found, atol=1e-3 if quantization == "f32" else 0.1)
    assert (of_gguf.argmax(-1) == found.argmax(-1)).float().mean() > 0.95


def test_transformers_makes_the_same_tokens(export, vocabulary):
    _, out, _ = export
    theirs = transformers.AutoTokenizer.from_pretrained(out / "target-safetensors")
    text = f"{tokenizer.FIM_PREFIX}{TEXT}{tokenizer.FIM_MIDDLE}"
    with Model(out / "target.gguf", vocabulary_only=True) as loaded:
        assert theirs(text)["input_ids"] == loaded.vocabulary.tokenize(text, special=True)
        assert theirs.eos_token_id in loaded.vocabulary.declared_ends
    assert theirs.decode(theirs(TEXT)["input_ids"]) == TEXT


def test_a_second_export_takes_the_place_of_the_first(export, vocabulary):
    model, out, quantization = export
    folder = out / "target-safetensors"
    (folder / "model.safetensors").write_bytes(b"old")
    with pytest.raises(KeyError):
        write_safetensors(model, vocabulary, folder, "q3_k")
    assert (folder / "model.safetensors").read_bytes() == b"old"
    write_safetensors(model, vocabulary, folder, quantization)
    assert sorted(path.name for path in folder.iterdir()) == [
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    assert json.loads((folder / "config.json").read_text())["tie_word_embeddings"] is True
    assert sorted(path.name for path in out.iterdir()) == ["target-safetensors", "target.gguf"]
