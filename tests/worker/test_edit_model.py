"""The model of next edits: loaded in the background, at the first request."""

from __future__ import annotations

import threading

import pytest

from codespec.completion.load import load_edit_engine
from codespec.config import Config
from codespec.config_sections import EditsConfig
from codespec.edits.request import EditRequest
from codespec.protocols import CodespecError
from codespec.worker.edit_model import EditModel

REQUEST = EditRequest("a.py", "python", "x = 1\n", 3, recent=())


def never() -> threading.Event:
    return threading.Event()


def test_a_request_that_waits_for_the_model_can_be_stopped():
    begun, go_on, cancel = threading.Event(), threading.Event(), threading.Event()

    def load():
        begun.set()
        go_on.wait(20)
        raise CodespecError("there is none")

    model = EditModel(load)
    assert model.status() == {"state": "not loaded"}
    answers = []
    request = threading.Thread(target=lambda: answers.append(model.next_edit(REQUEST, cancel)))
    request.start()
    assert begun.wait(20)
    assert model.status() == {"state": "loading"}
    assert not model.reading
    model.abort()
    cancel.set()
    request.join(20)
    assert answers == [None]
    go_on.set()
    with pytest.raises(CodespecError, match="there is none"):
        model.next_edit(REQUEST, never())
    assert model.status() == {"state": "failed"}
    model.close()


def test_what_has_failed_is_tried_again():
    tries = []

    def load():
        tries.append(1)
        raise CodespecError(f"try {len(tries)}")

    model = EditModel(load)
    for number in (1, 2):
        with pytest.raises(CodespecError, match=f"try {number}"):
            model.next_edit(REQUEST, never())


def test_a_file_that_is_no_model_is_told(tmp_path):
    path = tmp_path / "text.gguf"
    path.write_text("no model")
    model = EditModel(lambda: load_edit_engine(Config(edits=EditsConfig(model=str(path)))))
    with pytest.raises(CodespecError, match="not a GGUF file"):
        model.next_edit(REQUEST, never())
    assert model.status() == {"state": "failed"}
    model.close()
