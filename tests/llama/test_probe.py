"""The crash probe: a verdict from a child process, remembered."""

import json
import os
import subprocess
import sys
from pathlib import Path

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


IN_THIS_PROCESS = "from codespec.llama import probe, trial\nprobe.be_expendable(trial.decode_batches)\n"
ENDS = "import os\nfrom codespec.llama import probe\nprobe.be_expendable(lambda model: os._exit(7))\n"
ASKS = "print(probe.extra_buffers_work())\n"


def asked(code: str, folder: Path, child: bool = False) -> subprocess.CompletedProcess[str]:
    """What a process says whose caches lie in a folder; it can start no other process unless ``child``."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder), "HOME": str(folder), "LOCALAPPDATA": str(folder)}
    no_child = "" if child else "import sys\nsys.executable = '/no/python'\n"
    return subprocess.run([sys.executable, "-c", no_child + code], env=environment, capture_output=True, text=True)


def remembered(folder: Path) -> dict[str, bool]:
    return json.loads(next(folder.rglob("probe.json")).read_text())


def test_a_process_that_may_end_tries_by_itself(tmp_path):
    done = asked(IN_THIS_PROCESS + ASKS, tmp_path)
    assert done.stdout == "True\n", done.stderr
    assert remembered(tmp_path) == {probe.fingerprint(): True}
    assert not list(tmp_path.rglob("probing-*"))


def test_one_that_has_ended_over_it_leaves_the_question_to_a_child(tmp_path):
    first = asked(ENDS + ASKS, tmp_path)
    assert first.returncode == 7
    assert not list(tmp_path.rglob("probe.json"))
    second = asked(IN_THIS_PROCESS + ASKS, tmp_path)
    assert "/no/python" in second.stderr  # it would have asked a child
    third = asked(IN_THIS_PROCESS + ASKS, tmp_path, child=True)
    assert third.stdout == "True\n", third.stderr
    assert remembered(tmp_path) == {probe.fingerprint(): True}
    assert not list(tmp_path.rglob("probing-*"))


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
