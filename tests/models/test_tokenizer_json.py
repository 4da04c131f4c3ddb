"""Vocabularies from ``tokenizer.json``: the library that such files are made with is the judge."""

import json

import pytest

tokenizers = pytest.importorskip("tokenizers")
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers  # noqa: E402

from codespec.llama.model import Model  # noqa: E402
from codespec.models import tokenizer_json  # noqa: E402
from codespec.models.info import inspect  # noqa: E402
from codespec.models.registry import EMBEDDED_TARGET  # noqa: E402
from codespec.models.tokenizer_json import TRIAL, vocabulary_file  # noqa: E402
from codespec.protocols import CodespecError  # noqa: E402

CUTS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}DIGITS| ?[^\s\p{L}\p{N}]+[\r\n]*|"
    r"\s*[\r\n]+|\s+(?!\S)|\s+"
)
TEXT = TRIAL * 3 + "values = [value for value in range(1000) if value % 15 == 0]\n" * 5
PROBE = "while x1 <= 12345:  # it's größer\n\n\n\treturn {'a':    x}\r\n日本 <|fim_prefix|>x<|endoftext|>"


def bytes_of(regular=False):
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=regular)


def cut(digits):
    return pre_tokenizers.Split(Regex(CUTS.replace("DIGITS", digits)), "isolated")


KINDS = {
    "qwen2": pre_tokenizers.Sequence([cut(""), bytes_of()]),
    "llama-bpe": pre_tokenizers.Sequence([cut("{1,3}"), bytes_of()]),
    "starcoder": pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), bytes_of(True)]),
    "gpt-2": bytes_of(True),
}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CODESPEC_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "vocabularies"


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    return folder


def learnt(kind="qwen2", end="<|endoftext|>", size=900):
    """A tokenizer whose merges cross every border that another one would cut at."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = KINDS[kind]
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=[end, "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([TEXT], trainer)
    return tokenizer


@pytest.mark.parametrize("kind", KINDS)
def test_texts_become_the_same_tokens(folder, kind):
    tokenizer = learnt(kind)
    tokenizer.add_tokens([AddedToken("<tool>", normalized=False)])
    tokenizer.save(str(folder / "tokenizer.json"))
    with Model(vocabulary_file(folder), vocabulary_only=True) as model:
        vocabulary = model.vocabulary
        assert vocabulary.size == tokenizer.get_vocab_size()
        for text in (PROBE, TEXT, "a <tool> b"):
            assert vocabulary.tokenize(text, special=True) == tokenizer.encode(text, add_special_tokens=False).ids
        text = TEXT[:500]
        assert b"".join(map(vocabulary.token_bytes, vocabulary.tokenize(text))).decode() == text
        assert vocabulary.fim_token("pre") == tokenizer.token_to_id("<|fim_prefix|>")
        assert tokenizer.token_to_id("<|endoftext|>") in vocabulary.declared_ends
        assert vocabulary.beginning is None


def test_the_embedded_targets_is_the_embedded_targets(folder):
    gguf = pytest.importorskip("gguf")
    fields = gguf.GGUFReader(EMBEDDED_TARGET).fields
    tokens, kinds, merges = (fields[f"tokenizer.ggml.{name}"].contents() for name in ("tokens", "token_type", "merges"))
    pairs = [(*each.split(" "),) for each in merges]
    tokenizer = Tokenizer(models.BPE({token: number for number, token in enumerate(tokens)}, pairs))
    tokenizer.pre_tokenizer = KINDS["qwen2"]
    tokenizer.add_special_tokens([t for t, kind in zip(tokens, kinds, strict=True) if kind == gguf.TokenType.CONTROL])
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"codespec.fim.order": "spm"}))
    found, expected = inspect(vocabulary_file(folder / "tokenizer.json")), inspect(EMBEDDED_TARGET)
    assert (found.vocabulary, found.fim) == (expected.vocabulary, expected.fim)


def test_it_is_made_once(folder, cache):
    learnt().save(str(folder / "tokenizer.json"))
    made = vocabulary_file(folder)
    before = made.read_bytes(), made.stat().st_ino
    assert vocabulary_file(folder / "tokenizer.json") == made
    assert (made.read_bytes(), made.stat().st_ino) == before
    assert list(cache.iterdir()) == [made]
    (folder / "config.json").write_text(json.dumps({"vocab_size": 1024}))
    padded = vocabulary_file(folder)
    assert padded != made
    with Model(padded, vocabulary_only=True) as model:
        assert model.vocabulary.size == 1024
        assert model.vocabulary.used == learnt().get_vocab_size()


def test_the_files_beside_say_what_ends_a_text(folder):
    tokenizer = learnt(end="<|my end|>")
    tokenizer.save(str(folder / "tokenizer.json"))
    with pytest.raises(CodespecError, match="which token ends a text"):
        vocabulary_file(folder)
    for name, about in (
        ("tokenizer_config.json", {"eos_token": {"content": "<|my end|>"}}),
        ("config.json", {"eos_token_id": [0, 3]}),
        ("generation_config.json", {"eos_token_id": 0}),
    ):
        (folder / name).write_text(json.dumps(about))
        with Model(vocabulary_file(folder), vocabulary_only=True) as model:
            assert 0 in model.vocabulary.declared_ends
            assert (3 in model.vocabulary.declared_ends) is (name == "config.json")
        (folder / name).unlink()


def test_a_token_before_every_text(folder):
    tokenizer = learnt()
    tokenizer.add_special_tokens(["<begin>"])
    number = tokenizer.token_to_id("<begin>")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<begin> $A", pair="<begin> $A $B", special_tokens=[("<begin>", number)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    with Model(vocabulary_file(folder), vocabulary_only=True) as model:
        assert model.vocabulary.beginning == number


def test_a_gguf_file_stands_for_itself():
    assert vocabulary_file(EMBEDDED_TARGET) == EMBEDDED_TARGET


def unigram():
    return Tokenizer(models.Unigram([("<unk>", 0.0), ("a", -1.0)], 0)).to_str()


def doubled():
    whole = json.loads(learnt().to_str())
    whole["model"]["vocab"]["Ġdoubled"] = 300
    return json.dumps(whole)


def without_merges():
    whole = json.loads(learnt().to_str())
    whole["model"]["merges"] = []
    return json.dumps(whole)


def panicking():
    """The library looks for the token in an empty table, and ends its thread."""
    whole = json.loads(learnt().to_str())
    single = [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    whole["post_processor"] = {"type": "TemplateProcessing", "single": single, "pair": [], "special_tokens": {}}
    return json.dumps(whole)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (unigram, "byte-level BPE"),
        (doubled, "no names and numbers of their own"),
        (lambda: "{}", "can be read"),
        (lambda: "[" * 100_000, "can be read"),
        (lambda: '{"model": {"vocab": {}, "merges": []}}', "byte-level BPE"),
        (lambda: '{"model": {"vocab": {}, "merges": []}, "decoder": {"type": "ByteLevel"}}', "can be read"),
        (lambda: "ü".encode("latin-1"), "can be read"),
        (without_merges, "byte-level BPE"),
        (panicking, "can be read"),
    ],
)
def test_what_cannot_be_taken_says_so(folder, cache, text, message):
    made = text()
    (folder / "tokenizer.json").write_bytes(made if isinstance(made, bytes) else made.encode())
    with pytest.raises(CodespecError, match=message) as caught:
        vocabulary_file(folder)
    assert str(folder) in str(caught.value)
    assert list(cache.iterdir()) == []


def test_what_cuts_texts_as_nobody_does_is_refused(folder, cache, monkeypatch):
    monkeypatch.setattr(tokenizer_json, "PRE_TOKENIZERS", ("gpt-2", "qwen2"))  # the others take their time
    tokenizer = learnt()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex("[aeiou]"), "isolated"), bytes_of()])
    tokenizer.save(str(folder / "tokenizer.json"))
    with pytest.raises(CodespecError, match="nothing that makes the same tokens"):
        vocabulary_file(folder)
    assert list(cache.iterdir()) == []


def test_a_cache_folder_that_cannot_be_made(folder, cache):
    learnt().save(str(folder / "tokenizer.json"))
    cache.parent.write_text("a file")
    with pytest.raises(CodespecError, match=r"cannot be written.*CODESPEC_CACHE"):
        vocabulary_file(folder)


def test_a_missing_one(folder):
    with pytest.raises(CodespecError, match="no such file"):
        vocabulary_file(folder)
