"""The whole way from a document and an offset to a text, on the embedded models."""

import threading
from dataclasses import replace

import pytest

from codespec import Completer, Config, Limits, LocalEngine, Request, Sampling
from codespec.errors import CodespecError
from codespec.models.registry import EMBEDDED_TARGET

BASE = replace(Config(), max_tokens=24, time_budget_ms=0)
TEXT = "import os\n\n\ndef main(argv):\n    if not argv:\n        raise \n    return os.path.join(*argv)\n"


@pytest.fixture(scope="module")
def engine():
    engine = LocalEngine(EMBEDDED_TARGET, exact=True)
    yield engine
    engine.close()


def complete(engine, text, offset, config=BASE, **options):
    return Completer(engine, config).complete(Request(text, offset, "python", "main.py", **options))


def test_a_line_is_completed_within_the_line(engine):
    offset = TEXT.index("raise ") + 6
    [completion] = complete(engine, TEXT, offset)
    assert "\n" not in completion.text
    # The space is there already.
    assert completion.text
    assert not completion.text.startswith(" ")


@pytest.mark.parametrize("offset", [0, 1, TEXT.index("\n\n\n") + 1, len(TEXT)])
def test_any_place_is_a_place(engine, offset):
    assert len(complete(engine, TEXT, offset)) == 1


@pytest.mark.parametrize("text", ["", "\n", "\r\n", " ", "\t", "🦙", "a\x00b", "x" * 20_000, "\ud83d"])
def test_any_text_is_a_document(engine, text):
    assert len(complete(engine, text, len(text))) == 1


def test_line_ends_make_no_difference(engine):
    offset = TEXT.index("raise ") + 6
    windows = TEXT.replace("\n", "\r\n")
    [one] = complete(engine, TEXT, offset)
    [other] = complete(engine, windows, windows.index("raise ") + 6)
    assert one.text == other.text


def test_what_the_target_holds_is_not_decoded_again(engine):
    offset = TEXT.index("raise ") + 6
    complete(engine, TEXT, offset)
    [again] = complete(engine, TEXT, offset)
    assert again.report["prefill_tokens"] == 1
    assert again.report["reused_tokens"] > 20


def test_alternatives_differ(engine):
    texts = [c.text for c in complete(engine, TEXT, TEXT.index("raise ") + 6, count=3)]
    assert len(texts) == len(set(texts)) > 1


def test_a_cancelled_request_gives_nothing(engine):
    cancel = threading.Event()
    cancel.set()
    request = Request(TEXT, 40, "python", "main.py")
    assert Completer(engine, BASE).complete(request, cancel) == []


def test_aborting_from_another_thread(engine):
    completer = Completer(engine, replace(BASE, max_tokens=400))
    cancel = threading.Event()

    def abort():
        cancel.set()
        completer.abort()

    timer = threading.Timer(0.05, abort)
    timer.start()
    for _ in range(200):
        if completer.complete(Request(TEXT, len(TEXT), "plaintext", "x"), cancel) == []:
            break
    timer.join()
    assert cancel.is_set()
    assert len(complete(engine, TEXT, 40)) == 1


def test_every_prefix_of_a_constrained_completion_is_viable(engine):
    from codespec import Grammar

    config = replace(BASE, grammar="json")
    text = '{"name": "x", "values": ['
    for seed in range(10):
        completer = Completer(engine, config, Sampling(temperature=1.0, seed=seed))
        [completion] = completer.complete(Request(text, len(text), "json", "a.json"))
        assert completion.report["grammar"] == "json"
        state = engine.grammar_state(Grammar.load("json"))
        tokens = engine.vocabulary.tokenize(text + completion.text)
        assert state.accept(tokens) == len(tokens)


def test_a_time_budget_ends_a_generation(engine):
    completion = next(Completer(engine, BASE).generate("import os\n", limits=Limits(400, time_budget_ms=1)))
    assert completion.finish_reason == "time"
    assert completion.report["tokens"] < 400


def test_a_draft_of_another_vocabulary_is_refused(engine, tmp_path):
    import byte_vocabulary

    path = tmp_path / "bytes.gguf"
    byte_vocabulary.write(path)
    with pytest.raises(CodespecError, match=r"bytes\.gguf: "):
        engine.use_draft(path)
    assert len(complete(engine, TEXT, 40)) == 1
