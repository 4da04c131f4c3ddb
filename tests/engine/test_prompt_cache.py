"""KV caches that are put aside and fetched, on the embedded model and on disk."""

import sys
import threading
from dataclasses import replace

import numpy as np
import pytest

from codespec import Completer, Config, Request
from codespec.engine.local import LocalEngine
from codespec.engine.prompt_cache import MIB, PromptCacheSettings
from codespec.engine.prompt_store import MOST_TEXTS, PromptStore, PromptStoreFiles, StoredPrompt
from codespec.models.registry import EMBEDDED_TARGET
from codespec.protocols import Limits


def stored(tokens, size=100, workspace="w"):
    return StoredPrompt(list(tokens), np.arange(size).astype(np.uint8), workspace)


def engine(**settings):
    return LocalEngine(EMBEDDED_TARGET, context_length=512, prompt_cache=PromptCacheSettings(**settings))


def text_of(engine, prompt, count=12):
    chunks = engine.generate(prompt, limits=Limits(max_tokens=count))
    return "".join(chunk.text for chunk in chunks)


@pytest.fixture
def prompts():
    rng = np.random.default_rng(1)
    return [rng.integers(300, 8000, 200).tolist() for _ in range(3)]


def test_a_second_document_does_not_cost_the_first_one_its_cache(prompts):
    with_caches, without = engine(), engine(memory=0)
    try:
        reused = {}
        for name, each in (("with", with_caches), ("without", without)):
            texts = [text_of(each, prompt) for prompt in prompts]
            again = [text_of(each, [*prompt, 400]) for prompt in prompts]
            reused[name] = each.statistics.reused_tokens
            assert len(set(texts)) == 3
            if name == "with":
                expected = again
        assert again == expected
        assert reused == {"with": 200, "without": 0}
    finally:
        with_caches.close()
        without.close()


def test_a_beginning_of_a_document_does_not_cost_the_rest_its_cache(prompts):
    each = engine()
    try:
        for prompt in (prompts[0], prompts[0][:60], prompts[0]):
            text_of(each, prompt)
        assert each.statistics.reused_tokens == 199  # but for the last one, which the first pass begins with
    finally:
        each.close()


def test_exact_texts_do_not_depend_on_what_was_put_aside(prompts):
    exact = LocalEngine(EMBEDDED_TARGET, context_length=512, exact=True)
    alone = LocalEngine(EMBEDDED_TARGET, context_length=512, exact=True)
    try:
        fetched = []
        for _ in range(2):
            for prompt in prompts:
                fetched.append(text_of(exact, prompt, 40))
        assert exact.statistics.reused_tokens == 199
        assert fetched[:3] == fetched[3:] == [text_of(alone, prompt, 40) for prompt in prompts]
    finally:
        exact.close()
        alone.close()


def test_the_next_run_finds_what_this_one_has_read(tmp_path, prompts):
    settings = {"saved": 64 * MIB, "folder": tmp_path}
    first = engine(**settings)
    first.prompt_cache.enter("/a")
    texts = [text_of(first, prompts[0]), text_of(first, prompts[1])]
    first.prompt_cache.enter("/b")
    text_of(first, prompts[2])
    first.close()
    assert len(list(tmp_path.iterdir())) == 2
    second = engine(**settings)
    try:
        second.prompt_cache.enter("/a")
        for prompt, text in zip(prompts, texts, strict=False):
            assert text_of(second, prompt) == text
            assert second.statistics.reused_tokens == 199
        text_of(second, prompts[2])
        assert second.statistics.reused_tokens == 0  # another workspace's
        second.prompt_cache.forget("/a")
        text_of(second, prompts[0])
        assert second.statistics.reused_tokens == 0
    finally:
        second.close()


@pytest.mark.skipif(sys.platform == "win32", reason="links and paths of POSIX")
@pytest.mark.parametrize("form", ["{}/", "file://{}", "{}/../real", "{}/../link"])
def test_a_workspace_is_forgotten_however_it_is_written(tmp_path, prompts, form):
    work, kept = tmp_path / "real", tmp_path / "kept"
    work.mkdir()
    (tmp_path / "link").symlink_to(work)
    first = engine(saved=64 * MIB, folder=kept)
    first.prompt_cache.enter(str(work))
    text_of(first, prompts[0])
    first.close()
    assert len(list(kept.iterdir())) == 1
    second = engine(saved=64 * MIB, folder=kept)
    try:
        second.prompt_cache.enter(form.format(work))
        text_of(second, prompts[0])
        assert second.statistics.reused_tokens == 199
        second.prompt_cache.enter("")
        second.prompt_cache.forget(form.format(work))
        assert not list(kept.iterdir())
        text_of(second, prompts[0])
        assert second.statistics.reused_tokens == 0
    finally:
        second.close()


def test_what_is_secret_or_ignored_is_not_kept_for_the_next_run(tmp_path):
    work, kept = tmp_path / "work", tmp_path / "kept"
    work.mkdir()
    (work / ".gitignore").write_text("ignored.py\n")
    texts = {name: f"def {name}(a, b):\n    return a + b\n\n\n" * 8 for name in ("one", "ignored", "secret")}
    texts["secret"] += "password = 'Hq7-rT2_wPz9'\n"
    read: dict[str, list[int]] = {name: [] for name in texts}
    for _ in range(2):
        run = engine(saved=64 * MIB, folder=kept)
        completer = Completer(run, replace(Config(), max_tokens=4))
        try:
            for name, text in texts.items():
                request = Request(text, len(text), "python", str(work / f"{name}.py"), workspace=str(work))
                read[name].append(completer.prefill(request))
        finally:
            run.close()
    assert all(first > 100 for first, _ in read.values()), read
    assert read["one"][1] < 20, read
    assert read["ignored"][1] > 100
    assert read["secret"][1] > 100


@pytest.mark.parametrize("place", [3, 20, 40, 2000, -5])
def test_a_damaged_file_is_set_aside(tmp_path, place, caplog):
    files = PromptStoreFiles(tmp_path, {"model": "m"}, MIB)
    files.save("w", [stored(range(50), 5000)])
    (path,) = tmp_path.iterdir()
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    assert files.load("w") == []
    assert [each.suffix for each in tmp_path.iterdir()] == [".damaged"]
    assert "set aside" in caplog.text


def test_a_truncated_file_is_set_aside(tmp_path):
    files = PromptStoreFiles(tmp_path, {"model": "m"}, MIB)
    for length in (0, 10, 30, 200, 5000):
        files.save("w", [stored(range(50), 5000)])
        path = next(each for each in tmp_path.iterdir() if each.suffix == ".kv")
        path.write_bytes(path.read_bytes()[:length])
        assert files.load("w") == []


def test_a_file_of_another_model_is_not_read(tmp_path):
    PromptStoreFiles(tmp_path, {"model": "m"}, MIB).save("w", [stored(range(50))])
    assert PromptStoreFiles(tmp_path, {"model": "n"}, MIB).load("w") == []
    (found,) = PromptStoreFiles(tmp_path, {"model": "m"}, MIB).load("w")
    assert found.tokens == list(range(50))
    assert np.array_equal(found.data, np.arange(100).astype(np.uint8))


def test_what_is_forgotten_is_so_for_every_model_and_setting(tmp_path):
    for threads in (2, 4):
        PromptStoreFiles(tmp_path, {"threads": threads}, MIB).save("/w", [stored(range(50))])
    PromptStoreFiles(tmp_path, {"threads": 2}, MIB).save("/other", [stored(range(50))])
    PromptStoreFiles(tmp_path, {"threads": 2}, MIB).forget("/w")
    assert [PromptStoreFiles(tmp_path, {"threads": threads}, MIB).load("/w") for threads in (2, 4)] == [[], []]
    assert len(PromptStoreFiles(tmp_path, {"threads": 2}, MIB).load("/other")) == 1


def test_a_request_that_is_stopped_before_it_reads_keeps_nothing_private(tmp_path, prompts):
    private, public = prompts[:2]
    run = engine(saved=64 * MIB, folder=tmp_path)
    try:
        run.prompt_cache.enter("")
        text_of(run, private)
        run.prompt_cache.enter("/w")
        stopped = threading.Event()
        stopped.set()
        assert "".join(chunk.text for chunk in run.generate(public, cancel=stopped)) == ""
    finally:
        run.close()
    again = engine(saved=64 * MIB, folder=tmp_path)
    try:
        again.prompt_cache.enter("/w")
        assert again.prefill(private) == 200
    finally:
        again.close()


def test_a_file_is_its_owners_alone_and_holds_no_more_than_its_share(tmp_path):
    files = PromptStoreFiles(tmp_path, {}, 250)
    files.save("w", [stored(range(10)), stored(range(50, 60)), stored(range(90, 99))])
    assert [each.tokens[0] for each in files.load("w")] == [0, 50]
    (path,) = tmp_path.iterdir()
    assert path.stat().st_mode & 0o077 == 0


def test_what_is_put_aside_may_take_the_place_of_what_is_fetched(prompts):
    size = 1_700_000  # of one of them, so that there is room for one
    small = engine(memory=size)
    try:
        for _ in range(2):
            for prompt in prompts[:2]:
                text_of(small, prompt)
        assert small.statistics.reused_tokens == 199
        # Two states of one document, told apart early and late.
        first, second = [*prompts[0], *prompts[1][:100]], [*prompts[0][:150], *prompts[2][:150]]
        for prompt in (first, second, first, second, [*first, 1], [*second, 1]):
            text_of(small, prompt)
            assert small.statistics.reused_tokens >= 150
    finally:
        small.close()


def test_the_shelf_drops_what_was_not_used_for_longest():
    store = PromptStore(250)
    for start in (0, 1000, 2000):
        store.put(stored(range(start, start + 50)))
    assert store.best(range(50)) == (None, 0)
    assert store.best(range(1000, 1040))[1] == 40
    store.put(stored(range(3000, 3050), 251))
    assert len(store) == 2
    many = PromptStore(1 << 20)
    for start in range(0, 100 * MOST_TEXTS, 50):
        many.put(stored(range(start, start + 50)))
    assert len(many) == MOST_TEXTS


def test_a_later_state_of_a_document_takes_the_place_of_an_earlier_one():
    store = PromptStore(MIB)
    store.put(stored(range(100)))
    store.put(stored([*range(80), *range(500, 600)]))
    assert len(store) == 1
    store.put(stored([*range(40), *range(700, 800)]))
    assert len(store) == 2
