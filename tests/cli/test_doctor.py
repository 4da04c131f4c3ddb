"""``codespec doctor``: its last line in each state, and what it says of how llama.cpp was built."""

import shutil
from types import SimpleNamespace

import pytest

from codespec.cli.main import main
from codespec.config import user_file
from codespec.llama import devices
from codespec.llama.runtime import library
from codespec.lsp.statistics import UsageStatistics
from codespec.models.registry import EMBEDDED, models_folder


@pytest.fixture(autouse=True)
def nobody(tmp_path, monkeypatch):
    """Somebody whose folders are empty."""
    monkeypatch.setenv("CODESPEC_DATA", str(tmp_path / "data"))
    monkeypatch.setattr("codespec.paths.platformdirs.user_config_dir", lambda name: str(tmp_path / "config"))
    user_file().parent.mkdir()
    models_folder().mkdir(parents=True)


@pytest.fixture
def last_line(capsys):
    def last_line(code: int = 0) -> str:
        assert main(["doctor"]) == code
        lines = capsys.readouterr().out.splitlines()
        assert [line for line in lines if line.startswith("next:")] == lines[-1:]
        return lines[-1]

    return last_line


def installed(name: str, source: str = "target") -> None:
    shutil.copy(EMBEDDED / f"{source}.gguf", models_folder() / f"{name}.gguf")


def settings(text: str) -> None:
    user_file().write_text(text, "utf-8")


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ('draft = "nonesuch"', "no draft model 'nonesuch'; give the path of a .gguf file"),
        ('[target]\npath = "nonesuch"', "no target model 'nonesuch'; give the path of a .gguf file"),
        ("sed = 1", 'did you mean "seed"'),
        ('[remote]\nkind = "vllm"\nurl = "http://127.0.0.1:1"', "127.0.0.1:1"),
    ],
)
def test_an_error_comes_first(last_line, text, remedy):
    settings(text)
    assert remedy in last_line(code=1)


def test_a_package_that_is_missing(last_line, monkeypatch):
    monkeypatch.setattr("codespec.cli.doctor._version", lambda name: "missing" if name == "lark" else "1")
    assert last_line(code=1).startswith("next: lark is missing: install codespec again")


def test_without_a_real_model(last_line):
    installed("only-a-draft", "draft-python")
    installed("edits-only", "edit")
    (models_folder() / "bad.gguf").write_bytes(b"GGUF and no more")
    assert last_line() == "next: codespec setup"


def test_a_model_that_is_not_used(last_line):
    installed("mine")
    assert last_line() == "next: codespec models use mine"


@pytest.mark.parametrize("chosen", ["mine", "embedded"])
def test_before_and_after_an_editor_has_shown_something(last_line, chosen):
    installed("mine")
    settings(f'[target]\npath = "{chosen}"\n')
    assert last_line().endswith(" set yours up as docs/editors.md says")
    statistics = UsageStatistics()
    statistics.shown("python", ["x"])
    statistics.save()
    assert last_line() == "next: all is well; open a file in your editor"


def test_who_counts_nothing_is_not_sent_to_the_editors(last_line):
    settings('statistics = false\n[target]\npath = "embedded"\n')
    assert last_line() == "next: all is well; open a file in your editor"


def test_how_the_library_was_built(capsys, monkeypatch):
    main(["doctor"])
    [line] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("built ")]
    assert all(each in line for each in (*devices.kernels(), *devices.gpu_backends()))
    told = b"CUDA : ARCHS = 500 | F16 = 1 | CPU : AVX2 = 1 | AMX_INT8 = 0 | AVX512 = 1 | REPACK = 1 | "
    monkeypatch.setattr(devices, "library", lambda: SimpleNamespace(llama_print_system_info=lambda: told))
    assert devices.kernels() == ("AVX2", "AVX512")


@pytest.mark.parametrize("found", [0, 1])
def test_a_gpu_that_is_not_used_is_named(last_line, capsys, monkeypatch, found):
    monkeypatch.setattr(devices, "gpu_backends", tuple)
    monkeypatch.setattr(devices, "_nvidia_gpus", lambda: found)
    monkeypatch.setattr("platform.system", lambda: "Linux")
    main(["doctor"])
    hint = "  an NVIDIA GPU is here, and not used: install a llama.cpp for it (docs/tutorial.md#without-a-compiler)\n"
    assert (hint in capsys.readouterr().out) == bool(found)
    monkeypatch.setattr(devices, "gpu_backends", lambda: ("CUDA",))
    assert devices.unused_gpu() == ""


@pytest.mark.parametrize(("machine", "gpu"), [("arm64", "Apple's GPU"), ("x86_64", "")])
def test_apples_gpu(monkeypatch, machine, gpu):
    monkeypatch.setattr(devices, "gpu_backends", tuple)
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    monkeypatch.setattr("platform.machine", lambda: machine)
    assert devices.unused_gpu() == gpu


def test_the_driver_is_asked_for_its_gpus(monkeypatch):
    library()

    class Driver:
        def cuInit(self, flags):
            assert flags == 0

        def cuDeviceGetCount(self, count):
            count._obj.value = 2

    monkeypatch.setattr("ctypes.CDLL", lambda name: Driver())
    assert devices._nvidia_gpus() == 2
    monkeypatch.setattr("ctypes.CDLL", lambda name: object())
    assert devices._nvidia_gpus() == 0
