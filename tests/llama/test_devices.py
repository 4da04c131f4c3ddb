"""What llama.cpp may put onto GPUs, by models' real figures: most machines that run this have none."""

from __future__ import annotations

import json
import struct
from contextlib import closing, suppress
from dataclasses import replace

import pytest

from codespec.cli.doctor import report
from codespec.completion.completer import Completer
from codespec.config import Config
from codespec.engine.local import LocalEngine
from codespec.llama import devices
from codespec.llama.context import Context
from codespec.llama.devices import MARGIN, Gpu, Sizes, fitting, gpu_layers, gpus, layers_that_fit, sizes_of
from codespec.llama.gguf import read_header
from codespec.llama.model import Model
from codespec.models.registry import EMBEDDED, EMBEDDED_TARGET
from codespec.protocols import CodespecError

GIB = 1 << 30


def weights(*shapes, bits=8.5):
    """Bytes of matrices, at Q8_0 unless said otherwise."""
    return int(sum(rows * columns for rows, columns in shapes) * bits / 8)


def qwen(layers, width, feed_forward, heads, kv_heads, context=32_768):
    """Of Qwen2.5-Coder at Q8_0, by the config.json of each size."""
    kv = kv_heads * width // heads
    layer = weights((width, width), (width, width), (width, kv), (width, kv), *[(width, feed_forward)] * 3)
    return Sizes((layer,) * layers, weights((width, 152_064)), 2 * kv, 152_064, feed_forward, heads, context)


QWEN_0_5B = qwen(24, 896, 4_864, 14, 2)
QWEN_1_5B = qwen(28, 1_536, 8_960, 12, 2)
QWEN_7B = qwen(28, 3_584, 18_944, 28, 4)
QWEN_14B = qwen(48, 5_120, 13_824, 40, 8)
MODELS = [QWEN_0_5B, QWEN_1_5B, QWEN_7B, QWEN_14B]


@pytest.mark.parametrize(
    ("sizes", "free", "context", "layers"),
    [
        (QWEN_0_5B, 4, 8192, 25),
        (QWEN_1_5B, 4, 8192, 29),
        (QWEN_7B, 4, 8192, 9),
        (QWEN_7B, 6, 8192, 17),
        (QWEN_7B, 8, 8192, 25),
        (QWEN_7B, 12, 8192, 29),
        (QWEN_7B, 8, 32_768, 21),  # a longer context leaves less room
        (QWEN_14B, 12, 8192, 33),
        (QWEN_14B, 24, 8192, 49),
        (QWEN_14B, 1, 8192, 0),
        (QWEN_14B, 0, 8192, 0),
    ],
)
def test_layers_of_real_models(sizes, free, context, layers):
    assert layers_that_fit([free * GIB], sizes, context) == layers


@pytest.mark.parametrize("sizes", MODELS)
@pytest.mark.parametrize("free", [2, 5, 8, 16, 48])
@pytest.mark.parametrize("kv_type", ["f16", "q8_0"])
def test_what_fits_leaves_the_margin_and_one_more_layer_would_not(sizes, free, kv_type):
    context = 8192
    count = layers_that_fit([free * GIB], sizes, context, kv_type)
    cache = devices.KV_BYTES[kv_type] * sizes.kv_values * context
    units = [sizes.output, *(layer + cache for layer in sizes.layers)]
    fixed = MARGIN + sizes.compute_bytes(context, 512, flash=True)
    assert not count or sum(units[:count]) + fixed <= free * GIB
    assert count == len(units) or sum(units[: count + 1]) + fixed > free * GIB


def test_a_smaller_cache_and_flash_attention_leave_more_room():
    free, context = [8 * GIB], 32_768
    found = [layers_that_fit(free, QWEN_7B, context, kind) for kind in ("f32", "f16", "q8_0", "q4_0")]
    assert found == sorted(found)
    assert found[0] < found[-1]
    assert layers_that_fit(free, QWEN_7B, context, flash=False) < layers_that_fit(free, QWEN_7B, context)


def test_of_several_gpus_none_is_overfilled():
    context = 8192
    for free in ([8, 8], [24, 4], [6, 6, 6], [2, 24]):
        count = layers_that_fit([each * GIB for each in free], QWEN_14B, context)
        assert count <= layers_that_fit([sum(free) * GIB], QWEN_14B, context)
        used = (count * (QWEN_14B.layers[0] + 2 * QWEN_14B.kv_values * context)) / sum(free)
        for each in free:
            assert used * each + MARGIN <= each * GIB + QWEN_14B.layers[0] or not count
    assert layers_that_fit([12 * GIB, 12 * GIB], QWEN_14B, context) == 49
    assert layers_that_fit([GIB // 2, 24 * GIB], QWEN_14B, context) == 0  # the first would get a share, too


def test_the_reason():
    big = Gpu("RTX", 20 * GIB, 24 * GIB)
    assert fitting([big], QWEN_7B, 8192) == devices.ResolvedSetting(
        29, "the whole model fits into 20.0 GiB free of RTX, with a context of 8,192 tokens"
    )
    some = fitting([replace(big, free=8 * GIB)], QWEN_14B, 4096)
    assert some.why == f"{some.value} of 49 layers fit into 8.0 GiB free of RTX, with a context of 4,096 tokens"
    assert fitting([Gpu("Vega", 0, 0)], QWEN_7B, 8192).why == "Vega does not say how much memory it has; set gpu_layers"


def test_sizes_of_a_file():
    sizes = sizes_of(EMBEDDED_TARGET)
    with Model(EMBEDDED_TARGET) as model:
        assert abs(sum(sizes.layers) + sizes.output - model.size) < 1000
        assert 2 * sizes.kv_values * len(sizes.layers) == model.kv_bytes_per_token
        assert (len(sizes.layers), sizes.vocabulary, sizes.context) == (7, model.vocabulary.size, 1024)
    # A model without an output matrix of its own has a copy of its embedding on the GPU.
    assert sizes.output > read_header(EMBEDDED_TARGET).tensors["token_embd.weight"].size


def test_a_model_in_parts(tmp_path):
    parts = [tmp_path / f"m-0000{number}-of-00002.gguf" for number in (1, 2)]
    parts[0].write_bytes(EMBEDDED_TARGET.read_bytes())
    with pytest.raises(CodespecError, match=r"00002-of-00002\.gguf: no such file"):
        sizes_of(parts[0])
    parts[1].write_bytes((EMBEDDED / "draft-python.gguf").read_bytes())
    assert len(sizes_of(parts[0]).layers) == 7


def test_damaged_headers(tmp_path):
    whole = EMBEDDED_TARGET.read_bytes()
    path = tmp_path / "m.gguf"
    end = whole.index(b"blk.6.ffn_down.weight")
    for size in [0, 3, 4, 20, *range(24, end, 997), end, len(whole) // 3]:
        path.write_bytes(whole[:size])
        with pytest.raises(CodespecError, match=r"m\.gguf: not a GGUF file, or damaged"):
            read_header(path)
    for place in range(8, 3000, 7):
        path.write_bytes(whole[:place] + struct.pack("<Q", 2**63 + 5) + whole[place + 8 :])
        with suppress(CodespecError):
            read_header(path)


def test_the_devices_of_this_machine():
    for gpu in gpus():
        assert 0 <= gpu.free <= gpu.total
    assert len(devices.devices()) > len(gpus())


def test_without_a_gpu(monkeypatch):
    monkeypatch.setattr(devices, "gpus", lambda: ())
    assert gpu_layers(None, EMBEDDED_TARGET, 8192) == devices.ResolvedSetting(0, "llama.cpp finds no GPU")
    assert gpu_layers(0, EMBEDDED_TARGET, 8192) == devices.ResolvedSetting(0)
    assert gpu_layers(7, EMBEDDED_TARGET, 8192).why == "llama.cpp finds no GPU: gpu_layers = 7 has no effect"


def test_with_a_gpu(monkeypatch):
    monkeypatch.setattr(devices, "gpus", lambda: (Gpu("RTX", 20 * GIB, 24 * GIB),))
    assert gpu_layers(None, EMBEDDED_TARGET, 8192).value == 8
    assert "a context of 1,024 tokens" in gpu_layers(None, EMBEDDED_TARGET, 8192).why  # it was trained with no more
    assert gpu_layers(3, EMBEDDED_TARGET, 8192) == devices.ResolvedSetting(3)
    exact = gpu_layers(None, EMBEDDED_TARGET, 8192, exact=True)
    assert exact == devices.ResolvedSetting(0, "exact decoding works on the CPU only")


def test_the_status_says_what_was_chosen_and_why():
    with closing(LocalEngine(EMBEDDED_TARGET, threads=2)) as engine:
        engine.drafts.choose(EMBEDDED / "draft-python.gguf")
        status = Completer(engine, Config()).status()
    settings = status["settings"]
    assert {name: each["value"] for name, each in settings.items()} == {
        "gpu_layers": engine.model.gpu_layers,
        "kv_type": "f16",
        "flash_attention": engine.choices["flash_attention"].value,
        "threads": 2,
    }
    assert settings["threads"]["why"] == ""  # it was asked for
    assert all(settings[name]["why"] for name in ("gpu_layers", "kv_type", "flash_attention"))
    assert status["draft_settings"].keys() == {"gpu_layers", "threads"}


def test_every_value_of_the_settings_makes_a_context():
    with Model(EMBEDDED_TARGET) as model:
        for kv_type in ("auto", "f32", "f16", "bf16", "q8_0"):
            with Context(model, context_length=64, kv_type=kv_type) as context:
                assert context.kv_type == ("f16" if kv_type == "auto" else kv_type)
                assert len(context.sequence().decode([1, 2, 3], 1)) == 1


def test_the_doctor_says_what_was_chosen(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("codespec.paths.platformdirs.user_config_dir", lambda name: str(tmp_path))
    report()
    out = capsys.readouterr().out
    assert "\n  kv_type = f16: " in out
    assert "\n  gpu_layers = " in out
    (tmp_path / "codespec.toml").write_text('[target]\nthreads = 1\nkv_type = "q8_0"\n', "utf-8")
    report()
    out = capsys.readouterr().out
    assert "\n  threads = 1: as the settings say\n" in out
    assert "flash_attention = llama: a KV cache of q8_0 may need it" in out


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ('draft = "nonesuch"', "no draft model 'nonesuch'"),
        ('[language.go]\ndraft = "nonesuch"', "no draft model 'nonesuch'"),
        ('draft_lora = "nonesuch"', "no LoRA adapter 'nonesuch'"),
        (f"[edits]\nmodel = {json.dumps(__file__)}", "not a GGUF file"),
    ],
)
def test_the_doctor_says_which_file_is_none(capsys, monkeypatch, tmp_path, settings, problem):
    monkeypatch.setattr("codespec.paths.platformdirs.user_config_dir", lambda name: str(tmp_path))
    (tmp_path / "codespec.toml").write_text(settings, "utf-8")
    assert not report()
    assert problem in capsys.readouterr().err
