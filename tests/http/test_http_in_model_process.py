"""``codespec serve --http`` has the model process serve."""

import contextlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import httpx
import pytest

from codespec.completion.request import Request
from codespec.config import Config
from codespec.daemon.models import Models
from codespec.daemon.start import stop_model_process
from codespec.http.backend import Backend
from codespec.models.registry import EMBEDDED_TARGET
from codespec.worker.decode_thread import DecodeThread
from tests.daemon.windows import Window
from tests.http.http_servers import until

ROOT = Path(__file__).parents[2]
FIELDS = {"prompt": "def f(", "max_tokens": 4}
SERVE = [sys.executable, "-m", "codespec", "serve"]


def _as_in_a_terminal():
    """Programs that a shell has put into the background ignore interrupts, and so do those that they start."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def show_end(child, log):
    """Print how a program has ended and what it has written, of one that is still there where each thread is: pytest
    shows it where the test fails."""
    print("exit status:", child.poll())
    if child.poll() is None and sys.platform != "win32":
        child.send_signal(signal.SIGABRT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(5)
    print(log.read_text("utf-8"))


@pytest.fixture
def run(tmp_path):
    """Runs a command; gives it and the lines that it has written. Their model process is their own."""
    names = {name: str(tmp_path / name) for name in ("CODESPEC_RUNTIME", "CODESPEC_DATA", "CODESPEC_CACHE")}
    with contextlib.ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        more = {"PYTHONPATH": str(ROOT), "CODESPEC_IDLE_EXIT_S": "0", "PYTHONFAULTHANDLER": "1"}
        for name, value in {**names, **more}.items():
            patch.setenv(name, value)
        stack.callback(stop_model_process)

        def begin(*options):
            log = stack.enter_context(tempfile.NamedTemporaryFile(dir=tmp_path))
            child = subprocess.Popen(
                [*SERVE, *options], stdin=subprocess.PIPE, stderr=log, cwd=tmp_path, preexec_fn=_as_in_a_terminal
            )
            stack.enter_context(child)
            stack.callback(child.kill)
            stack.callback(show_end, child, Path(log.name))
            return child, lambda: Path(log.name).read_text("utf-8")

        yield begin


@pytest.fixture
def command(run):
    return run("--http", "0")


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


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_server_with_a_model_of_its_own_frees_it_at_its_end(run, number):
    child, log = run("--http", "0", "--in-process")
    until(lambda: "the model is loaded" in log())
    child.send_signal(number)
    assert child.wait(60) == 0


@pytest.mark.parametrize("more", [[], ["--in-process"]], ids=["shared", "in process"])
def test_a_window_takes_over_where_the_one_that_served_is_closed(run, more):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    first, first_log = run("--stdio", "--http", str(port), *more)
    until(lambda: "listening on" in first_log())
    _, second_log = run("--stdio", "--http", str(port), *more)
    until(lambda: "as long as another program has the port" in second_log())
    first.stdin.close()
    first.wait(60)
    until(lambda: f"listening on {url}" in second_log())
    assert httpx.get(url + "/v1/models").status_code == 200


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--stdio", "--http", "0", "--target", "x.gguf"], "--target"),
        (["--stdio", "--http", "0", "--exact"], "--exact"),
        (["--exact"], "--exact"),
        (["--api-key-file", "keys"], "--api-key-file"),
        (["--stdio", "--http-cors", "http://localhost:3000"], "--http-cors"),
    ],
)
def test_options_that_would_do_nothing(run, options, named):
    child, log = run(*options)
    assert child.wait(60) == 2
    assert named in log()


@pytest.mark.parametrize("given", ["nonesuch", "models/none.gguf", "/nowhere/none.gguf"])
def test_a_target_that_is_not_there_ends_it(run, given):
    child, log = run("--http", "0", "--target", given)
    assert child.wait(60) == 2
    assert "none" in log()
    assert "listening" not in log()


def test_the_target_may_be_a_file_of_the_current_folder(run, tmp_path):
    shutil.copy(EMBEDDED_TARGET, tmp_path / "mine.gguf")
    _, log = run("--http", "0", "--target", "mine.gguf")
    until(lambda: "listening on" in log())
    url = url_in(log())
    until(lambda: answers(url))
    assert httpx.post(url + "/v1/completions", json=FIELDS, timeout=60).json()["usage"]["completion_tokens"] == 4


def test_a_model_that_cannot_be_loaded_is_told_whatever_went_wrong(caplog):
    def load(config, progress):
        raise RuntimeError("of a library, perhaps with a text")

    told, models = [], Models(load)
    decode = DecodeThread(models)
    backend = Backend(decode, models, Config(), told.append)
    backend.open()
    until(lambda: caplog.records)
    assert backend.state == "failed"
    assert told == ["the model could not be loaded: RuntimeError"]
    assert caplog.records[0].exc_info  # the log says where, without the text
    assert decode.close(10)


def test_a_window_of_the_same_model_goes_first(command):
    """While an answer streams, a window gets its completions, and the answer goes on."""
    _, log = command
    until(lambda: "listening on" in log())
    url = url_in(log())
    until(lambda: answers(url))
    endless = {**FIELDS, "max_tokens": 900, "n": 100, "temperature": 1, "stream": True}
    endless["grammar"] = 'root ::= [a-z ]* "éàü"'
    window = Window(Config(max_tokens=8, time_budget_ms=0))
    try:
        with httpx.stream("POST", url + "/v1/completions", json=endless, timeout=60) as response:
            parts = response.iter_bytes()
            next(parts)
            for number in range(3):
                text = f"import os\nname_{number} = os.path."
                request = Request(text, len(text), "python", f"/work/{number}.py")
                assert window.complete(request)
                for _ in range(5):
                    assert b'"error"' not in next(parts)
    finally:
        window.close()
