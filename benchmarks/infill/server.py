"""What fills gaps in: a ``llama-server``, asked as llama.vim asks it."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from benchmarks.decode.llama_cpp import environment
from benchmarks.http_speed import NO_INFILL
from benchmarks.infill.arms import PLAIN_TOKENS, Answer, Arm, until_suffix
from benchmarks.infill.task import SINGLE, Task
from benchmarks.latency.latency import llama_server_line
from benchmarks.latency.llama_vim import N_PREFIX, N_SUFFIX
from benchmarks.llama_server import Server
from codespec.protocols import CodespecError

TIMEOUT_S = 120.0

Post = Callable[[str, Mapping[str, Any]], dict[str, Any]]
"""Sends the body of a request to a path of the server.

Raises:
    RuntimeError: it refused; the message has its words.
"""


@contextlib.contextmanager
def serving(where: str, target: Path, threads: int, context: int) -> Iterator[Post]:
    """A server: at an address, or a binary that is started with the target's file and ended afterwards.

    Raises:
        CodespecError: it does not start, or does not answer.
    """
    if "://" in where:
        yield lambda path, body: post(where, path, body)
        return
    line = llama_server_line(Path(where), target, threads, context, "", ())
    try:
        with Server(line, environment(None), TIMEOUT_S) as server:
            yield server.ask
    except (RuntimeError, OSError) as error:
        raise CodespecError(f"{where}: {error}") from None


def post(url: str, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to a request at an address.

    Raises:
        RuntimeError: the server refused.
        CodespecError: nobody answers there.
    """
    data = json.dumps(body).encode()
    request = Request(url.rstrip("/") + path, data, {"Content-Type": "application/json", **_key()})
    try:
        with urlopen(request, timeout=TIMEOUT_S) as response:
            answer: dict[str, Any] = json.load(response)
            return answer
    except HTTPError as error:
        raise RuntimeError(f"status {error.code}: {error.read().decode('utf-8', 'replace')[:200]}") from None
    except (URLError, OSError, ValueError) as error:
        raise CodespecError(f"{url}: no answer ({error}); is a llama-server running there?") from None


def _key() -> dict[str, str]:
    key = os.environ.get("LLAMA_API_KEY", "")
    return {"Authorization": f"Bearer {key}"} if key else {}


def llama_server(ask: Post, say: Callable[[str], None] = print) -> Arm:
    """``/infill`` with as many lines around the cursor as llama.vim sends, greedy; from the first refusal on, since the
    model cannot fill in, ``/completion`` with what stands before the cursor, ended as ``until_suffix`` does."""
    fills_in = True

    def answer(task: Task) -> Answer:
        nonlocal fills_in
        if fills_in:
            began = perf_counter()
            try:
                text = ask("/infill", infill_body(task))["content"]
                return Answer(text, (perf_counter() - began) * 1e3, "infill")
            except RuntimeError as error:
                if not any(each in str(error).lower() for each in NO_INFILL):
                    raise CodespecError(f"/infill: {error}") from None
                say("llama-server says that this model cannot fill in: /completion instead, from left to right")
                fills_in = False
        began = perf_counter()
        try:
            text = ask("/completion", completion_body(task))["content"]
        except RuntimeError as error:
            raise CodespecError(f"/completion: {error}") from None
        return Answer(until_suffix(task, text), (perf_counter() - began) * 1e3, "completion")

    return answer


def infill_body(task: Task) -> dict[str, Any]:
    """The fields of a request to ``/infill``."""
    before, newline, line = task.prompt.rpartition("\n")
    lines = before.split("\n")[-N_PREFIX:]
    return {
        **_sampling(),
        "input_prefix": "\n".join(lines) + newline,
        "prompt": line,
        "input_suffix": "\n".join(task.suffix.split("\n")[: N_SUFFIX + 1]),
    }


def completion_body(task: Task) -> dict[str, Any]:
    """The fields of a request to ``/completion``."""
    lines = task.prompt.split("\n")[-N_PREFIX - 1 :]
    stop = ["\n"] if task.kind == SINGLE else []
    return {**_sampling(), "prompt": "\n".join(lines), "stop": stop}


def _sampling() -> dict[str, Any]:
    return {"n_predict": PLAIN_TOKENS, "temperature": 0.0, "cache_prompt": True, "stream": False}
