"""Long grammars of one sign over and over, in a process of their own: answered, while others are answered too."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from tests.http.child_server import ChildServer

LONG = 200_000
WITHIN_S = 120.0
"""Of an answer; compiling takes 1.5 s of processor time at most, on a machine that is idle."""
HEALTHY_S = 10.0
"""Of an answer to who asks whether the server lives. An idle machine takes some milliseconds."""


def long(text: str, size: int = LONG) -> str:
    return text * (size // len(text))


REQUESTS: dict[str, dict[str, Any]] = {
    "line breaks": {"grammar": "\n" * LONG},
    "line breaks before a rule": {"grammar": "\n" * LONG + 'root ::= "a"'},
    "line breaks in a rule": {"grammar": "root ::=" + "\n" * LONG + '"a"'},
    "blanks": {"grammar": " " * LONG + ":"},
    "names": {"grammar": long("a\n")},
    "comments": {"grammar": long("# x\n") + "root"},
    "brackets": {"grammar": "root ::= " + "(" * LONG},
    "classes": {"grammar": "root ::= " + long("[\\]")},
    "quotes": {"grammar": "root ::= " + long('"\\"')},
    "repetitions": {"grammar": 'root ::= "a"' + "{1," + " " * LONG},
    "alternatives": {"grammar": "root ::= " + long('"a" | ')},
    "more than GBNF may have": {"grammar": 'root ::= "a"' + "\n" * 300_000},
    "nested grammars in Lark": {"grammar": "start: " + long("%lark{")},
    "strings in Lark": {"grammar": "start: " + long('"\\"')},
    "JSON in Lark": {"grammar": "start: " + long("%json {} ")},
    "bars in Lark": {"grammar": "start: " + long("|")},
    "digits in a regular expression": {"guided_regex": "a{" + "1" * 60_000},
    "classes in a regular expression": {"guided_regex": "[" * 60_000},
    "names in a regular expression": {"guided_regex": long("(?<a", 60_000)},
    "a longer regular expression": {"guided_regex": "a" * LONG},
    "classes in a schema": {"json_schema": {"patternProperties": {"^" + "[\\\\" * 20_000: {}}}},
    "a name that a pattern reads in many ways": {
        "json_schema": {"properties": {"a" * 64 + "b": {}}, "patternProperties": {"^(a|a)*$": {}}, "required": ["x"]}
    },
    "choices": {"guided_choice": ["\x01" * LONG, "a"]},
    "more than a megabyte": {"guided_choice": ["a" * (2 << 20)]},
}


@pytest.fixture(scope="module")
def server() -> Iterator[ChildServer]:
    with ChildServer() as server:
        yield server


@contextmanager
def watched(url: str) -> Iterator[list[float]]:
    """How long it takes, time and again, until the server says that it lives."""
    waits: list[float] = []
    over = threading.Event()

    def ask() -> None:
        with httpx.Client(base_url=url, timeout=2 * WITHIN_S) as client:
            while not over.wait(0.05):
                began = time.monotonic()
                assert client.get("/health").status_code == 200
                waits.append(time.monotonic() - began)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield waits
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("name", REQUESTS)
def test_long_grammars(server: ChildServer, name: str) -> None:
    pid = server.pid
    body = json.dumps({"prompt": "a", "max_tokens": 2, **REQUESTS[name]})
    with watched(server.url) as waits:
        answer = httpx.post(f"{server.url}/v1/completions", content=body, timeout=WITHIN_S)
    assert answer.status_code in (200, 400), answer.text[:500]
    assert max(waits, default=0) < HEALTHY_S
    assert (server.status, server.pid) == (None, pid)
    plain = httpx.post(f"{server.url}/v1/completions", json={"prompt": "a", "max_tokens": 1}, timeout=WITHIN_S)
    assert plain.status_code == 200


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("more than GBNF may have", "262144"),
        ("a longer regular expression", "65536"),
        ("more than a megabyte", "1,048,576"),
    ],
)
def test_what_is_too_long_names_the_limit(server: ChildServer, name: str, limit: str) -> None:
    answer = httpx.post(
        f"{server.url}/v1/completions", json={"prompt": "a", "max_tokens": 2, **REQUESTS[name]}, timeout=WITHIN_S
    )
    assert answer.status_code == 400
    assert limit in answer.json()["error"]["message"]


def test_several_at_once(server: ChildServer) -> None:
    """Five of these ended the server."""
    answers: list[int] = []

    def ask(blanks: int) -> None:
        body = {"prompt": "a", "max_tokens": 2, "grammar": "\n" * (LONG + blanks)}
        answers.append(httpx.post(f"{server.url}/v1/completions", json=body, timeout=2 * WITHIN_S).status_code)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    with watched(server.url) as waits:
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert set(answers) <= {200, 400}
    assert len(answers) == len(threads)
    assert max(waits) < HEALTHY_S
    assert server.status is None
