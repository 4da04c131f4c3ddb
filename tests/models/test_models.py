"""What models say of themselves, which fit this machine, and which are chosen."""

import json
import os
import re
import shutil
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from codespec.cli.main import main
from codespec.config import load, user_file
from codespec.engine.local import LocalEngine
from codespec.languages import by_id
from codespec.llama.devices import Gpu
from codespec.models.catalogue import CATALOGUE, known_model
from codespec.models.choose import choose
from codespec.models.index import SHIPPED, best_draft, draft_of, look_beforehand, look_through
from codespec.models.info import LANGUAGES_KEY, inspect
from codespec.models.registry import EMBEDDED, EMBEDDED_TARGET, find_target, known, models_folder
from codespec.models.suggest import SPEED, Machine, best, fits, table, this_machine
from codespec.protocols import CodespecError
from tests.present import present
from tests.stand_in_hub import stand_in_hub

VOCABULARIES = Path(os.environ.get("CODESPEC_VOCABULARIES", ""))


EMBEDDED_NAMES = sorted(path.stem for path in EMBEDDED.glob("*.gguf"))


@pytest.fixture(autouse=True)
def own_folders(tmp_path, monkeypatch):
    monkeypatch.setenv("CODESPEC_DATA", str(tmp_path / "data"))
    monkeypatch.setattr("codespec.paths.platformdirs.user_config_dir", lambda name: str(tmp_path / "config"))


def test_a_missing_model_that_can_be_pulled_says_so():
    name = CATALOGUE[0].name
    with pytest.raises(CodespecError, match=f"codespec models pull {re.escape(name)}` fetches it"):
        find_target(name)
    with pytest.raises(CodespecError, match="codespec models suggest"):
        find_target("unheard-of")


def test_the_embedded_target():
    info = inspect(EMBEDDED_TARGET)
    assert (info.architecture, info.quantization, info.context, info.licence) == ("llama", "Q8_0", 1024, "MIT")
    assert info.size == EMBEDDED_TARGET.stat().st_size
    assert info.parameters > 10_000_000
    assert (info.family, present(info.fim).order) == ("codespec", "spm")
    assert info.kv_bytes == 2 * 7 * 1 * 64 * 2  # key and value; layers, heads, width, bytes
    assert info.vocabulary == inspect(EMBEDDED / "draft-python.gguf").vocabulary


# Prefix, suffix, middle: from the models' own tokenizer_config.json.
@pytest.mark.skipif(not VOCABULARIES.name, reason="CODESPEC_VOCABULARIES names llama.cpp's folder `models`")
@pytest.mark.parametrize("path", sorted(VOCABULARIES.glob("ggml-vocab-*.gguf")) if VOCABULARIES.name else [])
def test_real_vocabularies(path):
    expected = {
        "starcoder": ("starcoder2", 1, 3, 2),
        "refact": ("starcoder", 1, 3, 2),
        "deepseek-coder": ("deepseek", 32016, 32015, 32017),
    }
    info = inspect(path)
    assert info.parameters == 0
    assert info.context > 0
    fim = info.fim
    found = (info.family, fim.prefix, fim.suffix, fim.middle) if fim else None
    assert found == expected.get(path.stem.removeprefix("ggml-vocab-"))


@pytest.mark.parametrize("content", [b"", b"GGUF", b"GGUF\3\0\0\0" + b"\xff" * 64, b"nonsense"])
def test_a_damaged_file(tmp_path, content):
    path = tmp_path / "m.gguf"
    path.write_bytes(content)
    with pytest.raises(CodespecError, match=r"m\.gguf: "):
        inspect(path)


def test_the_catalogue():
    for model in CATALOGUE:
        assert known_model(model.name.upper()) is model
        assert not model.draft or present(known_model(model.draft)).parameters < model.parameters / 4
    assert present(known_model("qwen2.5-coder-7b-q8_0")).file == "qwen2.5-coder-7b-q8_0.gguf"


def test_what_fits_and_is_fast_enough():
    laptop = Machine(memory=16 << 30, bandwidth=50e9, compute=600e9, devices=("CPU",))
    by_name = {each.model.name: each for each in fits(laptop)}
    assert by_name["qwen2.5-coder-7b-q8_0"].fits
    assert not by_name["qwen2.5-coder-14b-q8_0"].fits
    assert present(best(list(by_name.values()))).model.name == "qwen2.5-coder-1.5b-q8_0"  # 3b: not for every use
    fast = replace(laptop, memory=128 << 30, bandwidth=400e9, compute=10e12)
    found = fits(fast)
    chosen = present(best(found))
    assert chosen.model.name == "qwen2.5-coder-14b-q8_0"
    assert present(chosen.draft).name == "qwen2.5-coder-0.5b-q8_0"
    untried = [each for each in found if each.model.untried and each.good]
    assert untried
    assert best(untried) is None
    moe = next(each for each in found if each.model.active)
    assert moe.speed > chosen.speed  # most of its experts are not read
    assert best(fits(replace(laptop, bandwidth=1e9))) is None
    assert best(fits(replace(laptop, compute=10e9))) is None  # nobody waits minutes for a prompt to be read
    unknown = fits(replace(laptop, memory=0))
    assert all(each.fits for each in unknown)
    assert best(unknown) is None  # it is nobody's guess


def test_the_quantization_that_answers_in_time():
    two_cores = Machine(memory=24 << 30, bandwidth=30e9, compute=205e9, devices=("CPU",))
    by_name = {each.model.name: each for each in fits(two_cores)}
    chosen = present(best(list(by_name.values())))
    assert chosen.model.name == "qwen2.5-coder-1.5b-q4_k_m"
    assert chosen.later < by_name["qwen2.5-coder-1.5b-q8_0"].later
    assert chosen.later < chosen.first
    desktop = Machine(memory=48 << 30, bandwidth=60e9, compute=800e9, devices=("CPU",))
    assert present(best(fits(desktop))).model.name == "qwen3-coder-30b-a3b-q4_k_m"


def test_what_a_gpu_holds():
    laptop = Machine(
        memory=16 << 30, bandwidth=50e9, compute=600e9, devices=("CPU",), gpus=(Gpu("RTX", 11 << 30, 12 << 30),)
    )
    by_name = {each.model.name: each for each in fits(laptop)}
    assert by_name["qwen2.5-coder-7b-q8_0"].on_gpu
    assert not by_name["qwen2.5-coder-14b-q8_0"].on_gpu
    assert present(best(list(by_name.values()))).model.name == "qwen2.5-coder-7b-q8_0"
    lines = "\n".join(table(list(by_name.values()), None))
    assert re.search(r"  qwen2.5-coder-7b-q8_0 +8.6 GB +\d.\d GiB +GPU ", lines)
    assert re.search(r"- qwen2.5-coder-14b-q8_0 +16.2 GB +\d+.\d GiB +2 ", lines)


def test_this_machine_is_measured():
    machine = this_machine()
    assert machine.bandwidth > 1e8
    assert machine.compute > 1e8
    assert machine.devices


def test_a_choice_keeps_the_rest_of_the_file(tmp_path):
    file = tmp_path / "c" / "codespec.toml"
    choose(file, "target", "big")
    assert file.read_text("utf-8") == '[target]\npath = "big"\n'
    text = "# mine\nmax_tokens = 64  # short\n\n[target]\n# here\nthreads = 4\n\n[language.go]\nenabled = false\n"
    file.write_text(text, "utf-8")
    choose(file, "draft", "small", "go")
    choose(file, "draft", "tiny", "rust")
    choose(file, "target", "big")
    written = file.read_text("utf-8")
    for line in text.splitlines():
        assert line in written
    user_file().parent.mkdir()
    user_file().write_text(written, "utf-8")
    config, messages = load()
    assert not messages
    assert (config.target.path, config.target.threads, config.max_tokens) == ("big", 4, 64)
    assert {name: each.draft for name, each in config.language.items()} == {"go": "small", "rust": "tiny"}
    choose(user_file(), "draft", "one")
    config, messages = load()
    assert not messages
    assert config.draft == "one"
    assert not any(each.draft for each in config.language.values())
    assert config.language["go"].enabled is False


@pytest.mark.parametrize("content", [b"max_tokens = = 3", b"\xff\xfe", b"language = 3", b"target = []"])
def test_a_settings_file_that_cannot_be_read_stays_as_it_is(tmp_path, content):
    file = tmp_path / "codespec.toml"
    file.write_bytes(content)
    with pytest.raises(CodespecError, match=r"codespec\.toml: "):
        choose(file, "draft", "x", "go") if content.startswith(b"lang") else choose(file, "target", "x")
    assert file.read_bytes() == content


def test_a_speed_that_is_told_is_not_measured(monkeypatch):
    monkeypatch.setenv(SPEED, "60,1000")
    machine = this_machine()
    assert (machine.bandwidth, machine.compute) == (60e9, 1e12)
    for text in ("60", "fast,1", "-1,2", "nan,1", "1,inf"):
        monkeypatch.setenv(SPEED, text)
        with pytest.raises(CodespecError, match="must be GB/s and GFLOP/s"):
            this_machine()


def test_commands(tmp_path, capsys, monkeypatch):
    def run(*arguments):
        code = main(["models", *arguments])
        out = capsys.readouterr()
        return code, out.out, out.err

    code, out, _ = run("list")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == ["model", *EMBEDDED_NAMES]
    assert out.splitlines()[1].endswith("can draft c, cpp")
    code, out, _ = run("list", "--json")
    assert [each["name"] for each in json.loads(out)] == [f"codespec {name}" for name in EMBEDDED_NAMES]
    code, out, _ = run("inspect", "target")
    assert "spm: prefix 1, suffix 2, middle 3" in out
    with stand_in_hub() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        hub.files["me/mine-GGUF"] = {"mine.gguf": (EMBEDDED / "draft-python.gguf").read_bytes()}
        code, out, err = run("pull", "me/mine-GGUF")
    assert (code, out.splitlines()[0]) == (0, "mine: 1.7 MB from me/mine-GGUF, licence apache-2.0")
    assert "mine.gguf 1.7 of 1.7 MB" in err
    assert run("use", "mine", "--for", "python")[0] == 0
    assert load()[0].for_language("python").draft == "mine"
    assert run("list")[1].splitlines()[-1].endswith("draft python")
    assert run("use", "mine", "--as", "edit")[1].startswith("mine is the model of next edits now")
    assert load()[0].edits.model == "mine"
    assert run("use", "mine")[1].startswith("mine is the draft of every language now")
    assert run("use", "target")[1].startswith("target is the target now")
    assert 'did you mean "python"' in run("use", "none", "--for", "pythn")[2]
    for arguments, message in [
        (("use", "target", "--for", "go", "--as", "target"), "leave out --for"),
        (("use", "none", "--as", "target"), "choice of drafts"),
        (("use", "none", "--as", "edit"), "choice of drafts"),
        (("use", "target", "--for", "go", "--as", "edit"), "leave out --for"),
        (("use", "nonesuch"), "no model 'nonesuch'"),
        (("inspect", "nonesuch"), "no model 'nonesuch'"),
    ]:
        code, out, err = run(*arguments)
        assert (code, out) == (2, "")
        assert message in err
    assert run("remove", "mine") == (0, f"{models_folder() / 'mine.gguf'} is deleted\n", "")


def test_a_model_of_next_edits_is_no_target(capsys):
    models_folder().mkdir(parents=True)
    name = "Zeta_2.1.Q8_0"
    shutil.copy(EMBEDDED_TARGET, models_folder() / f"{name}.gguf")
    (models_folder() / "folder.gguf").mkdir()
    assert known() == sorted([*EMBEDDED_NAMES, name])
    assert main(["models", "list", "--json"]) == 0
    made = [Path(each["path"]).stem for each in json.loads(capsys.readouterr().out) if each["edits"]]
    assert made == ["edit", name]
    for each in made:
        assert main(["models", "use", each]) == 0
        assert (load()[0].edits.model, load()[0].target.path) == (each, "")
    capsys.readouterr()
    assert main(["models", "list"]) == 0
    uses = [line for line in capsys.readouterr().out.splitlines() if line.startswith(tuple(made))]
    assert all(line.endswith(" next edits") for line in uses)
    assert len(uses) == 2


def test_a_damaged_model_does_not_hide_the_others(tmp_path, capsys):
    models_folder().mkdir(parents=True)
    (models_folder() / "bad.gguf").write_bytes(b"GGUF and no more")
    assert main(["models", "list"]) == 0
    out = capsys.readouterr()
    assert "draft-python" in out.out
    assert "bad.gguf" in out.err


@pytest.mark.skipif(sys.platform == "win32", reason="named pipes")
def test_a_pipe_among_the_models_is_not_waited_for(tmp_path):
    folder = tmp_path / "models"
    folder.mkdir()
    os.mkfifo(folder / "pipe.gguf")
    command = [sys.executable, "-m", "codespec", "models", "list"]
    env = {**os.environ, "CODESPEC_DATA": str(tmp_path)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    assert "draft-python" in done.stdout
    assert "pipe.gguf" in done.stderr


def printed(code):
    """What Python prints that runs ``code``."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_what_is_heavy_is_not_imported_by_the_command_line():
    code = (
        "import sys, codespec.cli.main; print({'huggingface_hub', 'tomlkit', 'numpy', 'llama_cpp'} & set(sys.modules))"
    )
    assert printed(code) == "set()\n"


def test_a_server_imports_little_before_it_starts_the_model_process():
    code = (
        "import sys, codespec.config, codespec.daemon.start\n"
        "print({'codespec.llama.model', 'urllib.request', 'numpy', 'pygls'} & set(sys.modules))"
    )
    assert printed(code) == "set()\n"


def test_the_library_comes_without_the_rest_of_its_package():
    code = (
        "import sys\nfrom codespec.llama.devices import devices\nfrom codespec.llama.runtime import library\n"
        "version = library().llama_print_system_info()\nassert devices()\n"
        "print([name for name in sys.modules if name.startswith(('llama_cpp', 'jinja2', 'diskcache'))])\n"
        "import llama_cpp\nprint(llama_cpp.Llama.__name__, llama_cpp.llama_cpp.llama_print_system_info() == version)\n"
        "llama_cpp._utils.outnull_file.close(), llama_cpp._utils.errnull_file.close()"
    )
    assert printed(code) == "[]\nLlama True\n"


def test_the_library_is_loaded_while_other_threads_import():
    code = (
        "import sys, threading\nfrom codespec.llama import runtime\nsys.setswitchinterval(1e-6)\n"
        "def others():\n"
        "    while True:\n"
        "        for n in range(1000): sys.modules[f'other_{n}'] = sys\n"
        "        for n in range(1000): del sys.modules[f'other_{n}']\n"
        "threading.Thread(target=others, daemon=True).start()\n"
        "for _ in range(300): runtime._binding('_ctypes_extensions')\n"
        "print('loaded')"
    )
    assert printed(code) == "loaded\n"


def test_the_library_is_that_of_who_has_imported_it_before():
    code = (
        "import llama_cpp\nfrom codespec.llama.runtime import ggml, library\n"
        "print(library() is llama_cpp.llama_cpp, ggml() is llama_cpp._ggml.libggml)\n"
        "llama_cpp._utils.outnull_file.close(), llama_cpp._utils.errnull_file.close()"
    )
    assert printed(code) == "True True\n"


def test_what_is_said_of_the_shipped_models_is_so():
    remedy = "from codespec.models.index import *; SHIPPED.write_text(look_beforehand(), 'utf-8')"
    assert SHIPPED.read_text("utf-8") == look_beforehand(), f"made anew by: {remedy}"


def test_nobody_has_to_wait_until_the_shipped_models_are_read(tmp_path, monkeypatch):
    monkeypatch.setenv("CODESPEC_CACHE", str(tmp_path / "cache"))
    read = []
    monkeypatch.setattr("codespec.models.index.inspect", lambda path: read.append(path))
    look_through()
    assert not read


def labelled(path: Path, languages: str) -> Path:
    """The embedded draft with languages in its metadata."""
    key = LANGUAGES_KEY.encode()
    info = (EMBEDDED / "draft-python.gguf").read_bytes().replace(key, key[:-1] + b"_", 1)
    key, value = LANGUAGES_KEY.encode(), languages.encode()
    entry = struct.pack("<Q", len(key)) + key + struct.pack("<IQ", 8, len(value)) + value
    magic, version, tensors, entries = struct.unpack("<4sIQQ", info[:24])
    key = b"codespec.test.padding"  # what follows the metadata is aligned
    filler = struct.pack("<Q", len(key)) + key + struct.pack("<IQ", 8, 0)
    room = -(len(entry) + len(filler)) % 32
    filler = filler[:-8] + struct.pack("<Q", room) + b" " * room
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(struct.pack("<4sIQQ", magic, version, tensors, entries + 2) + entry + filler + info[24:])
    return path


def test_the_best_draft_of_a_language(tmp_path, monkeypatch):
    monkeypatch.setenv("CODESPEC_CACHE", str(tmp_path / "cache"))
    target = inspect(EMBEDDED_TARGET)

    def best_of(language):
        return best_draft(by_id(language), target.vocabularies, target.parameters)

    embedded = EMBEDDED / "draft-python.gguf"
    assert best_of("python") == embedded
    assert best_of("go") == EMBEDDED / "draft-go.gguf"
    assert best_of("typescriptreact") == EMBEDDED / "draft-javascript.gguf"
    assert best_of("cpp") == EMBEDDED / "draft-c.gguf"
    assert best_of("sql") == EMBEDDED / "draft-general.gguf"
    general = labelled(models_folder() / "any.gguf", "general")
    go = labelled(models_folder() / "go.gguf", "go,rust")
    assert inspect(go).languages == ("go", "rust")
    assert [best_of(name) for name in ("go", "rust", "sql")] == [go, go, general]
    own = labelled(models_folder() / "mine.gguf", "python")
    assert best_of("python") == own
    os.utime(labelled(models_folder() / "newer.gguf", "go"), (2e9, 2e9))
    assert best_of("go").stem == "newer"
    (models_folder() / "bad.gguf").write_bytes(b"GGUF and no more")
    assert best_of("go").stem == "newer"
    assert best_draft(by_id("go"), {"another"}, target.parameters) is None
    assert best_draft(by_id("go"), target.vocabularies, inspect(go).parameters) is None
    (models_folder() / "bad.gguf").unlink()  # what does not load is tried again
    read = []
    monkeypatch.setattr("codespec.models.index.inspect", lambda path: read.append(path))
    assert best_of("go").stem == "newer"
    assert not read
    (tmp_path / "cache" / "models.json").write_text('{"version": 1, "models": []}')
    monkeypatch.undo()
    monkeypatch.setenv("CODESPEC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CODESPEC_DATA", str(tmp_path / "data"))
    assert best_of("go").stem == "newer"


def test_the_draft_of_a_name_is_the_one_that_the_engine_takes():
    own = labelled(models_folder() / "mine.gguf", "go")
    assert draft_of(EMBEDDED_TARGET, "auto", by_id("go")) == own
    assert draft_of(EMBEDDED_TARGET, "none", by_id("go")) is None
    assert draft_of(EMBEDDED_TARGET, str(own), by_id("python")) == own
    engine = LocalEngine(EMBEDDED_TARGET)
    languages = [by_id(name) for name in ("python", "go", "sql")]
    assert [draft_of(EMBEDDED_TARGET, "auto", each) for each in languages] == [
        engine.drafts.find("auto", each) for each in languages
    ]
    engine.close()


def test_a_settings_file_behind_a_link_stays_one_with_its_line_ends(tmp_path):
    real, link = tmp_path / "dotfiles.toml", tmp_path / "codespec.toml"
    real.write_bytes(b"seed = 3\r\n[target]\r\nthreads = 2\r\n")
    link.symlink_to(real)
    choose(link, "target", "big")
    assert link.is_symlink()
    written = real.read_bytes()
    assert written.startswith(b"seed = 3\r\n[target]\r\nthreads = 2\r\n")
    assert b'path = "big"' in written


def test_a_target_that_is_gone_is_no_dead_end(capsys):
    choose(user_file(), "target", "gone")
    assert main(["models", "list"]) == 0
    assert main(["models", "use", "target"]) == 0
    assert load()[0].target.path == "target"
    assert "the target now" in capsys.readouterr().out


def test_the_embedded_target_by_either_name_is_never_a_draft(smollm2, capsys):
    models_folder().mkdir(parents=True)
    shutil.copy(smollm2, models_folder() / "smollm2-135m.gguf")
    assert main(["models", "use", "smollm2-135m"]) == 0
    assert "not trained to fill in" not in capsys.readouterr().err, "an adapter that comes with codespec teaches it"
    for name in ("target", "embedded"):
        assert main(["models", "use", name]) == 0
        assert capsys.readouterr().out.startswith(f"{name} is the target now")
        assert find_target(load()[0].target.path) == EMBEDDED_TARGET
    assert main(["models", "use", "nonesuch"]) == 2
    assert "one of embedded, smollm2-135m;" in capsys.readouterr().err, "and no drafts, which are found by themselves"
