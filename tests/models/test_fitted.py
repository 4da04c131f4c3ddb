"""Adapters that fit one model: how they are found, and when they are used."""

import os
import shutil
from dataclasses import replace

import gguf
import llama_cpp
import numpy as np
import pytest

from codespec.completion.completer import Completer
from codespec.completion.request import Request
from codespec.config import Config
from codespec.config_sections import LoraConfig
from codespec.engine.local import LocalEngine
from codespec.models.fitted import FITTED_KEY, PREFIX_KEY, SUFFIX_KEY, filling_adapter, fingerprint
from codespec.models.registry import EMBEDDED_TARGET, adapters_folder


@pytest.fixture
def requantized(smollm2, tmp_path):
    path = tmp_path / "other-name.gguf"
    settings = llama_cpp.llama_model_quantize_default_params()
    settings.ftype, settings.allow_requantize = 7, True  # Q8_0
    assert llama_cpp.llama_model_quantize(os.fsencode(smollm2), os.fsencode(path), settings) == 0
    return path


@pytest.fixture
def adapters(tmp_path, monkeypatch):
    monkeypatch.setenv("CODESPEC_DATA", str(tmp_path / "data"))
    folder = adapters_folder()
    folder.mkdir(parents=True)
    return folder


def write(path, fitted, width=576):
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", 1.0)
    writer.add_string(FITTED_KEY, fitted)
    writer.add_uint32(PREFIX_KEY, 3)
    writer.add_uint32(SUFFIX_KEY, 9)
    writer.add_tensor("blk.29.attn_q.weight.lora_a", np.zeros((2, width), np.float16))
    writer.add_tensor("blk.29.attn_q.weight.lora_b", np.zeros((width, 2), np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_a_model_is_known_in_every_quantization(smollm2, requantized):
    assert fingerprint(smollm2) == fingerprint(requantized) != fingerprint(EMBEDDED_TARGET)


def test_the_users_own_goes_first_and_a_damaged_one_is_none(smollm2, adapters):
    (adapters / "fim-a.gguf").write_bytes(b"GGUF damaged")
    write(adapters / "fim-b.gguf", "another model")
    write(adapters / "fim-c.gguf", fingerprint(smollm2))
    assert filling_adapter(smollm2) == adapters / "fim-c.gguf"
    shutil.rmtree(adapters)
    assert filling_adapter(EMBEDDED_TARGET) is None


def test_it_is_used_by_default_and_can_be_left_out(smollm2, adapters):
    write(adapters / "fim-smollm2.gguf", fingerprint(smollm2))
    engine = LocalEngine(smollm2, context_length=512)
    try:
        request = Request("def add(a, b):\n    return \n\nprint(add(1, 2))\n", 26, "python", "x.py")
        told = {}
        for path in ("", "none"):
            config = replace(Config(), target_lora=LoraConfig(path), time_budget_ms=0, max_tokens=8)
            completer = Completer(engine, config)
            completer.complete(request)
            told[path] = completer
        assert told[""]._layout is not None
        assert told["none"]._layout is None
        assert told[""]._adapters.told["target_lora"]["problem"] == ""
        assert told["none"]._adapters.told == {}
        prompt = told[""]._prompts.prompt(request.text[:26], request.text[26:], request, told[""]._limits(request))
        assert prompt[0] == 9
        assert prompt.count(3) == 1
    finally:
        engine.close()
