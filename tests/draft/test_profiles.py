"""What is kept between runs: whole or not at all, and only for what it was measured on."""

import dataclasses
import json
import logging
import os

import pytest

from codespec.draft import costs as module_of_costs
from codespec.draft.acceptance import Acceptance
from codespec.draft.costs import CostCurve
from codespec.draft.storage import profiles as module
from codespec.draft.storage.profiles import VARIABLE, Profiles, Setup, default_folder, model_hash
from codespec.engine.local import LocalEngine
from codespec.languages import by_id
from codespec.llama.context import Context
from codespec.models.registry import EMBEDDED_TARGET, find_draft
from codespec.protocols import CodespecError, Limits
from tests.present import present

CURVE = CostCurve((0, 512), (1, 8, 33), ((1.0, 2.5, 9.0), (1.5, 3.0, 12.0)), 0.2)
SETUP = Setup("library", ("EPYC",), 0, 2, "f16", "auto", False, 0)


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF" + bytes(3 << 20))
    return path


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "profiles"


def counts(*sources):
    acceptance = Acceptance()
    for source in sources:
        acceptance.learn((source, 2), 0, True)
    return acceptance


def test_nobodys_own_profiles_are_read_by_tests(monkeypatch, tmp_path):
    assert default_folder() is None
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    assert default_folder() == tmp_path
    monkeypatch.delenv(VARIABLE)
    assert present(default_folder()).name == "profiles"


def test_curves_are_found_again(folder, model):
    Profiles(folder).keep_curve(model, SETUP, CURVE)
    assert Profiles(folder).curve(model, SETUP) == CURVE
    other = dataclasses.replace(CURVE, switch_ms=0.3)
    Profiles(folder).keep_curve(model, SETUP, other)
    assert Profiles(folder).curve(model, SETUP) == other
    assert [path.suffix for path in folder.iterdir()] == [".json"]
    if os.name == "posix":
        assert folder.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "change",
    [
        {"library": "newer"}, {"devices": ("Xeon",)}, {"devices": ("EPYC", "H100")}, {"gpu_layers": 1}, {"threads": 1},
        {"kv_type": "q8_0"}, {"flash_attention": "on"}, {"exact": True}, {"rows": 1},
    ],
    ids=str,
)  # fmt: skip
def test_a_curve_of_another_set_up_is_not_used(change, folder, model):
    profiles = Profiles(folder)
    profiles.keep_curve(model, SETUP, CURVE)
    assert profiles.curve(model, dataclasses.replace(SETUP, **change)) is None


def test_another_model_in_the_same_place_is_another_model(folder, model, tmp_path):
    profiles = Profiles(folder)
    profiles.keep_curve(model, SETUP, CURVE)
    moved = model.rename(tmp_path / "moved.gguf")
    assert profiles.curve(moved, SETUP) == CURVE
    assert profiles.curve(model, SETUP) is None
    for content in (b"GGUF" + bytes((3 << 20) - 1) + b"x", b"GGUX" + bytes(3 << 20), b"GGUF" + bytes(4 << 20)):
        model.write_bytes(content)
        assert profiles.curve(model, SETUP) is None
    model.write_bytes(b"GGUF")
    assert len(model_hash(model)) == 32


def test_calibrations_are_found_again(folder, model):
    Profiles(folder).keep_acceptance(model, None, {"python/greedy/free": counts("ngram", "model")})
    found = Profiles(folder).acceptance(model, None)
    assert found.keys() == {"python/greedy/free"}
    assert found["python/greedy/free"].as_json() == counts("ngram", "model").as_json()
    assert Profiles(folder).acceptance(model, model) == {}


def test_two_processes_keep_each_others_kinds_of_text(folder, model):
    one, two = Profiles(folder), Profiles(folder)
    one.keep_acceptance(model, None, {"python": counts("ngram"), "go": counts("ngram")})
    two.keep_acceptance(model, None, {"go": counts("model")})
    found = one.acceptance(model, None)
    assert found["python"].as_json() == counts("ngram").as_json()
    assert found["go"].as_json() == counts("model").as_json()


def sealed(path, **changes):
    """The file with other contents and a checksum that fits them."""
    body = {**json.loads(path.read_text()), **changes}
    del body["sha256"]
    return json.dumps({"sha256": module._sum(body), **body}).encode()


DAMAGE = {
    "empty": lambda path: b"",
    "cut off": lambda path: path.read_bytes()[:-40],
    "a bit flipped": lambda path: path.read_bytes().replace(b"2.5", b"3.5"),
    "zeros": lambda path: bytes(path.stat().st_size),
    "no object": lambda path: b"[1, 2]",
    "no text": lambda path: b"\xff\xfe\x00",
    "deep": lambda path: b"[" * 100_000,
    "huge": lambda path: b" " * (5 << 20),
    "nonsense": lambda path: sealed(path, data={"contexts": [0], "tokens": [2], "ms": [[1]], "switch_ms": 0}),
    "about something else": lambda path: sealed(path, about={"version": 1}),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_file_is_set_aside_and_made_anew(damage, folder, model, caplog):
    profiles = Profiles(folder)
    profiles.keep_curve(model, SETUP, CURVE)
    [path] = folder.iterdir()
    path.write_bytes(damage(path))
    with caplog.at_level(logging.WARNING):
        assert profiles.curve(model, SETUP) is None
    assert "set aside as" in caplog.text
    assert [path.suffix for path in folder.iterdir()] == [".damaged"]
    profiles.keep_curve(model, SETUP, CURVE)
    assert profiles.curve(model, SETUP) == CURVE


def test_damaged_counts_are_set_aside_too(folder, model, caplog):
    profiles = Profiles(folder)
    profiles.keep_acceptance(model, None, {"python": counts("ngram")})
    [path] = folder.iterdir()
    path.write_bytes(sealed(path, data={"python": [["ngram", -99, 0, 1, 1]]}))
    assert profiles.acceptance(model, None) == {}
    assert "set aside as" in caplog.text


def test_a_folder_that_cannot_be_used_is_told_once(tmp_path, model, caplog):
    (tmp_path / "file").write_text("no folder")
    profiles = Profiles(tmp_path / "file" / "profiles")
    for _ in range(2):
        profiles.keep_curve(model, SETUP, CURVE)
        profiles.keep_acceptance(model, None, {"python": counts("ngram")})
        assert profiles.curve(model, SETUP) is None
        assert profiles.acceptance(model, None) == {}
    assert len(caplog.records) == 1


def test_no_folder_keeps_nothing(model):
    profiles = Profiles(None)
    profiles.keep_curve(model, SETUP, CURVE)
    profiles.keep_acceptance(model, None, {"python": counts("ngram")})
    assert profiles.curve(model, SETUP) is None
    assert profiles.acceptance(model, None) == {}


def test_what_is_longest_unused_goes_first(folder, model, monkeypatch):
    monkeypatch.setattr(module, "MOST_FILES", 3)
    profiles = Profiles(folder)
    for threads in range(1, 6):
        profiles.keep_curve(model, dataclasses.replace(SETUP, threads=threads), CURVE)
        for age, path in enumerate(sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime_ns, reverse=True)):
            os.utime(path, (1e9 - 10 * age,) * 2)
        assert profiles.curve(model, dataclasses.replace(SETUP, threads=1)) == CURVE  # used again and again
    found = [n for n in range(1, 6) if profiles.curve(model, dataclasses.replace(SETUP, threads=n))]
    assert found == [1, 4, 5]


def engine_of(profiles):
    engine = LocalEngine(EMBEDDED_TARGET, profiles=profiles, threads=1)
    engine.drafts.choose(find_draft("auto", by_id("python")))
    return engine


def generated(engine, tokens=24):
    prompt = engine.vocabulary.tokenize("def area(self):\n    return self.width * ")
    return "".join(chunk.text for chunk in engine.generate(prompt, limits=Limits(tokens), language="python"))


@pytest.fixture
def quick(monkeypatch):
    from codespec.engine import calibration

    monkeypatch.setattr(calibration, "MEASURE_S", 0.02)
    monkeypatch.setattr(calibration, "FAR", 0)
    monkeypatch.setattr(module_of_costs, "DISTURBED", 1.0)  # by other tests, most likely


def test_an_engine_measures_once_and_remembers(folder, quick):
    engine = engine_of(Profiles(folder))
    try:
        assert not engine.costs.measured
        assert not engine.measure(lambda: False)
        left = 20

        def go_on():
            nonlocal left
            left -= 1
            return left > 0

        assert not engine.measure(go_on)
        assert not engine.costs.measured
        text = generated(engine)
        assert engine.measure(lambda: True)
        assert engine.costs.measured
        assert generated(engine) == text
        engine.drafts.save()
    finally:
        engine.close()
    kinds = {path.name.partition("-")[0] for path in folder.iterdir()}
    assert kinds == {"curve", "acceptance"}
    assert len(list(folder.iterdir())) == 3

    engine = engine_of(Profiles(folder))
    try:
        assert engine.costs.measured
        assert engine.drafts._models[engine.drafts.chosen].running.measured
        assert engine.measure(lambda: pytest.fail("it is measured"))
        known = engine.drafts.combined("python/greedy/free").acceptance.as_json()
        assert known
        assert generated(engine) == text
        assert engine.drafts.combined("python/greedy/free").acceptance.as_json() != known
    finally:
        engine.close()


def test_a_disturbed_measurement_is_used_and_not_kept(folder, quick, monkeypatch):
    monkeypatch.setattr(module_of_costs, "DISTURBED", -1.0)
    engine = engine_of(Profiles(folder))
    try:
        assert engine.measure(lambda: True)
        assert engine.costs.measured
        assert not folder.exists()
    finally:
        engine.close()


def test_an_engine_without_profiles_measures_for_itself(quick, tmp_path):
    engine = engine_of(None)
    try:
        assert engine.measure(lambda: True)
        assert engine.costs.measured
    finally:
        engine.close()


def test_abort_stops_a_measurement(quick):
    engine = engine_of(None)
    passes = 0

    def go_on():
        nonlocal passes
        passes += 1
        if passes == 10:
            engine.abort()  # from this thread: the pass that follows is stopped
        return True

    try:
        assert not engine.measure(go_on)
        assert passes == 10
        assert engine.measure(lambda: True)
    finally:
        engine.close()


def test_what_cannot_be_measured_is_left(quick, monkeypatch):
    engine = engine_of(None)
    try:

        def refuse(context, length, follow):
            raise CodespecError("no memory")

        monkeypatch.setattr(Context, "alike", refuse)
        assert engine.measure(lambda: True)
        assert not engine.costs.measured
        assert generated(engine)
    finally:
        engine.close()


def test_saving_waits_for_its_time(folder):
    engine = engine_of(Profiles(folder))
    try:
        generated(engine)
        engine.drafts.save(every_s=300.0)
        assert not folder.exists()
        engine.drafts.save(every_s=1e-6)
        assert len(list(folder.iterdir())) == 1
    finally:
        engine.close()
