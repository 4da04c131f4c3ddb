"""An editor that shares the model goes first: a request over HTTP is stopped for it, and goes on where it was."""

import json
import threading
import time
from functools import partial

import httpx
import pytest

from codespec.completion.load import load_engine
from codespec.completion.request import Request
from codespec.config import Config
from codespec.config_sections import TargetConfig
from codespec.daemon.own_models import OwnModels
from tests.daemon.windows import InThread, Window
from tests.http.http_servers import serving

PROMPT = "def add(a, b):\n    return a + b\n\n\n"
LETTERS = 'root ::= ([a-z ] | [à-ÿ] | "☕" | "\\n")*'
TYPED = "import os\n\n\ndef size_of(path):\n    return os."
REQUESTS = {
    "free": {"max_tokens": 160},
    "letters of several bytes": {"max_tokens": 120, "grammar": LETTERS},
    "logprobs and two texts": {"max_tokens": 60, "n": 2, "logprobs": 2},
    "a stop text": {"max_tokens": 120, "stop": ["never there", "\n\n\n\n\n\n"]},
    "two prompts": {"prompt": [PROMPT, "class A:\n"], "max_tokens": 120},
    "a completion that fits": {"prompt": PROMPT + "def f(x):\n    ", "language": "python", "max_tokens": 60},
    "a prediction": {"max_tokens": 200, "prediction": {"type": "content", "content": PROMPT * 9}},
}  # fmt: skip


@pytest.fixture(scope="module")
def shared():
    """A server, and a window that has its models, too; exact, so that what a text is cut into does not round it."""
    own = OwnModels(partial(load_engine, exact=True))
    config = Config(target=TargetConfig(path=""), time_budget_ms=0)
    with serving(own=own) as server, httpx.Client(base_url=server.url, timeout=120) as client:
        window = Window(config, own=own)
        yield client, window
        window.close()


def request(number):
    return Request(TYPED + "x" * number, len(TYPED) + number, "python", f"{number}.py", max_tokens=4)


class Typist(threading.Thread):
    """Asks for one completion after the other, as an editor does; its longest wait is in seconds."""

    def __init__(self, window, pause=0.4):
        super().__init__()
        self._window, self._over, self._pause = window, threading.Event(), pause
        self.asked, self.longest = 0, 0.0

    def run(self):
        while not self._over.wait(self._pause):
            began = time.monotonic()
            self._window.complete(request(self.asked % 7))
            self.longest = max(self.longest, time.monotonic() - began)
            self.asked += 1

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self.join()


def counted(answer):
    """The usage, but for what drafts and caches did."""
    return {name: answer["usage"][name] for name in ("prompt_tokens", "completion_tokens", "total_tokens")}


@pytest.mark.parametrize("fields", REQUESTS.values(), ids=REQUESTS)
def test_what_was_stopped_goes_on(shared, fields):
    client, window = shared
    fields = {"prompt": PROMPT, "temperature": 1, "seed": 7, **fields}
    began = time.monotonic()
    alone = client.post("/v1/completions", json=fields).json()
    # A completion that fits is made in one piece: it needs a pause that long.
    pause = max(0.4, 3 * (time.monotonic() - began)) if "language" in fields else 0.4
    answers = []
    with Typist(window, pause) as typist:
        while not (answers and typist.asked):  # some are answered before it has typed anything
            answers.append(client.post("/v1/completions", json=fields).json())
    for beside in answers:
        assert beside["choices"] == alone["choices"]
        if "language" not in fields:  # how much is cut off there depends on what was drafted
            assert counted(beside) == counted(alone)


def test_an_editor_does_not_wait_for_a_request(shared):
    client, window = shared
    fields = {"prompt": PROMPT, "temperature": 1, "max_tokens": 6000, "n": 20, "stream": True}
    fields["grammar"] = 'root ::= [a-z ]* "éàü"'
    with client.stream("POST", "/v1/completions", json=fields) as response:
        events = (json.loads(line[6:]) for line in response.iter_lines() if line)
        next(events)
        asked = [InThread(window, request(number)) for number in range(3)]
        assert any(each.wait() for each in asked)
        for _ in range(50):  # and the request goes on
            assert "choices" in next(events)


def test_questions_and_refusals_go_on_too(shared):
    client, window = shared
    with Typist(window):
        for _ in range(10):
            assert client.post("/tokenize", json={"content": "a b"}).json()["tokens"]
            assert client.get("/props").status_code == 200
            assert client.post("/v1/completions", json={"prompt": [10**7]}).status_code == 400
