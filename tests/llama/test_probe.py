"""The crash probe: a verdict from a child process, remembered."""

import json
import subprocess
import sys

import pytest

from codespec.llama import probe


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda *_: str(tmp_path))
    monkeypatch.delenv("CODESPEC_PROBE", raising=False)
    probe.extra_buffers_work.cache_clear()
    yield tmp_path / "probe.json"
    probe.extra_buffers_work.cache_clear()


def test_the_library_here_survives_or_is_found_out(cache):
    works = probe.extra_buffers_work()
    assert json.loads(cache.read_text()) == {probe.fingerprint(): works}


def test_a_child_that_crashes_is_a_no(tmp_path, cache):
    # Not a model: the child ends with an error, as it does when it is killed.
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF")
    assert probe.survives(broken) is False


def test_a_remembered_verdict_is_used(cache):
    cache.write_text(json.dumps({probe.fingerprint(): False}))
    assert probe.extra_buffers_work() is False


@pytest.mark.parametrize("content", ["", "[]", "not json", '{"x": "y"}'])
def test_a_damaged_memory_is_made_anew(cache, content):
    cache.write_text(content)
    probe.extra_buffers_work()
    assert json.loads(cache.read_text())[probe.fingerprint()] in (True, False)


def test_a_model_loaded_without_repacked_weights_decodes():
    code = (
        "from codespec.llama.model import Model; from codespec.llama.context import Context\n"
        "from codespec.models.registry import EMBEDDED_TARGET\n"
        "with Model(EMBEDDED_TARGET, plain_buffers=True) as m, Context(m) as c:\n"
        "    print(c.sequence().decode([1, 2, 3]).shape)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "(3, 8192)"
