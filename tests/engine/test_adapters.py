"""LoRA adapters: that they do what merged weights do, that nothing of one serves another, and what is refused."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

from codespec import Completer, Config, Request
from codespec.cli.main import main
from codespec.config_sections import LoraConfig
from codespec.daemon.models import Models, engine_key
from codespec.daemon.wire import DocumentTexts, pack_config, unpack_config
from codespec.draft.storage.profiles import Profiles
from codespec.engine.adapters import MOST_HELD, LoraRequest
from codespec.engine.local import LocalEngine
from codespec.engine.prompt_cache import MIB, PromptCacheSettings
from codespec.llama.adapter import Adapter
from codespec.llama.context import Context
from codespec.llama.model import Model
from codespec.lsp.settings import needs_reload
from codespec.models.registry import EMBEDDED, EMBEDDED_TARGET, adapters_folder
from codespec.protocols import CodespecError, Limits, Sampling
from tests.adapters import matrices, weights_of, write_adapter, write_model, write_tensors
from tests.present import present

DRAFT = EMBEDDED / "draft-python.gguf"
QUERY = "blk.0.attn_q.weight"
PROMPT = np.random.default_rng(1).integers(300, 8000, 200).tolist()


@pytest.fixture(scope="module")
def weights():
    return weights_of()


@pytest.fixture(scope="module")
def files(tmp_path_factory, weights):
    """Two adapters for the embedded target and one for its draft."""
    folder = tmp_path_factory.mktemp("adapters")
    write_adapter(folder / "one.gguf", weights, size=0.08)
    write_adapter(folder / "two.gguf", weights, seed=1, size=0.08)
    write_adapter(folder / "draft.gguf", weights_of(DRAFT), size=0.2)
    return folder


def logits(context, tokens=PROMPT[:40], last=None):
    sequence = context.sequence()
    found = sequence.decode(tokens, last).copy()
    sequence.close()
    return found


def engine(**settings):
    return LocalEngine(EMBEDDED_TARGET, context_length=512, exact=True, **settings)


def text_of(engine, prompt=PROMPT, count=12):
    return "".join(chunk.text for chunk in engine.generate(prompt, limits=Limits(max_tokens=count)))


@pytest.mark.parametrize(("rank", "scale", "batch"), [(8, 1.0, 64), (32, 0.5, 64), (4, 2.0, 1)])
def test_an_adapter_does_what_merged_weights_do(tmp_path, weights, rank, scale, batch):
    merged = write_adapter(tmp_path / "a.gguf", weights, rank=rank, size=0.07)
    merged = {name: weights[name] + scale * (each - weights[name]) for name, each in merged.items()}
    plain, other = write_model(tmp_path / "plain.gguf", weights), write_model(tmp_path / "merged.gguf", merged)
    exactly = {"context_length": 128, "kv_type": "f32", "flash_attention": "off", "batch": batch}
    with Model(plain) as model, Context(model, **exactly) as context:
        before = logits(context, last=1)[0]
        adapter = Adapter(model, tmp_path / "a.gguf")
        context.use(adapter, scale)
        found = logits(context, last=1)[0]
        adapter.close()
        assert np.array_equal(logits(context, last=1)[0], before)  # who uses it goes on without
    with Model(other) as model, Context(model, **exactly) as context:
        expected = logits(context, last=1)[0]
    assert np.abs(found - expected).max() < 1e-3
    assert np.abs(before - expected).max() > 0.5


@pytest.mark.parametrize("exact", [False, True])
def test_nothing_of_an_adapter_stays(files, exact):
    with Model(EMBEDDED_TARGET, plain_buffers=exact) as model, Context(model, exact=exact) as context:
        one, two = (Adapter(model, files / f"{name}.gguf") for name in ("one", "two"))
        assert one.key != two.key
        plain = logits(context, PROMPT[:30])
        by_adapter = []
        for adapter in (one, two):
            context.use(adapter)
            by_adapter.append(logits(context, PROMPT[:30]))
        assert np.abs(by_adapter[0] - by_adapter[1]).max() > 1
        for adapter, scale, expected in ((one, 1, by_adapter[0]), (one, 0, plain), (two, 1, by_adapter[1])):
            context.use(adapter, scale)
            assert np.array_equal(logits(context, PROMPT[:30]), expected)
            assert bool(context.adapter_key) == bool(scale)
        context.use(None)
        assert np.array_equal(logits(context, PROMPT[:30]), plain)
        two.close()
        assert np.array_equal(logits(context, PROMPT[:30]), plain)
        one.close()


def test_exact_decoding_is_exact_with_an_adapter(files):
    with Model(EMBEDDED_TARGET, plain_buffers=True) as model, Context(model, exact=True) as context:
        context.use(Adapter(model, files / "one.gguf"))
        whole = logits(context, PROMPT[:30])
        sequence = context.sequence()
        for size in (1, 2, 3, 7):
            sequence.rollback(0)
            rows = [sequence.decode(PROMPT[start : start + size]).copy() for start in range(0, 28, size)]
            assert np.array_equal(np.concatenate(rows)[:28], whole[:28])


def pair(a, b, name=QUERY, kind=np.float32):
    return {f"{name}.lora_a": np.ones(a, kind), f"{name}.lora_b": np.ones(b, kind)}


GOOD = pair((4, 320), (320, 4))


@pytest.mark.parametrize(
    ("tensors", "about", "message"),
    [
        (
            GOOD,
            {"general.architecture": "qwen2"},
            "it is for models of the architecture 'qwen2'; target.gguf is 'llama'",
        ),
        (GOOD, {"general.type": "model"}, "not a LoRA adapter; "),
        (GOOD, {"general.type": 3}, "not a LoRA adapter; "),  # from here on most ends the process in llama.cpp
        (GOOD, {"adapter.type": "ia3"}, "not a LoRA adapter; "),
        (GOOD, {"adapter.lora.alpha": "16"}, "its adapter.lora.alpha is missing or no number"),
        (GOOD, {"adapter.lora.alpha": float("nan")}, "its adapter.lora.alpha is missing or no number"),
        (GOOD, {"adapter.alora.invocation_tokens": [1, 2]}, "(aLoRA)"),
        ({}, {}, "it holds no tensors"),
        ({f"{QUERY}.lora_a": np.ones((4, 320), np.float32)}, {}, f"{QUERY}: llama.cpp applies pairs"),
        ({"blk.0.attn_norm.weight": np.ones(320, np.float32)}, {}, "blk.0.attn_norm.weight: llama.cpp applies pairs"),
        (pair((4, 320), (320, 4), "blk.9.attn_q.weight"), {}, "target.gguf has no tensor blk.9.attn_q.weight"),
        (pair((4, 128), (320, 4)), {}, "it is for a matrix of 128 x 320; that of target.gguf has 320 x 320"),
        (pair((4, 320), (512, 4)), {}, "it is for a matrix of 320 x 512; that of target.gguf has 320 x 320"),
        (pair((4, 320), (320, 8)), {}, "it is for a matrix of shapes that do not go together"),
        (pair((2, 4, 320), (3, 320, 4)), {}, "it is for a matrix of shapes that do not go together"),
        (pair((4, 320), (320, 4), kind=np.int32), {}, "its numbers are of another kind"),
        (pair((8192, 4), (320, 4), "token_embd.weight"), {}, "which is the output of target.gguf as well"),
    ],
)
def test_what_is_refused(tmp_path, tensors, about, message):
    path = write_tensors(tmp_path / "a.gguf", tensors, about)
    with Model(EMBEDDED_TARGET) as model, pytest.raises(CodespecError) as error:
        Adapter(model, path)
    assert str(error.value).startswith(f"{path}: ")
    assert message in str(error.value)


def test_damaged_files(tmp_path, files):
    path = tmp_path / "a.gguf"
    whole = (files / "one.gguf").read_bytes()
    with Model(EMBEDDED_TARGET) as model:
        with pytest.raises(CodespecError, match="no such file"):
            Adapter(model, path)
        for content in (b"", b"GGUF", whole[:500], whole[:20_000], EMBEDDED_TARGET.read_bytes()):
            path.write_bytes(content)
            with pytest.raises(CodespecError, match=r"a\.gguf: "):
                Adapter(model, path)


def test_an_adapter_of_the_embedding_where_the_output_is_another_matrix(tmp_path, weights):
    untied = {**weights, "output.weight": weights["token_embd.weight"]}
    random = np.random.default_rng(0)
    a = random.normal(0, 0.2, (8192, 4)).astype(np.float32)
    b = random.normal(0, 0.2, (320, 4)).astype(np.float32)
    about = {"token_embd.weight.lora_a": a, "token_embd.weight.lora_b": b}
    write_tensors(tmp_path / "a.gguf", about, {"adapter.lora.alpha": 4.0})
    merged = {**untied, "token_embd.weight": untied["token_embd.weight"] + a @ b.T}
    plain, other = write_model(tmp_path / "plain.gguf", untied), write_model(tmp_path / "merged.gguf", merged)
    with Model(other) as model, Context(model, context_length=128, kv_type="f32") as context:
        expected = logits(context, last=1)[0].copy()
    with Model(plain) as model, Context(model, context_length=128, kv_type="f32") as context:
        context.use(Adapter(model, tmp_path / "a.gguf"))
        assert np.abs(logits(context, last=1)[0] - expected).max() < 1e-3


def test_a_cache_serves_the_adapter_that_it_was_computed_with(files):
    adapters = [
        None,
        LoraRequest(files / "one.gguf"),
        LoraRequest(files / "two.gguf"),
        LoraRequest(files / "one.gguf", 0.5),
    ]
    expected = []
    for lora in adapters:
        with closing(engine()) as alone:
            alone.use_adapter(lora)
            expected.append(text_of(alone, [*PROMPT, 400]))
    assert len(set(expected)) == 4
    with closing(engine()) as shared:
        for lora in adapters:
            shared.use_adapter(lora)
            text_of(shared)
            assert shared.statistics.reused_tokens == 0
        for lora, text in zip(adapters, expected, strict=True):
            shared.use_adapter(lora)
            assert text_of(shared, [*PROMPT, 400]) == text
            assert shared.statistics.reused_tokens == len(PROMPT)


def test_what_is_kept_between_runs_knows_its_adapter(tmp_path, files):
    settings = PromptCacheSettings(saved=64 * MIB, folder=tmp_path)
    one = LoraRequest(files / "one.gguf")
    with closing(engine(prompt_cache=settings)) as first:
        first.prompt_cache.enter("w")
        first.use_adapter(one)
        text_of(first)
    reused = []
    for lora in (None, one):
        with closing(engine(prompt_cache=replace(settings, saved=1))) as later:
            later.use_adapter(lora)
            later.prompt_cache.enter("w")
            text_of(later, [*PROMPT, 400])
            reused.append(later.statistics.reused_tokens)
    assert reused == [0, len(PROMPT)]


def test_alternatives_are_drawn_with_the_adapter(files):
    with closing(LocalEngine(EMBEDDED_TARGET, context_length=512)) as shared:
        for lora in (LoraRequest(files / "one.gguf"), None, LoraRequest(files / "two.gguf")):
            shared.use_adapter(lora)
            sampling = Sampling(temperature=0)
            together = ["", ""]
            for index, chunk in shared.generate_together(PROMPT, [None] * 2, [sampling] * 2, Limits(max_tokens=4)):
                together[index] += chunk.text
            assert together == [text_of(shared, count=4)] * 2


def test_a_draft_with_an_adapter_gives_the_same_text(tmp_path, files):
    with closing(engine(profiles=Profiles(tmp_path))) as shared:
        shared.drafts.choose(DRAFT)
        plain = text_of(shared, count=32)
        for lora in (LoraRequest(files / "draft.gguf"), None):
            shared.drafts.use_adapter(lora)
            assert text_of(shared, count=32) == plain
            assert not shared.drafts.adapter_problem
        shared.drafts.use_adapter(LoraRequest(files / "one.gguf"))
        assert "one.gguf: blk." in shared.drafts.adapter_problem
        assert text_of(shared, count=32) == plain
        model, draft, nobody = shared.model.path, DRAFT, Profiles(tmp_path)
        shared.drafts.save()
    assert nobody.acceptance(model, draft)
    kept = [path for path in tmp_path.glob("acceptance-*") if '"adapters"' in path.read_text("utf-8")]
    assert len(kept) == 1  # how often it was right with the adapter is kept apart


def test_a_file_that_goes_or_changes(tmp_path, files, weights):
    path = tmp_path / "a.gguf"
    path.write_bytes((files / "one.gguf").read_bytes())
    lora = LoraRequest(path)
    with closing(engine()) as shared:
        plain = text_of(shared)
        shared.use_adapter(lora)
        first = text_of(shared)
        assert first != plain
        path.unlink()
        shared.use_adapter(lora)
        assert text_of(shared) == plain
        assert shared.adapter_problem == f"{path}: no such file; it is not used"
        assert shared.adapter_problem in shared.notes
        write_adapter(path, weights, seed=1, size=0.08)
        shared.use_adapter(lora)
        assert text_of(shared) not in (plain, first)
        assert not shared.adapter_problem
        for number in range(MOST_HELD + 1):  # the oldest are let go
            other = tmp_path / f"{number}.gguf"
            other.write_bytes((files / "one.gguf").read_bytes())
            shared.use_adapter(LoraRequest(other))
            assert text_of(shared) == first


def settings(path="", scale=1.0, **more):
    return Config(target_lora=LoraConfig(str(path), scale), gate="off", time_budget_ms=0, max_tokens=12, **more)


def test_windows_with_other_adapters_share_a_model(files, tmp_path, monkeypatch):
    monkeypatch.setenv("CODESPEC_DATA", str(tmp_path))
    request = Request("def area(self):\n    return ", 27, "python", "a.py")
    models = Models()
    with closing(models):
        windows = [
            models.completer("first", settings(files / "one.gguf"), lambda text, percent: None),
            models.completer("second", settings(), lambda text, percent: None),
            models.completer("third", settings(files / "gone.gguf"), lambda text, percent: None),
        ]
        assert models.count == 1
        assert [len(each.problems) for each in windows] == [0, 0, 1]
        for _ in range(2):
            texts = [each.complete(request)[0].text for each in windows]
            assert texts[0] != texts[1] == texts[2]
        status = [each.status().get("target_lora") for each in windows]
        assert status[0] == {"path": str(files / "one.gguf"), "scale": 1.0, "problem": ""}
        assert status[1] is None
        assert "no such file" in present(status[2])["problem"]


def test_a_change_reaches_the_model_process_and_loads_no_model():
    config, texts = settings("/models/one.gguf", 0.5), DocumentTexts()
    assert unpack_config(json.loads(json.dumps(pack_config(config, texts))), texts) == config
    assert needs_reload(replace(config, target_lora=LoraConfig()), config)
    assert needs_reload(config, replace(config, draft_lora=LoraConfig("/models/two.gguf")))
    assert engine_key(config) == engine_key(Config())
    # When the server asks is its own affair.
    assert not needs_reload(config, replace(config, automatic=False, debounce_ms=200, quiet="always"))


def test_a_closed_completer_says_so(files):
    engine = LocalEngine(EMBEDDED_TARGET, context_length=320)
    completer = Completer(engine, settings(files / "one.gguf"))
    request = Request("def area(self):\n    return ", 27, "python", "a.py")
    assert completer.complete(request)
    completer.close()
    calls = [
        lambda: completer.complete(request),
        lambda: completer.prefill(request),
        lambda: list(completer.generate("x")),
        lambda: completer.learn("x = 1\n" * 10, "a.py", "python"),
        lambda: list(engine.generate([1, 2], speculate=False)),
        lambda: list(engine.generate([1, 2])),
        lambda: engine.prefill([1, 2]),
    ]
    for call in calls:
        with pytest.raises(CodespecError, match="the model is closed; load it again"):
            call()
    completer.close()


def test_names_and_trust(tmp_path, monkeypatch, files):
    monkeypatch.setenv("CODESPEC_DATA", str(tmp_path / "data"))
    workspace = tmp_path / "w"
    adapters_folder().mkdir(parents=True)
    mine = adapters_folder() / "mine.gguf"
    mine.write_bytes((files / "one.gguf").read_bytes())
    for value in ("mine.gguf", str(mine)):
        options = {"target_lora": value, "draft_lora": {"path": value, "scale": 0.5}}
        config, messages = Config().apply(options, "w", workspace, trusted=False)
        assert messages == []
        assert (config.target_lora, config.draft_lora) == (LoraConfig(str(mine)), LoraConfig(str(mine), 0.5))
    for bad in ("../w/evil.gguf", str(workspace / "evil.gguf"), "a/../../x"):
        config, [message] = Config().apply({"target_lora": {"path": bad}}, "w", workspace, trusted=False)
        assert config == Config()
        assert message.startswith('w: "target_lora.path" = ')
        assert f" is ignored: a workspace may only choose adapters in {adapters_folder()}; keeping " in message
    config, messages = Config().apply({"draft_lora": {"scale": -1, "rank": 3}, "target_lora": 3}, "w")
    assert config == Config()
    assert [each.partition(";")[0] for each in messages] == [
        'w: "draft_lora.scale" must be a number from 0 to 100, not -1',
        'w: unknown key "draft_lora.rank"',
        'w: "target_lora" must be a table, not 3',
    ]
    config, _ = Config().apply({"target_lora": {"path": "x.gguf", "scale": 0.5}}, "user", tmp_path)
    assert config.apply({"target_lora": ""}, "w", workspace, trusted=False)[0].target_lora.path == ""
    with closing(LocalEngine(EMBEDDED_TARGET, context_length=320)) as shared:
        assert not Completer(shared, settings("mine")).problems
        [problem] = Completer(shared, settings("other")).problems
        assert problem.startswith("no LoRA adapter 'other'; ")
        assert shared.notes == [problem]  # which the command line shows


def test_where_a_model_is_asked_for(monkeypatch, tmp_path, files, capsys):
    monkeypatch.setenv("CODESPEC_DATA", str(tmp_path / "data"))
    adapters_folder().mkdir(parents=True)
    (adapters_folder() / "mine.gguf").write_bytes((files / "one.gguf").read_bytes())
    assert main(["models", "list"]) == 0
    [row] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("mine ")]
    assert "LoRA adapter" in row
    assert main(["models", "inspect", str(files / "one.gguf")]) == 2
    assert "is a LoRA adapter, no model; name it as `target_lora`" in capsys.readouterr().err


def test_every_matrix_is_changed(weights):
    assert len(matrices(weights)) == 7 * 7
