"""Fetching models, from a stand-in for the hub."""

import shutil
import socket
import subprocess

import pytest

from codespec.models.checksums import verify
from codespec.models.hub import Download, Remote, look_up, pull, remove
from codespec.models.info import inspect
from codespec.models.registry import EMBEDDED, models_folder
from codespec.protocols import CodespecError
from tests.stand_in_hub import stand_in_hub

DRAFT = (EMBEDDED / "draft-python.gguf").read_bytes()
SMALL = "ggml-org/Qwen2.5-Coder-0.5B-Q8_0-GGUF"


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("CODESPEC_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("HF_HUB_DOWNLOAD_TIMEOUT", "5")


@pytest.fixture
def hub():
    with stand_in_hub() as hub:
        hub.files["me/models-GGUF"] = {"README.md": b"no model", "sub/Mine-Q8_0.gguf": DRAFT, "Mine-Q4_0.gguf": b"GGUF"}
        hub.files[SMALL] = {"qwen2.5-coder-0.5b-q8_0.gguf": DRAFT}
        yield hub


def quiet(what: str, done: int, size: int) -> None:
    assert 0 <= done <= size


def test_a_model_comes_whole_and_is_not_fetched_twice(hub):
    offer = look_up("me/models-GGUF", hub.url)
    assert (offer.name, offer.size, offer.licence) == ("mine-q8_0", len(DRAFT), "apache-2.0")
    told = []
    path = pull(offer, lambda *each: told.append(each), hub.url)
    assert path == models_folder() / "mine-q8_0.gguf"
    assert path.read_bytes() == DRAFT
    assert inspect(path).parameters == 1_344_128
    assert ("sub/Mine-Q8_0.gguf", len(DRAFT), len(DRAFT)) in told
    assert told[-1] == ("checking sub/Mine-Q8_0.gguf", len(DRAFT), len(DRAFT))
    asked = len(hub.ranges)
    assert pull(offer, quiet, hub.url) == path
    assert len(hub.ranges) == asked


def test_names_of_the_catalogue(hub):
    assert pull(look_up("Qwen2.5-Coder-0.5B-Q8_0", hub.url), quiet, hub.url).name == "qwen2.5-coder-0.5b-q8_0.gguf"


def test_what_broke_off_goes_on_where_it_did(hub, monkeypatch):
    offer = look_up("me/models-GGUF", hub.url)
    hub.breaks_after = 1_000_000
    monkeypatch.setattr("huggingface_hub.file_download.time.sleep", lambda seconds: None)
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 1 << 16)  # else 10 MB are lost
    with pytest.raises(CodespecError, match="what has come is kept"):
        pull(offer, quiet, hub.url)
    assert not list(models_folder().glob("*.gguf"))
    [part] = (models_folder() / ".partial").glob("*.part")
    come = part.stat().st_size
    assert 0 < come <= 1_000_000
    hub.breaks_after, hub.ranges[:] = None, []
    assert pull(offer, quiet, hub.url).read_bytes() == DRAFT
    assert hub.ranges == [f"bytes={come}-"]


def test_what_is_not_what_the_hub_says_is_not_kept(hub):
    hub.lies = True
    with pytest.raises(CodespecError, match="size and checksum that me/models-GGUF gives"):
        pull(look_up("me/models-GGUF", hub.url), quiet, hub.url)
    assert not list(models_folder().rglob("*.gguf"))
    assert not list(models_folder().rglob("*.part"))


def test_of_several_one_is_named(hub):
    assert look_up("me/models-GGUF:q4_0", hub.url).files[0].file == "Mine-Q4_0.gguf"
    assert look_up("me/models-GGUF:Mine-Q4_0.gguf", hub.url).files[0].file == "Mine-Q4_0.gguf"
    hub.files["me/odd-GGUF"] = {"a.gguf": b"GGUF", "b.gguf": b"GGUF"}
    for name in ("me/odd-GGUF", "me/odd-GGUF:c"):
        with pytest.raises(CodespecError, match=r"several models.*a, b"):
            look_up(name, hub.url)


def test_a_model_in_parts(hub):
    names = [f"Big-Q8_0-{number:05d}-of-00002.gguf" for number in (1, 2)]
    hub.files["me/big-GGUF"] = {names[1]: b"GGUF second", names[0]: DRAFT}
    path = pull(look_up("me/big-GGUF", hub.url), quiet, hub.url)
    assert path.name == "big-q8_0-00001-of-00002.gguf"
    assert (models_folder() / "big-q8_0-00002-of-00002.gguf").read_bytes() == b"GGUF second"
    assert len(remove("big-q8_0")) == 2
    assert not list(models_folder().glob("*.gguf"))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nobody/nothing", "no such model"),
        ("nonsense", "known are smollm2-135m, qwen2.5-coder-0.5b-q8_0"),
        ("me/empty", "has no GGUF files"),
        ("../../etc/passwd", "no model"),
    ],
)
def test_what_is_not_there(hub, name, message):
    hub.files["me/empty"] = {"model.safetensors": b""}
    with pytest.raises(CodespecError, match=message):
        look_up(name, hub.url)


def test_a_licence_that_was_not_accepted(hub):
    hub.gated.add("me/models-GGUF")
    with pytest.raises(CodespecError, match=r"licence accepted.*huggingface\.co/me/models-GGUF.*hf auth login"):
        pull(look_up("me/models-GGUF", hub.url), quiet, hub.url)


def test_no_network():
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
    with pytest.raises(CodespecError, match=r"cannot be reached.*HF_ENDPOINT.*put a \.gguf file"):
        look_up(SMALL, address)


def test_no_room(hub, monkeypatch):
    usage = shutil.disk_usage(".")._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage)
    with pytest.raises(CodespecError, match=r" MB are needed and there is no room but for 0 MB .*CODESPEC_DATA"):
        pull(look_up(SMALL, hub.url), quiet, hub.url)


def test_two_at_a_time(hub):
    offer = look_up(SMALL, hub.url)

    def again(what, done, size):
        with pytest.raises(CodespecError, match="another"):
            pull(offer, quiet, hub.url)

    pull(offer, again, hub.url)


def test_removing(hub):
    path = pull(look_up(SMALL, hub.url), quiet, hub.url)
    assert remove(path.stem) == (path,)
    assert not path.exists()
    with pytest.raises(CodespecError, match="no model"):
        remove(path.stem)
    with pytest.raises(CodespecError, match="comes with codespec"):
        remove("target")


def test_a_model_is_compared_again_with_what_was_fetched(hub):
    path = pull(look_up("me/models-GGUF", hub.url), quiet, hub.url)
    verify(path, quiet)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(CodespecError, match=r"mine-q8_0\.gguf: its checksum has changed since it was fetched"):
        verify(path, quiet)
    remove(path.stem)
    path.write_bytes(content)
    with pytest.raises(CodespecError, match="its checksum is not known"):
        verify(path, quiet)


def test_checksums_are_those_of_sha256sum(hub):
    path = pull(look_up("me/models-GGUF", hub.url), quiet, hub.url)
    if shutil.which("sha256sum") is None:
        pytest.skip("no sha256sum")
    [noted] = (path.parent / ".checksums").iterdir()
    assert subprocess.run(["sha256sum", "--check", noted], cwd=path.parent, check=False).returncode == 0


def test_a_file_name_of_the_hub_stays_in_the_folder(hub):
    offer = Download("evil", (Remote(SMALL, "../../evil.gguf", 1, ""),), "")
    with pytest.raises(CodespecError):
        pull(offer, quiet, hub.url, unverified=True)
    assert not list(models_folder().parent.parent.rglob("evil*"))


@pytest.mark.parametrize("checksum", ["../../../planted", "/tmp/planted", "f" * 63, "F" * 64, 7, ["f" * 64]])
def test_a_checksum_that_is_none_is_refused_and_names_no_file(hub, checksum, tmp_path):
    planted = tmp_path / "planted.part"
    planted.write_bytes(b"mine")
    hub.checksums["Mine-Q4_0.gguf"] = str(planted.with_suffix("")) if checksum == "/tmp/planted" else checksum
    with pytest.raises(CodespecError, match="no size and no checksum"):
        pull(look_up("me/models-GGUF:q4_0", hub.url), quiet, hub.url)
    assert planted.read_bytes() == b"mine"


@pytest.mark.parametrize("size", [-1, "4", 1.5])
def test_a_size_that_is_none_is_refused(hub, size):
    hub.sizes["Mine-Q4_0.gguf"] = size
    with pytest.raises(CodespecError, match="no size and no checksum"):
        look_up("me/models-GGUF:q4_0", hub.url)


@pytest.mark.parametrize("unsaid", ["checksums", "sizes"])
def test_what_cannot_be_examined_is_fetched_only_where_that_is_wanted(hub, unsaid):
    getattr(hub, unsaid)["Mine-Q4_0.gguf"] = "" if unsaid == "checksums" else 0
    offer = look_up("me/models-GGUF:q4_0", hub.url)
    with pytest.raises(CodespecError, match=r"no checksum, or no size.*--unverified"):
        pull(offer, quiet, hub.url)
    assert not hub.ranges
    assert pull(offer, lambda *_: None, hub.url, unverified=True).read_bytes() == b"GGUF"


def test_a_body_ends_where_the_hub_said(hub, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 1 << 16)
    hub.more = 1 << 30
    with pytest.raises(CodespecError, match=r"more came than the [\d,]+ bytes"):
        pull(look_up("me/models-GGUF:q8_0", hub.url), lambda *_: None, hub.url)
    assert not list(models_folder().rglob("*.part"))


def test_a_body_without_an_end_leaves_room_on_the_disk(hub, monkeypatch):
    usage = shutil.disk_usage(".")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=(1 << 28) + (32 << 20)))
    hub.sizes["Mine-Q4_0.gguf"] = 0
    hub.more = 1 << 30
    with pytest.raises(CodespecError, match="more came than the disk can hold"):
        pull(look_up("me/models-GGUF:q4_0", hub.url), lambda *_: None, hub.url, unverified=True)
    assert not list(models_folder().rglob("*.part"))


def test_a_part_longer_than_its_file_is_fetched_anew(hub):
    offer = look_up("me/models-GGUF:q4_0", hub.url)
    part = models_folder() / ".partial" / f"{offer.files[0].sha256}.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"GGUF and more")
    assert pull(offer, quiet, hub.url).read_bytes() == b"GGUF"


def test_another_model_of_the_same_name_is_not_taken_for_it(hub):
    pull(look_up("me/models-GGUF", hub.url), quiet, hub.url)
    hub.files["you/other-GGUF"] = {"mine-q8_0.gguf": DRAFT[:-1] + b"?"}
    with pytest.raises(CodespecError, match=r"another model.*models remove mine-q8_0"):
        pull(look_up("you/other-GGUF", hub.url), quiet, hub.url)
    assert (models_folder() / "mine-q8_0.gguf").read_bytes() == DRAFT


def test_names_from_outside_do_not_act_on_the_terminal(hub):
    hub.files["me/odd-GGUF"] = {"a\x1b[2Jb.gguf": b"GGUF"}
    assert look_up("me/odd-GGUF", hub.url).name == "a-2jb"
