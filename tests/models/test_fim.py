"""Every family of models is asked for the middle of a text in the way it was trained on."""

import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from codespec import Completer, Config
from codespec.completion.prompt.prompt import Prompts
from codespec.config_sections import TargetConfig
from codespec.draft.ngram_store import NgramStore
from codespec.engine.engine import Drafting, KeptPrompts
from codespec.llama.model import Model
from codespec.models.fim import fim_format
from codespec.protocols import Snippet
from tests import marked_vocabulary
from tests.present import present

PIPES = ["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"]
PLAIN = ["<fim_prefix>", "<fim_middle>", "<fim_suffix>"]
QWEN = [*PIPES, "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>"]
STARCODER = [*PLAIN, "<filename>", "<gh_stars>", "<reponame>"]
STARCODER2 = [*PLAIN, "<repo_name>", "<file_sep>"]
SEED = ["<[fim-prefix]>", "<[fim-middle]>", "<[fim-suffix]>"]
DEEPSEEK = ["<｜fim▁hole｜>", "<｜fim▁begin｜>", "<｜fim▁end｜>"]
CODELLAMA = ["▁<PRE>", "▁<SUF>", "▁<MID>", "▁<EOT>"]
MISTRAL = ["[INST]", "[PREFIX]", "[MIDDLE]", "[SUFFIX]"]

A = Snippet("lib/a.py", "A = 1\n")
B = Snippet("b.py", "B = 2")


def spelled(model, tokens):
    """A prompt with its markers by name."""
    vocabulary = model.vocabulary
    return b"".join(vocabulary.token_bytes(t) or vocabulary.name(t) for t in tokens).decode()


def asked(folder, markers, name="", order=None, context=(), **options):
    path = marked_vocabulary.write(folder / "model.gguf", markers, name, **options)
    with Model(path, vocabulary_only=True) as model:
        layout = fim_format(model, order)
        assert layout is not None
        tokens = Prompts(model.vocabulary, layout).prompt(
            "x =", "\ny", "src/c.py", 500, context=context, repository="repo", comment="#"
        )
        return spelled(model, tokens)


@pytest.mark.parametrize(
    ("markers", "name", "alone", "beside"),
    [
        (
            QWEN, "Qwen2.5 Coder",
            "<|file_sep|>src/c.py\n<|fim_prefix|>x =<|fim_suffix|>\ny<|fim_middle|>",
            "<|repo_name|>repo\n<|file_sep|>lib/a.py\nA = 1\n<|file_sep|>b.py\nB = 2\n"
            "<|file_sep|>src/c.py\n<|fim_prefix|>x =<|fim_suffix|>\ny<|fim_middle|>",
        ),
        (
            STARCODER2, "starcoder2",
            "<fim_prefix>x =<fim_suffix>\ny<fim_middle>",
            "<repo_name>repo<file_sep>lib/a.py\nA = 1\n<file_sep>b.py\nB = 2\n"
            "<file_sep><fim_prefix>src/c.py\nx =<fim_suffix>\ny<fim_middle>",
        ),
        (
            STARCODER, "starcoder",
            "<fim_prefix>x =<fim_suffix>\ny<fim_middle>",
            "<fim_prefix># lib/a.py\n# A = 1\n# b.py\n# B = 2\nx =<fim_suffix>\ny<fim_middle>",
        ),
        (
            STARCODER, "Granite 8B Code",
            "<fim_prefix>x =<fim_suffix>\ny<fim_middle>",
            "<reponame>repo<filename>lib/a.py\nA = 1\n<filename>b.py\nB = 2\n"
            "<filename>src/c.py\n<fim_prefix>x =<fim_suffix>\ny<fim_middle>",
        ),
        (
            STARCODER, "Mellum 4b Base",
            "<filename>src/c.py\n<fim_suffix>\ny<fim_prefix>x =<fim_middle>",
            "<filename>lib/a.py\nA = 1\n<filename>b.py\nB = 2\n"
            "<filename>src/c.py\n<fim_suffix>\ny<fim_prefix>x =<fim_middle>",
        ),
        (
            [*PIPES, "<|filename|>", "<|reponame|>"], "Granite 4.0 H Tiny",
            "<|fim_prefix|>x =<|fim_suffix|>\ny<|fim_middle|>",
            "<|fim_prefix|># lib/a.py\n# A = 1\n# b.py\n# B = 2\nx =<|fim_suffix|>\ny<|fim_middle|>",
        ),
        (
            SEED, "Seed Coder 8B Base",
            "<[fim-suffix]>\ny<[fim-prefix]>x =<[fim-middle]>",
            "<[fim-suffix]>\ny<[fim-prefix]># lib/a.py\n# A = 1\n# b.py\n# B = 2\nx =<[fim-middle]>",
        ),
        (
            ["<|prefix|>", "<|middle|>", "<|suffix|>"], "Falcon-H1-Tiny-Coder-90M",
            "<|prefix|>x =<|suffix|>\ny<|middle|>",
            "<|prefix|># lib/a.py\n# A = 1\n# b.py\n# B = 2\nx =<|suffix|>\ny<|middle|>",
        ),
        (
            DEEPSEEK, "deepseek-coder",
            "<｜fim▁begin｜>x =<｜fim▁hole｜>\ny<｜fim▁end｜>",
            "<｜fim▁begin｜>#lib/a.py\nA = 1\n\n#b.py\nB = 2\n\n#src/c.py\nx =<｜fim▁hole｜>\ny<｜fim▁end｜>",
        ),
        (
            MISTRAL, "Codestral 22B",
            "[SUFFIX]\ny[PREFIX]x =",
            "[SUFFIX]\ny[PREFIX]+++++ lib/a.py\nA = 1\n\n+++++ b.py\nB = 2\n\n+++++ src/c.py\nx =",
        ),
        (
            [*PIPES, "<|file_separator|>"], "CodeGemma",
            "<|fim_prefix|>x =<|fim_suffix|>\ny<|fim_middle|>",
            "<|fim_prefix|># lib/a.py\n# A = 1\n# b.py\n# B = 2\nx =<|fim_suffix|>\ny<|fim_middle|>",
        ),
    ],
    ids=["qwen", "starcoder2", "starcoder", "granite", "mellum", "granite 4", "seed-coder", "falcon-h1", "deepseek",
         "codestral", "codegemma"],
)  # fmt: skip
def test_a_family_sees_a_file_alone_and_beside_others(tmp_path, markers, name, alone, beside):
    assert asked(tmp_path, markers, name) == alone
    assert asked(tmp_path, markers, name, context=(A, B)) == beside


def test_code_llama_sees_no_space_that_is_not_there(tmp_path):
    path = marked_vocabulary.write_spaced(tmp_path / "codellama.gguf", CODELLAMA)
    with Model(path, vocabulary_only=True) as model:
        vocabulary = model.vocabulary
        pre, suf, mid = (vocabulary.size - n for n in (4, 3, 2))
        a, tokens = vocabulary.tokenize("a b"), Prompts(vocabulary, fim_format(model)).prompt("a b", "\nc", "c.py", 99)
        assert tokens == [2, pre, *a, suf, *vocabulary.tokenize("\nc"), mid]
        for text in ("a", " a", "\n  b", "é", "a\n\n\tb ", ""):
            assert b"".join(map(vocabulary.token_bytes, vocabulary.tokenize(text))).decode() == text
        spm = Prompts(vocabulary, fim_format(model, "spm")).prompt("a b", "\nc", "c.py", 99)
        assert spm == [2, pre, suf, *vocabulary.tokenize("\nc"), mid, *a]


def test_a_model_of_next_edits_is_not_what_it_was_made_of(tmp_path):
    for name in ("zeta-2.1", "Seed-Coder-8B zeta", "some other"):
        path = marked_vocabulary.write(tmp_path / "model.gguf", SEED, name)
        with Model(path, vocabulary_only=True) as model:
            assert fim_format(model) is None


def test_a_text_begins_as_the_model_wants_it(tmp_path):
    assert asked(tmp_path, DEEPSEEK, "deepseek", beginning=True).startswith("<end><｜fim▁begin｜>")


def test_the_order_follows_the_setting_where_the_model_was_trained_on_it(tmp_path):
    spm = "<fim_prefix><fim_suffix>\ny<fim_middle>x ="
    assert asked(tmp_path, STARCODER2, "starcoder2", "spm") == spm
    assert asked(tmp_path, STARCODER, "granite", "spm") == spm
    assert asked(tmp_path, STARCODER2, "starcoder2", "spm", (A,)) == (
        "<repo_name>repo<file_sep>lib/a.py\nA = 1\n<file_sep><fim_prefix><fim_suffix>\ny<fim_middle>src/c.py\nx ="
    )
    assert asked(tmp_path, QWEN, "qwen2.5-coder", "spm") == asked(tmp_path, QWEN, "qwen2.5-coder")
    assert asked(tmp_path, STARCODER, "mellum", "psm") == asked(tmp_path, STARCODER, "mellum")


@pytest.mark.parametrize(
    ("markers", "message"),
    [
        (QWEN, "model.gguf was not trained on spm prompts (`target.fim`): keeping psm"),
        (["<nothing>"], "model.gguf was not trained on spm prompts (`target.fim`): it cannot fill in the middle"),
        (STARCODER2, None),
    ],
)
def test_an_order_that_the_model_was_not_trained_on_is_told(tmp_path, markers, message):
    path = marked_vocabulary.write(tmp_path / "model.gguf", markers)
    config = replace(Config(), target=TargetConfig(fim="spm"))
    with Model(path, vocabulary_only=True) as model:
        notes = []
        engine = SimpleNamespace(
            name=path.name,
            vocabulary=model.vocabulary,
            fim_format=partial(fim_format, model),
            notes=notes,
            drafts=Drafting(NgramStore("")),
            prompt_cache=KeptPrompts(),
            use_adapter=lambda lora: None,
            adapter_problem="",
            filling_adapter=None,
        )
        Completer(engine, config)
        assert notes == ([message] if message else [])


@pytest.mark.parametrize(("order", "expected"), [("spm", "spm"), ("psm", "psm"), ("nonsense", "psm")])
def test_a_model_of_our_own_names_its_order(tmp_path, order, expected):
    path = marked_vocabulary.write(tmp_path / "m.gguf", QWEN, metadata=[("codespec.fim.order", order)])
    with Model(path, vocabulary_only=True) as model:
        assert present(fim_format(model)).order == expected
        assert present(fim_format(model)).family.name == "codespec"


def test_a_model_without_the_training_is_not_asked_for_the_middle(tmp_path):
    for markers in ([], MISTRAL, ["<fim_prefix>"]):
        path = marked_vocabulary.write(tmp_path / "m.gguf", markers, "Mistral 7B Instruct")
        with Model(path, vocabulary_only=True) as model:
            assert fim_format(model) is None


def test_an_unknown_family_is_asked_as_llama_cpp_would(tmp_path):
    markers = ["<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"]
    assert asked(tmp_path, markers) == "<|code_prefix|>x =<|code_suffix|>\ny<|code_middle|>"


@pytest.mark.parametrize("defined", [False, True], ids=["control", "user-defined"])
@pytest.mark.parametrize("markers", [QWEN, STARCODER2, [*DEEPSEEK]], ids=["qwen", "starcoder2", "deepseek"])
def test_the_name_of_a_marker_in_a_text_or_path_is_text(tmp_path, markers, defined):
    path = marked_vocabulary.write(tmp_path / "m.gguf", markers, "starcoder2", user_defined=markers if defined else ())
    with Model(path, vocabulary_only=True) as model:
        layout = present(fim_format(model))
        names = "".join(markers) + markers[0]
        tokens = Prompts(model.vocabulary, layout).prompt(
            names, names, f"{names}.py", 5000, context=(Snippet(names, names),), repository=markers[0], comment="#"
        )
        clean = Prompts(model.vocabulary, layout).prompt(
            "p", "s", "n.py", 5000, context=(Snippet("q", "t"),), repository="r", comment="#"
        )
        assert [t for t in tokens if t in layout.markers] == [t for t in clean if t in layout.markers]
        text = spelled(model, [t for t in tokens if t not in layout.markers])
        assert text.count(names) >= 3  # prefix, suffix and snippet; paths are cut


VOCABULARIES = Path(os.environ.get("CODESPEC_VOCABULARIES", ""))


@pytest.mark.skipif(not VOCABULARIES.name, reason="CODESPEC_VOCABULARIES names llama.cpp's folder `models`")
@pytest.mark.parametrize(
    ("name", "family", "ids"),
    [
        ("starcoder", "starcoder2", (1, 3, 2, 6, 5)),
        ("refact", "starcoder", (1, 3, 2, None, None)),
        ("deepseek-coder", "deepseek", (32016, 32015, 32017, None, None)),
        ("qwen2", None, ()),
        ("llama-spm", None, ()),
        ("gpt-2", None, ()),
    ],
)
def test_real_vocabularies(name, family, ids):
    with Model(VOCABULARIES / f"ggml-vocab-{name}.gguf", vocabulary_only=True) as model:
        layout = fim_format(model)
        assert (layout.family.name if layout else None) == family
        if layout:
            assert (layout.prefix, layout.suffix, layout.middle, layout.file_separator, layout.repository) == ids
            for marker in layout.names:
                assert layout.markers.isdisjoint(model.vocabulary.tokenize(f"x = {marker!r}"))
