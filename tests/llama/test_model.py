"""Loading models and their vocabularies, and what a person is told about files that are none."""

import threading
from pathlib import Path

import pytest

from codespec.errors import CodespecError
from codespec.llama.model import Model
from codespec.models.registry import EMBEDDED, EMBEDDED_TARGET
from tests.present import present


@pytest.fixture(scope="module")
def model():
    with Model(EMBEDDED_TARGET) as loaded:
        yield loaded


@pytest.mark.parametrize("text", ["", "def f(x):\n    return x\n", "naïve 🦙 \u200b\r\n\ttab", "<|fim_prefix|>"])
def test_tokens_give_the_text_back(model, text):
    tokens = model.vocabulary.tokenize(text)
    assert b"".join(map(model.vocabulary.token_bytes, tokens)).decode() == text


def test_special_names_become_tokens_only_on_request(model):
    vocabulary = model.vocabulary
    assert vocabulary.tokenize("<|fim_prefix|>", special=True) == [vocabulary.fim_token("pre")]
    assert vocabulary.fim_token("pre") not in vocabulary.tokenize("<|fim_prefix|>")


def test_control_tokens_have_no_text(model):
    vocabulary = model.vocabulary
    assert vocabulary.end_tokens <= vocabulary.control_tokens
    assert {vocabulary.token_bytes(token) for token in vocabulary.control_tokens} == {b""}


def test_the_texts_of_all_tokens_are_those_of_each():
    with Model(EMBEDDED_TARGET) as one, Model(EMBEDDED_TARGET) as all_at_once:
        alone, vocabulary = one.vocabulary, all_at_once.vocabulary
        texts = vocabulary.texts
        assert [vocabulary.token_bytes(token) for token in range(alone.size)] == [
            alone.token_bytes(token) for token in range(alone.size)
        ]
        special = [token for token in range(alone.size) if texts[token] != alone.token_bytes(token)]
        assert special == sorted(alone.control_tokens)
        assert texts[present(vocabulary.fim_token("pre"))] == b"<|fim_prefix|>"


def test_unknown_token_is_an_index_error(model):
    with pytest.raises(IndexError, match="8192"):
        model.vocabulary.token_bytes(8192)


def test_lone_surrogates_do_not_break_the_tokenizer(model):
    assert model.vocabulary.tokenize("a\ud800b")


def test_a_model_tells_its_architecture_and_size(model):
    assert model.metadata("general.architecture") == "llama"
    assert model.metadata("no.such.key") is None
    assert model.trained_context == 1024
    assert 10_000_000 < model.parameter_count < 20_000_000


def test_embedded_models_are_small_enough_to_ship():
    files = list(EMBEDDED.glob("*.gguf"))
    drafts = {"draft-python", "draft-javascript", "draft-c", "draft-go", "draft-rust", "draft-general"}
    family = {"draft-python-qwen2", "draft-javascript-qwen2", "draft-general-qwen2", "draft-general-smollm2"}
    assert {f.stem for f in files} == {"target", "edit", *drafts, *family}
    assert all(f.stat().st_size < 2_000_000 for f in files if f.stem in drafts | family)
    assert sum(f.stat().st_size for f in files) < 42_000_000


@pytest.mark.parametrize("length", [4, 5, 100, 2_000, 100_000, 400_000, 5_000_000])
def test_truncated_file(tmp_path, length):
    path = tmp_path / "cut.gguf"
    path.write_bytes(EMBEDDED_TARGET.read_bytes()[:length])
    with pytest.raises(CodespecError, match=r"cut\.gguf: the file is damaged or incomplete; fetch it again"):
        Model(path)


def test_unknown_architecture(tmp_path):
    path = tmp_path / "odd.gguf"
    data = EMBEDDED_TARGET.read_bytes()
    key = b"general.architecture" + bytes([8, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0])
    assert key + b"llama" in data
    path.write_bytes(data.replace(key + b"llama", key + b"lambs"))
    with pytest.raises(CodespecError, match=r"odd\.gguf: architecture 'lambs' is unknown .* upgrade"):
        Model(path)


def test_missing_file(tmp_path):
    with pytest.raises(CodespecError, match=r"none\.gguf: no such model file; check"):
        Model(tmp_path / "none.gguf")


def test_folder(tmp_path):
    with pytest.raises(CodespecError, match=r"is a folder; name the \.gguf file in it"):
        Model(tmp_path)


def test_foreign_file(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"\x10\0\0\0{}")
    with pytest.raises(CodespecError, match="not a GGUF file; convert"):
        Model(path)


def test_progress_is_reported():
    told = []
    with Model(EMBEDDED_TARGET, progress=lambda fraction: told.append(fraction) or True):
        assert told[-1] == 1.0


def test_closing_twice_does_nothing():
    model = Model(EMBEDDED_TARGET)
    assert model.pointer
    model.close()
    assert not model.pointer
    model.close()  # a second llama_model_free of the same pointer would crash
    assert not model.pointer


def test_errors_are_one_line(tmp_path: Path):
    path = tmp_path / "cut.gguf"
    path.write_bytes(b"GGUF")
    with pytest.raises(CodespecError) as caught:
        Model(path)
    assert "\n" not in str(caught.value)


def test_threads_that_ask_for_texts_at_once_get_the_same(model):
    """The library is called without Python's lock."""
    expected = [model.vocabulary.token_bytes(token) for token in range(model.vocabulary.size)]
    for _ in range(5):
        with Model(EMBEDDED_TARGET, vocabulary_only=True) as other:
            vocabulary = other.vocabulary
            asking = threading.Thread(target=lambda: list(map(vocabulary.token_bytes, range(len(expected)))))  # noqa: B023
            asking.start()
            found = list(map(vocabulary.token_bytes, range(len(expected))))
            asking.join()
            assert found == expected
            assert list(map(vocabulary.token_bytes, range(len(expected)))) == expected
