"""Requests as nobody should send them, and what may be answered.

Each case is bytes, how they are sent, and the statuses that are sensible. A case's text holds ``SECRET``,
so that a log
can be searched for what users have written.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.fuzz.generators import any_source
from tests.http.raw_client import written

SECRET = "ZqxSecret7"
REFUSED = frozenset({400, 404, 405, 408, 409, 411, 413, 414, 415, 422, 426, 429, 431, 501, 505})
"""What a client's mistake may be answered with."""
FINE = frozenset({200, 204})
MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": SECRET}]
SEEDS: dict[str, dict[str, Any]] = {
    "/v1/completions": {
        "model": "target", "prompt": f"# {SECRET}\ndef f(", "suffix": "):\n", "max_tokens": 4, "temperature": 0.7,
        "top_p": 0.9, "n": 1, "stream": False, "stop": ["\n\n"], "seed": 3, "logit_bias": {"5": -1},
        "presence_penalty": 0.1, "frequency_penalty": 0.1, "user": "u", "echo": False, "logprobs": 1,
    },
    "/v1/chat/completions": {
        "model": "target", "messages": MESSAGES, "max_completion_tokens": 4, "temperature": 1, "stream": True,
        "stream_options": {"include_usage": True}, "response_format": {"type": "json_object"}, "top_logprobs": 1,
        "logprobs": True, "prediction": {"type": "content", "content": "x = 1"}, "tools": None,
    },
    "/completion": {
        "prompt": f"# {SECRET}\n", "n_predict": 4, "temperature": 0.5, "top_k": 40, "top_p": 0.9, "min_p": 0.1,
        "stream": False, "stop": ["x"], "cache_prompt": True, "samplers": ["top_k"], "n_probs": 1,
        "json_schema": None,
        "grammar": "", "repeat_penalty": 1.1, "repeat_last_n": 64, "t_max_predict_ms": 500, "id_slot": 0,
    },
    "/infill": {
        "input_prefix": f"# {SECRET}\ndef f(", "input_suffix": "):\n", "prompt": "    ", "n_predict": 4,
        "n_indent": 0,
        "input_extra": [{"filename": "a.py", "text": "x = 1"}], "top_k": 40, "samplers": ["top_k", "infill"],
        "stream": False, "t_max_prompt_ms": 500, "t_max_predict_ms": 500, "response_fields": ["content"],
    },
    "/v1/fim/completions": {
        "model": "target", "prompt": f"# {SECRET}\ndef f(", "suffix": "):\n", "max_tokens": 4, "min_tokens": 0,
        "random_seed": 1, "stop": ["x"], "temperature": 0.2, "top_p": 1,
    },
    "/tokenize": {"content": SECRET, "add_special": True, "with_pieces": True},
    "/detokenize": {"tokens": [5, 6, 7]},
    "/apply-template": {"messages": MESSAGES},
}  # fmt: skip
"""A valid request for each path; those that a server does not have are left out."""
VALUES: list[Any] = [
    None, True, False, 0, -1, 1, 2, 0.5, -0.0, 1e308, -1e308, 1e-320, 2**31, 2**32, 2**53 + 1, 2**63, 2**64, 10**30,
    -(2**63) - 1, "", "x", "0", "1e5", "true", "\x00", "\ufeff", "\u202e", "é" * 50, "😀", "a" * 5000,
    "<|fim_prefix|>",
    "../../etc/passwd", "{{7*7}}", "%s%n", [], [[]], [None], [0], [-1], [1, "a"], ["a"] * 200, [[1, 2], [3]], {},
    {"a": 1},
    {"type": "json_schema"}, {"type": "json_schema", "json_schema": {"schema": {"$ref": "#"}}}, {"": ""}, [{}],
    [{"role": "user"}],
    {"type": "content", "content": [{"type": "text", "text": "x"}]}, {"regex": "(a|a)*b", "choice": ["x"]},
    {"choice": []},
    {"json": {"type": "object", "properties": {"a": {"pattern": "(a+)+$"}}}}, {"grammar": "root ::= root"},
    list(range(3000)), {"99999999": 1}, [[" the ", -5], [7, False]], {"prompt_string": "x"},
]  # fmt: skip
NAMES = [
    "prompt", "messages", "stream", "n", "best_of", "stop", "max_tokens", "seed", "logit_bias", "temperature",
    "top_k",
    "top_p", "min_p", "echo", "suffix", "logprobs", "top_logprobs", "session", "language", "path", "fit", "grammar",
    "json_schema", "response_format", "structured_outputs", "guided_regex", "prediction", "chat_template_kwargs",
    "model",
    "stream_options", "n_predict", "t_max_predict_ms", "input_prefix", "input_suffix", "input_extra", "content",
    "tokens",
    "repeat_penalty", "repeat_last_n", "penalty_window", "random_seed", "tools", "unheard_of", "__class__",
    "constructor",
]  # fmt: skip
METHODS = [
    "GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "BREW", "post", "P\x7fST", "GET POST", "",
]  # fmt: skip
PATHS = [
    "/", "//", "/v1", "/v1/", "/v1/completions/", "/v1//completions", "/V1/COMPLETIONS", "/v1/../v1/models",
    "/%2e%2e/etc/passwd",
    "/v1/models/%00", "/v1/models/..%2f..", "/v1/models/\xff", "*", "http://localhost/v1/models",
    "http://evil.example/v1/models",
    "/v1/completions?a=" + "b" * 3000, "/" + "a" * 20000, "/v1/models/" + "é", "/metrics?x[]=1", "/health#x",
    "nothing", "/%", "/%zz",
    "/v1/models/a/b/c", "/slots", "/props?x=1", "/lora-adapters",
]  # fmt: skip
TYPES = [
    "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/jsonp", "",
    "application/json; charset=utf-16", "APPLICATION/JSON", "application/vnd.api+json", "\xff",
    "application/json" * 400,
]  # fmt: skip


@dataclass
class Case:
    """One thing to send.

    Attributes:
        kind: that made it.
        data: what is sent, part after part with pauses between them.
        allowed: statuses of the answers.
        answers: that may come at most.
        leaves: whether the client goes away after sending, without waiting.
        may_close: whether closing without an answer is sensible.
        method: decides whether an answer has a body.
    """

    kind: str
    data: list[bytes]
    allowed: frozenset[int] = REFUSED | FINE
    answers: int = 1
    leaves: bool = False
    may_close: bool = False
    method: str = "POST"


def bad_fields(rng: Random, paths: list[str]) -> Case:
    """A valid body with some fields replaced, added or left out."""
    path = rng.choice(paths)
    fields = dict(SEEDS[path])
    for _ in range(rng.randint(1, 3)):
        name = rng.choice(NAMES if rng.random() < 0.5 else list(SEEDS[path]))
        if rng.random() < 0.15:
            fields.pop(name, None)
        else:
            fields[name] = _value(rng)
    return Case("fields", [written(fields, path)])


def _value(rng: Random) -> Any:
    value = rng.choice(VALUES)
    if rng.random() < 0.1:
        return {"a": [value]}
    if rng.random() < 0.1:
        return [value, rng.choice(VALUES)]
    return value


def grammars(rng: Random, paths: list[str]) -> Case:
    """A grammar that engines have died of."""
    kind, text, _ = any_source(rng)
    names = {"json": "json_schema", "regex": "guided_regex"}
    fields = {**SEEDS["/v1/completions"], names.get(kind, "grammar"): text, "stop": None, "suffix": None}
    return Case("grammars", [written(fields)])


def json_texts(rng: Random, paths: list[str]) -> Case:
    """A body that is hardly JSON."""
    text = json.dumps(SEEDS["/v1/completions"]).encode()
    deep = rng.choice([50, 250, 5000, 100_000])
    bodies = [
        b"", b"null", b"[]", b"1", b'"x"', b"{", b"}", b"{}{}", text[:-1], text + b"}", b"\xef\xbb\xbf" + text,
        text.decode().encode("utf-16"), b'{"prompt": "\\ud800"}', b'{"prompt": "\\udc00\\ud800"}',
        b'{"prompt": "\xff\xfe"}',
        b'{"prompt": "\xed\xa0\x80"}', b'{"temperature": NaN}', b'{"seed": -Infinity}', b'{"max_tokens": 1e999}',
        b'{"seed": ' + b"9" * rng.choice([20, 300, 5000, 100_000]) + b"}", b'{"prompt": "a", "prompt": 1}',
        b'{"a" 1}',
        b"[" * deep, b'{"a":' * deep + b"1" + b"}" * deep, b'{"prompt": ' + b"[" * deep + b"]" * deep + b"}",
        b'{"prompt": "\x00"}', b"{'prompt': 'x'}", b'{"prompt": "x",}', b"\x00" * 100, b'{"": {"": [{"": null}]}}',
        b'{"json_schema": ' + b'{"items":' * deep + b"{}" + b"}" * deep + b"}",
    ]  # fmt: skip
    return Case("json", [written(rng.choice(bodies), rng.choice(paths))])


def flipped(rng: Random, paths: list[str]) -> Case:
    """A valid request with some bytes changed."""
    path = rng.choice(paths)
    data = bytearray(written(SEEDS[path], path))
    for _ in range(rng.choice([1, 1, 2, 5, 20])):
        at = rng.randrange(len(data))
        change = rng.randrange(4)
        if change == 0:
            data[at] = rng.randrange(256)
        elif change == 1:
            del data[at : at + rng.randint(1, 10)]
        elif change == 2:
            data[at:at] = bytes(rng.choice(b"\r\n\x00:{}[]\",'\xff ") for _ in range(rng.randint(1, 4)))
        else:
            data[at:at] = data[at : at + rng.randint(1, 40)]
        data = data or bytearray(b"\r\n")
    # A changed Content-Length makes the rest another request, or leaves the server waiting.
    return Case("flipped", [bytes(data)], REFUSED | FINE | {403}, 5, may_close=True)


def headers(rng: Random, paths: list[str]) -> Case:
    """Headers that contradict each other, are too long, too many or wrong."""
    body, path = json.dumps(SEEDS["/v1/completions"]).encode(), "/v1/completions"
    length = str(len(body))
    choices: list[tuple[dict[str, str], frozenset[int], bool]] = [
        ({"Content-Length": "-1"}, frozenset({400}), False),
        ({"Content-Length": "x"}, frozenset({400}), False),
        ({"Content-Length": "9" * 30}, frozenset({400, 413}), False),
        ({"Content-Length": str(9 << 20)}, frozenset({413}), False),
        ({"Content-Length": length, "content-length": "3"}, frozenset({400}), False),
        ({"Content-Length": length, "Transfer-Encoding": "chunked"}, frozenset({400, 408}), False),
        ({"Transfer-Encoding": "gzip, chunked"}, frozenset({400, 501}), False),
        ({"Transfer-Encoding": "x"}, frozenset({400, 501}), False),
        ({"Content-Type": rng.choice(TYPES)}, REFUSED | FINE, False),
        ({"Content-Encoding": "gzip"}, REFUSED | FINE, False),
        ({f"X-{index}": "y" for index in range(rng.choice([10, 120]))}, REFUSED | FINE, False),
        ({"X-Long": "y" * rng.choice([1000, 20_000, 200_000])}, REFUSED | FINE, True),
        ({"Bad Name": "x"}, frozenset({400}), False),
        ({"X-Fold": "a\r\n b"}, REFUSED | FINE, False),
        ({"X-Split": "a\r\nHost: evil.example"}, frozenset({400, 403}), False),
        ({"X-Zero": "a\x00b"}, frozenset({400}), False),
        ({"Host": "evil.example"}, frozenset({403}), False),
        ({"Host": ""}, REFUSED | FINE | {403}, False),
        ({"Host": "[::1"}, frozenset({400, 403}), False),
        ({"Host": "localhost@evil.example"}, frozenset({400, 403}), False),
        ({"Origin": "http://evil.example"}, frozenset({403}), False),
        ({"Origin": "null"}, frozenset({403}), False),
        ({"Expect": "100-continue"}, FINE, False),
        ({"Expect": "200-ok"}, REFUSED | FINE | {417}, False),
        ({"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Key": "eA=="}, REFUSED | FINE, False),
        ({"Upgrade": "h2c", "Connection": "Upgrade, HTTP2-Settings"}, REFUSED | FINE, False),
        ({"Authorization": "Bearer " + "\xff" * 10, "Cookie": SECRET}, FINE, False),
        ({"Range": "bytes=0-1", "If-None-Match": "*", "TE": "trailers"}, FINE, False),
    ]
    extra, allowed, may_close = rng.choice(choices)
    data = written(body, path, headers=extra).replace(b"\xc3\xbf", b"\xff")
    if rng.random() < 0.05 and b"Host: localhost\r\n" in data:
        data, allowed = data.replace(b"Host: localhost\r\n", b""), REFUSED | {403}
    if rng.random() < 0.05:
        data, allowed = (
            data.replace(b"HTTP/1.1", rng.choice([b"HTTP/1.0", b"HTTP/2.0", b"HTTP/9", b"", b"HTTP"])),
            REFUSED | FINE | {403},
        )
        may_close = True
    return Case("headers", [data], allowed, 2, may_close=may_close)


def paths_and_methods(rng: Random, paths: list[str]) -> Case:
    """Methods and paths that are not there."""
    known = ["/v1/models", "/health", "/metrics", *paths]
    method = rng.choice(METHODS) if rng.random() < 0.6 else rng.choice(["GET", "POST"])
    path = rng.choice(PATHS) if rng.random() < 0.6 else rng.choice(known)
    body = SEEDS.get(path) if method not in ("GET", "HEAD") else None
    data = f"{method} {path} HTTP/1.1".encode("latin-1") + written(body).partition(b" HTTP/1.1")[2]
    return Case("paths", [data], REFUSED | FINE, 2, may_close=method == "CONNECT", method=method)


def halves(rng: Random, paths: list[str]) -> Case:
    """Part of a request, and then nothing, or nobody."""
    path = rng.choice(paths)
    data = written({**SEEDS[path], "stream": rng.random() < 0.5}, path)
    whole = rng.random() < 0.3  # asked, and gone before the answer
    data = data if whole else data[: rng.randrange(1, len(data))]
    return Case("halves", [data], REFUSED | FINE, 1, leaves=whole or rng.random() < 0.8, may_close=True)


def pipelined(rng: Random, paths: list[str]) -> Case:
    """Several requests at once; the answers come in their order."""
    count = rng.randint(2, 5)
    data = b"".join(written(SEEDS[path], path) for path in rng.choices(paths, k=count))
    if rng.random() < 0.3:
        data += rng.choice([b"\r\n\r\n", b"GARBAGE\r\n\r\n", b"\x16\x03\x01\x02\x00\x01", b"GET / HTTP/1.1\r\n"])
        count += 1
    return Case("pipelined", [data], REFUSED | FINE, count)


def chunked(rng: Random, paths: list[str]) -> Case:
    """Bodies in chunks, right and wrong."""
    path = rng.choice(paths)
    body = json.dumps(SEEDS[path]).encode()
    cuts = sorted(rng.randrange(len(body)) for _ in range(rng.randint(0, 6)))
    parts = [body[start:end] for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True) if end > start]
    chunks = [b"%x\r\n%s\r\n" % (len(part), part) for part in parts] + [b"0\r\n\r\n"]
    head = written(b"", path, headers={"Transfer-Encoding": "chunked"}).replace(b"Content-Length: 0\r\n", b"")
    wrong = rng.choice(
        [
            None,
            None,
            b"-1\r\n",
            b"x\r\n",
            b"f" * 20 + b"\r\n",
            b"5\r\nab\r\n",
            b"1;" + b"x" * 30_000 + b"\r\na\r\n",
            b"\r\n",
        ]
    )
    if wrong is None:
        return Case("chunked", [head, *chunks], REFUSED | FINE)
    chunks[rng.randrange(len(chunks))] = wrong
    return Case("chunked", [head, *chunks], REFUSED | FINE, 2, may_close=True)


def garbage(rng: Random, paths: list[str]) -> Case:
    """No HTTP at all."""
    data = rng.choice(
        [rng.randbytes(rng.randint(1, 300)), b"\r\n" * 50, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
         b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET", b" / HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\n\n", b"A" * 100_000,
         b"GET /health\r\n\r\n", b"\x00"]
    )  # fmt: skip
    return Case("garbage", [data], REFUSED | FINE, 3, leaves=rng.random() < 0.5, may_close=True)


Maker = Callable[[Random, list[str]], Case]
MAKERS: list[tuple[int, Maker]] = [
    (34, bad_fields), (3, grammars), (12, json_texts), (15, flipped), (10, headers), (8, paths_and_methods),
    (6, halves), (4, pipelined), (5, chunked), (3, garbage),
]  # fmt: skip


def any_case(rng: Random, paths: list[str]) -> Case:
    """One case of any kind."""
    weights, makers = zip(*MAKERS, strict=True)
    maker: Maker = rng.choices(makers, weights)[0]
    return maker(rng, paths)
