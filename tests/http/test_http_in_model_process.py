"""``codespec serve --http`` has the model process serve."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import pytest
from http_servers import until

from codespec.completion.request import Request
from codespec.config import Config
from codespec.daemon.client import SharedCompleter, stop_model_process

ROOT = Path(__file__).parents[2]
FIELDS = {"prompt": "def f(", "max_tokens": 4}


def _as_in_a_terminal():
    """Programs that a shell has put into the background ignore interrupts, and so do those that they start."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def command(tmp_path):
    """A running command, and the lines that it has written; with a model process of its own."""
    names = {name: str(tmp_path / name) for name in ("CODESPEC_RUNTIME", "CODESPEC_DATA", "CODESPEC_CACHE")}
    environment = {**os.environ, **names, "PYTHONPATH": str(ROOT), "CODESPEC_IDLE_EXIT_S": "0"}
    with (tmp_path / "log").open("w+b") as log, pytest.MonkeyPatch.context() as patch:
        for name, value in names.items():
            patch.setenv(name, value)
        patch.setenv("PYTHONPATH", str(ROOT))
        line = [sys.executable, "-m", "codespec", "serve", "--http", "0"]
        child = subprocess.Popen(line, env=environment, stderr=log, cwd=tmp_path, preexec_fn=_as_in_a_terminal)
        try:
            yield child, lambda: (tmp_path / "log").read_text("utf-8")
        finally:
            child.kill()
            child.wait()
            stop_model_process()


def url_in(text):
    return text.split("listening on ")[1].split(",")[0].strip()


def answers(url):
    try:
        return httpx.get(url + "/health").status_code == 200
    except httpx.TransportError:
        return False


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_the_model_process_serves(command):
    child, log = command
    until(lambda: "listening on" in log())
    url = url_in(log())
    until(lambda: answers(url))
    answer = httpx.post(url + "/v1/completions", json=FIELDS, timeout=60).json()
    assert answer["usage"]["completion_tokens"] == 4
    # Where the model process ends, another one serves on the same port.
    assert stop_model_process()
    until(lambda: log().count("listening on") == 2)
    assert url_in(log()) == url
    until(lambda: answers(url))
    child.send_signal(signal.SIGINT)
    assert child.wait(60) == 0
    until(lambda: not answers(url))


def test_a_window_of_the_same_model_goes_first(command):
    """While an answer streams, a window gets its completions, and the answer goes on."""
    _, log = command
    until(lambda: "listening on" in log())
    url = url_in(log())
    until(lambda: answers(url))
    endless = {**FIELDS, "max_tokens": 900, "n": 100, "temperature": 1, "stream": True}
    endless["grammar"] = 'root ::= [a-z ]* "éàü"'
    window = SharedCompleter(Config(max_tokens=8, time_budget_ms=0))
    try:
        with httpx.stream("POST", url + "/v1/completions", json=endless, timeout=60) as response:
            parts = response.iter_bytes()
            next(parts)
            for number in range(3):
                text = f"import os\nname_{number} = os.path."
                request = Request(text, len(text), "python", f"/work/{number}.py")
                assert window.complete(request, threading.Event())
                for _ in range(5):
                    assert b'"error"' not in next(parts)
    finally:
        window.close()
