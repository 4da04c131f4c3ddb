"""Draft models that come and go while others serve."""

import contextlib
import os
import re
import shutil
import threading
import time

import pytest

from codespec.draft.draft_length import FixedLengthDraft
from codespec.engine.local import LocalEngine
from codespec.llama.model import Model
from codespec.models.info import inspect
from codespec.models.registry import EMBEDDED, EMBEDDED_TARGET
from codespec.protocols import CodespecError, Limits
from tests import permuted
from tests.present import present

PROMPT = [*range(1000, 1040)]


@pytest.fixture
def drafts(tmp_path):
    """Three files of the same draft."""
    return [shutil.copy(EMBEDDED / "draft-python.gguf", tmp_path / f"{name}.gguf") for name in "abc"]


@pytest.fixture
def engine():
    engine = LocalEngine(EMBEDDED_TARGET, context_length=256)
    yield engine
    engine.close()


def drafted(engine):
    """Whether the draft model proposes; whether that pays beside so small a target is a question of the clock."""
    for _ in engine.generate(PROMPT, limits=Limits(24)):
        pass
    model = engine.drafts.model
    for _ in engine.generate(PROMPT, limits=Limits(24), speculate=FixedLengthDraft(model, 4) if model else False):
        pass
    return engine.statistics.by_source["model"].drafted > 0


def until(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_the_old_one_serves_until_the_new_one_is_there(drafts):
    first, second, _ = drafts
    through = threading.Event()
    through.set()

    def once_let_through(sequence, role):
        assert role == "target" or through.wait(60)
        return sequence

    engine = LocalEngine(EMBEDDED_TARGET, context_length=256, wrap=once_let_through)
    try:
        engine.drafts.choose(first)
        assert engine.drafts.chosen == first
        through.clear()
        engine.drafts.choose(second, wait=False)
        assert engine.drafts.chosen == first
        assert drafted(engine)
        engine.drafts.choose(second, wait=False)
        assert engine.drafts.chosen == first
        through.set()

        def switched():
            engine.drafts.choose(second, wait=False)
            return engine.drafts.chosen == second

        until(switched)
        assert drafted(engine)
        engine.drafts.choose(first, wait=False)  # still there
        assert engine.drafts.chosen == first
    finally:
        through.set()
        engine.close()


def test_without_a_draft_until_the_first_is_there(engine, drafts):
    engine.drafts.choose(drafts[0], wait=False)
    assert engine.drafts.chosen is None
    assert not drafted(engine)
    engine.drafts.choose(drafts[0])  # waits for what is being loaded
    assert engine.drafts.chosen == drafts[0]
    engine.drafts.choose(None, wait=False)
    assert engine.drafts.chosen is None


def test_those_longest_unused_are_let_go(drafts):
    a, b, c = drafts
    engine = LocalEngine(EMBEDDED_TARGET, context_length=256, drafts_bytes=4_000_000)  # two of them
    try:
        for path in (a, b, a, c):
            engine.drafts.choose(path)
            assert drafted(engine)
        assert list(engine.drafts._models._held) == [a, c]
        engine.drafts.choose(b)
        assert list(engine.drafts._models._held) == [c, b]
        assert drafted(engine)
        assert not engine.measure(lambda: False)  # nothing of what is gone is touched
    finally:
        engine.close()


def test_one_that_is_larger_than_the_limit_serves_all_the_same(drafts):
    engine = LocalEngine(EMBEDDED_TARGET, context_length=256, drafts_bytes=0)
    try:
        for path in drafts:
            engine.drafts.choose(path)
            assert drafted(engine)
            assert list(engine.drafts._models._held) == [path]
    finally:
        engine.close()


def test_one_that_cannot_be_loaded_leaves_the_old_one(engine, drafts, tmp_path):
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(b"GGUF and no more")
    engine.drafts.choose(drafts[0])
    with contextlib.suppress(CodespecError):  # it may be known at once
        engine.drafts.choose(bad, wait=False)
    with pytest.raises(CodespecError, match=r"bad\.gguf"):
        engine.drafts.choose(bad)
    assert engine.drafts.chosen == drafts[0]
    assert drafted(engine)
    shutil.copy(drafts[1], bad)  # mended
    engine.drafts.choose(bad)
    assert engine.drafts.chosen == bad


@pytest.mark.parametrize("late", [False, True])
def test_closing_while_one_is_loaded(drafts, monkeypatch, late):
    """What is loaded meanwhile is freed, also where it was too late to stop its loading."""
    begun, models, through = threading.Semaphore(0), [], threading.Event()

    class Noted(Model):
        def __init__(self, *arguments, **more):
            models.append(self)
            begun.release()
            super().__init__(*arguments, **more)

    def when_closing(sequence, role):
        if role == "draft":
            begun.release()
            assert through.wait(60)
        return sequence

    monkeypatch.setattr("codespec.engine.draft_files.Model", Noted)
    engine = LocalEngine(EMBEDDED_TARGET, context_length=256, wrap=when_closing)
    for path in drafts:
        engine.drafts.choose(path, wait=False)
    assert all(begun.acquire(timeout=60) for _ in range(len(drafts) * (1 + late)))
    threading.Timer(0.1, through.set).start()
    engine.close()
    assert len(models) == len(drafts)
    assert not any(model.pointer for model in models)


def test_padding_at_the_end_of_a_vocabulary_is_no_difference(tmp_path):
    padded = permuted.write_padded(EMBEDDED / "draft-python.gguf", tmp_path / "padded.gguf", 128)
    larger = permuted.write_padded(EMBEDDED_TARGET, tmp_path / "target.gguf", 64)
    counts = set()
    for target, draft in [
        (EMBEDDED_TARGET, EMBEDDED / "draft-python.gguf"),
        (EMBEDDED_TARGET, padded),
        (larger, EMBEDDED / "draft-python.gguf"),
        (larger, padded),
    ]:
        engine = LocalEngine(target, context_length=256)
        try:
            engine.drafts.choose(draft)
            assert not engine.notes
            text = "".join(
                chunk.text
                for chunk in engine.generate(
                    PROMPT, limits=Limits(48), speculate=FixedLengthDraft(present(engine.drafts.model), 4)
                )
            )
            counts.add((text, engine.statistics.drafted, engine.statistics.accepted))
        finally:
            engine.close()
    assert len(counts) == 1
    assert inspect(padded).vocabulary == inspect(EMBEDDED_TARGET).vocabulary


def test_the_first_token_that_differs_is_named(tmp_path):
    engine = LocalEngine(EMBEDDED_TARGET, context_length=256)
    try:
        engine.drafts.choose(permuted.write(EMBEDDED / "draft-python.gguf", tmp_path / "shuffled.gguf"))
        [note] = engine.notes
        assert re.search(r"token 0 is '.+' in the one and '<\|endoftext\|>' in the other", note)
    finally:
        engine.close()


def test_a_file_that_was_replaced_is_loaded_again(engine, drafts):
    first, second, _ = drafts
    engine.drafts.choose(first)
    old = engine.drafts.model
    shutil.copy(second, first)
    os.utime(first, (2e9, 2e9))
    engine.drafts.choose(first)
    assert engine.drafts.model is not old
    assert drafted(engine)


def test_what_cannot_be_loaded_is_not_tried_again_and_again(engine, drafts, tmp_path):
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(b"GGUF and no more")
    errors = []
    for _ in range(3):
        with pytest.raises(CodespecError, match=r"bad\.gguf") as error:
            engine.drafts.choose(bad)
        errors.append(error.value)
    assert len(set(map(id, errors))) == 1  # that of the first time


def test_what_comes_when_nobody_wants_it_any_more_counts(drafts):
    a, b, c = drafts
    engine = LocalEngine(EMBEDDED_TARGET, context_length=256, drafts_bytes=4_000_000)  # two of them
    try:
        engine.drafts.choose(a)
        engine.drafts.choose(b, wait=False)
        until(lambda: all(future.done() for future in engine.drafts._models._coming.values()))
        engine.drafts.choose(c)
        assert list(engine.drafts._models._held) == [b, c]
    finally:
        engine.close()
