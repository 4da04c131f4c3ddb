"""Random messages to a language server: valid, mutated, malformed, out of order, huge; and headers of all kinds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

HUGE = 10_000_000
HUGE_CHANCE = 0.004
URI = "file:///work/fuzz.py"
TEXT = "import os\n\n\ndef main():\n    return os.\n\n# 😋 é\r\nx = 1\r"

NOTIFICATIONS = {
    *(f"textDocument/did{what}" for what in ("Open", "Change", "Save", "Close")),
    *("initialized", "exit", "$/cancelRequest", "$/setTrace", "workspace/didChangeConfiguration"),
    "window/workDoneProgress/cancel",
}

Message = dict[str, Any]


@dataclass
class Sent:
    """What goes to the server.

    Attributes:
        kind: what sort of nonsense it is.
        data: bytes, headers included.
        request: the identifier, if it must be answered.
        breaks: the framing: what follows may be lost.
        exits: it is an ``exit`` that must be heard.
        shuts: it is a ``shutdown`` that must be heard.
    """

    kind: str
    data: bytes
    request: int | str | None = None
    breaks: bool = False
    exits: bool = False
    shuts: bool = False


def framed(kind: str, body: bytes, **more: Any) -> Sent:
    """A message with the right header."""
    return Sent(kind, b"Content-Length: %d\r\n\r\n%s" % (len(body), body), **more)


class Generator:
    """Makes the messages of one session."""

    def __init__(self, rng: Random, huge: int = HUGE) -> None:
        self.rng = rng
        self._size = huge
        self._requests = 0
        self._makers: list[tuple[float, Callable[[], Sent]]] = [
            (40, self._valid),
            (35, self._mutated),
            (6, self._malformed),
            (5, self._odd_json),
            (4, self._out_of_order),
            (4, self._odd_headers),
            (0.8, self._broken_framing),
            (0.2, self._exit),
        ]

    def message(self) -> Sent:
        """The next one."""
        if self.rng.random() < HUGE_CHANCE:
            return self._huge()
        maker = self.rng.choices([make for _, make in self._makers], [weight for weight, _ in self._makers])[0]
        return maker()

    def _object(self, kind: str, message: Any) -> Sent:
        body = json.dumps(message, ensure_ascii=self.rng.random() < 0.5).encode("utf-8", "surrogatepass")
        return framed(kind, body, request=must_answer(message), shuts=shuts(message), exits=exits(message))

    def _valid(self) -> Sent:
        return self._object("valid", self._any())

    def _mutated(self) -> Sent:
        message = self._any()
        for _ in range(self.rng.choice([1, 1, 1, 2, 3])):
            mutate(message, self.rng, self._value)
        if must_answer(message) is not None:  # an identifier that is not its own would not tell which was answered
            self._requests += 1
            message["id"] = f"mutated {self._requests}"
        return self._object("mutated", message)

    def _malformed(self) -> Sent:
        body = bytearray(json.dumps(self._any()).encode())
        rng = self.rng
        way = rng.randrange(6)
        if way == 0:
            body = body[: rng.randrange(len(body))]
        elif way == 1:
            for _ in range(rng.randint(1, 8)):
                body[rng.randrange(len(body))] = rng.randrange(256)
        elif way == 2:
            body = bytearray(rng.randbytes(rng.randint(0, 200)))
        elif way == 3:
            body = body + b"}" * rng.randint(1, 3)
        elif way == 4:
            body = bytearray(b"\xef\xbb\xbf") + body
        else:
            body = bytearray(body.decode().encode("utf-16"))
        return framed("malformed", bytes(body))

    def _odd_json(self) -> Sent:
        deep = self.rng.choice([50, 900, 20_000])
        choices: list[bytes] = [
            b"", b"null", b"true", b"17", b'"text"', b"[]", b"{}", b"[1, 2, 3]", b"NaN", b"-Infinity",
            b"[" * deep + b"]" * deep,
            b'{"a":' * deep + b"1" + b"}" * deep,
            b"1" * self.rng.choice([20, 5000]),
            b'{"jsonrpc": "2.0", "method": "initialized", "params": {"a": 1e999}}',
            b'{"jsonrpc": "2.0", "id": "twice", "id": [], "method": "a"}',
            b'{"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "x"}}',
            b'{"jsonrpc": "2.0", "id": "nobody asked", "result": {"x": [1]}}',
            b'{"jsonrpc": "2.0", "id": 1, "result": 1, "error": 2}',
            b'{"jsonrpc": "2.0", "result": 1}',
            b'{"jsonrpc": "1.0", "method": "shutdown"}',
            b'{"method": "\\ud800"}',
            b'{"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": ' + b"[" * deep + b"]" * deep + b"}",
            json.dumps([self._any() for _ in range(3)]).encode(),  # a batch, which LSP does not have
        ]  # fmt: skip
        return framed("odd JSON", self.rng.choice(choices))

    def _out_of_order(self) -> Sent:
        message = self.rng.choice(
            [
                lambda: self._request("initialize", initialize_params()),
                lambda: self._notification("initialized", {}),
                lambda: self._request("shutdown", None),
                lambda: self._notification("textDocument/didClose", {"textDocument": {"uri": "file:///never/open.py"}}),
                lambda: self._notification("textDocument/didChange", self._change("file:///never/open.py")),
                lambda: self._notification("$/cancelRequest", {"id": "not yet"}),
                lambda: self._notification("window/workDoneProgress/cancel", {"token": "none"}),
            ]
        )()
        return self._object("out of order", message)

    def _odd_headers(self) -> Sent:
        """Headers that are unusual and allowed."""
        message = self._any()
        body = json.dumps(message).encode()
        length = b"Content-Length: %d" % len(body)
        kind = b"Content-Type: application/vscode-jsonrpc; charset="
        headers = self.rng.choice(
            [[length, kind + b"utf-8"], [kind + b"utf8", length], [b"X-Other: 1", length], [length, b"X-Other: \xff"]]
        )
        return Sent("odd headers", b"\r\n".join(headers) + b"\r\n\r\n" + body, must_answer(message))

    def _broken_framing(self) -> Sent:
        body = json.dumps(self._any()).encode()
        size = len(body)
        rng = self.rng
        data = rng.choice(
            [
                b"Content-Length: %d\r\n\r\n" % (size + rng.randint(1, 500)) + body,
                b"Content-Length: %d\r\n\r\n" % max(0, size - rng.randint(1, 60)) + body,
                b"Content-Length: -1\r\n\r\n" + body,
                b"Content-Length: 0\r\n\r\n" + body,
                b"Content-Length: %d\r\n\r\n" % 10 ** rng.choice([9, 18, 30]) + body,
                b"Content-Length: many\r\n\r\n" + body,
                b"Content-Length: 1e3\r\n\r\n" + body,
                b"Content-Length:\r\n\r\n" + body,
                b"Content-Length: %d\r\nContent-Length: 7\r\n\r\n" % size + body,
                b"Content-Length: %d\n\n" % size + body,
                b"content-length: %d\r\n\r\n" % size + body,
                b"Content-Length:%d\r\n\r\n" % size + body,
                b"Content-Length:   %d  \r\n\r\n" % size + body,
                b"\r\n\r\n" + body,
                body,
                rng.randbytes(rng.randint(1, 300)),
                b"\r\n" * rng.randint(1, 5),
                b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc",
                b"A" * rng.choice([100, 100_000]),
            ]
        )
        return Sent("broken framing", data, breaks=True)

    def _exit(self) -> Sent:
        return self._object("exit", {"jsonrpc": "2.0", "method": "exit"})

    def _huge(self) -> Sent:
        text = self.rng.choice(["a", "a b\n", "é", "\\", "\n"]) * self._size
        text = text[: self._size]
        message = self.rng.choice(
            [
                lambda: self._notification("textDocument/didOpen", self._open(text)),
                lambda: self._request("textDocument/inlineCompletion", self._place(uri="file:///" + text)),
                lambda: self._request(text, {}),
                lambda: self._request("workspace/executeCommand", {"command": text}),
                lambda: self._notification(
                    "workspace/didChangeConfiguration", {"settings": {"codespec": {"draft": text}}}
                ),
                lambda: self._notification(
                    "textDocument/didChange",
                    {"textDocument": {"uri": URI, "version": 9}, "contentChanges": [{"text": text}]},
                ),
            ]
        )()
        return self._object("huge", message)

    def _any(self) -> Message:
        rng = self.rng
        return rng.choice(
            [
                lambda: self._request("textDocument/inlineCompletion", self._place()),
                lambda: self._request("textDocument/inlineCompletion", self._place()),
                lambda: self._notification("textDocument/didOpen", self._open(TEXT * rng.randint(0, 4))),
                lambda: self._notification("textDocument/didChange", self._change(URI)),
                lambda: self._notification("textDocument/didChange", self._change(URI)),
                lambda: self._notification("textDocument/didSave", {"textDocument": {"uri": URI}}),
                lambda: self._notification("textDocument/didClose", {"textDocument": {"uri": URI}}),
                lambda: self._notification("$/cancelRequest", {"id": rng.randint(0, self._requests + 1)}),
                lambda: self._notification("$/setTrace", {"value": rng.choice(["off", "messages", "verbose"])}),
                lambda: self._notification("workspace/didChangeConfiguration", {"settings": self._settings()}),
                lambda: self._request("workspace/executeCommand", self._command()),
                lambda: self._request("textDocument/hover", self._place()),
                lambda: self._request("no/such/method", {"a": 1}),
                lambda: self._notification("no/such/notification", [1]),
                lambda: {"jsonrpc": "2.0", "id": rng.randint(0, 5), "result": None},
            ]
        )()

    def _request(self, method: str, params: Any) -> Message:
        self._requests += 1
        identifier = self._requests if self.rng.random() < 0.7 else f"r{self._requests}"
        return {"jsonrpc": "2.0", "id": identifier, "method": method, "params": params}

    def _notification(self, method: str, params: Any) -> Message:
        return {"jsonrpc": "2.0", "method": method, "params": params}

    def _open(self, text: str) -> Message:
        language = self.rng.choice(["python", "json", "plaintext", "no-such-language", ""])
        return {"textDocument": {"uri": URI, "languageId": language, "version": 1, "text": text}}

    def _place(self, uri: str = URI) -> Message:
        context = {"triggerKind": self.rng.choice([1, 2, 2, 0, 3])}
        return {"textDocument": {"uri": uri}, "position": self._position(), "context": context}

    def _position(self) -> Message:
        numbers = [0, 0, 1, 3, 4, 5, 6, 7, 10, 14, 1000, 2**31 - 1, 2**31, 2**53, -1, -(2**31)]
        return {"line": self.rng.choice(numbers), "character": self.rng.choice(numbers)}

    def _change(self, uri: str) -> Message:
        changes: list[Message] = []
        for _ in range(self.rng.choice([0, 1, 1, 1, 2, 5])):
            text = self.rng.choice(["", "x", "\n", "\r", "é😋", "def f(:\n", TEXT])
            whole = self.rng.random() < 0.2
            span = {"start": self._position(), "end": self._position()}
            changes.append({"text": text} if whole else {"text": text, "range": span})
        return {"textDocument": {"uri": uri, "version": self.rng.randint(-1, 9)}, "contentChanges": changes}

    def _settings(self) -> Any:
        known = {"enabled": True, "max_tokens": self.rng.choice([4, 0, -1, "x", 10**9]), "grammar": "none"}
        return self.rng.choice([None, {}, {"codespec": known}, {"codespec": {self._word(): self._value()}}, known])

    def _command(self) -> Message:
        names = ["status", "accepted", "forget", "nonesuch", "clearLearnt", "restart"]
        arguments = self.rng.choice([None, [], ["answers"], [self._value()], [self._value(), self._value()]])
        return {"command": f"codespec.{self.rng.choice(names)}", "arguments": arguments}

    def _word(self) -> str:
        return self.rng.choice(
            ["codespec", "target", "uri", "line", "text", "id", "method", "", "\ud800", "é", "a" * 300]
        )

    def _value(self) -> Any:
        simple = [
            None,
            True,
            False,
            0,
            -1,
            1.5,
            1e308,
            2**63,
            10**30,
            "",
            "x",
            "\x00",
            "\ud83d",
            "file:///",
            "../..",
            [],
            {},
        ]
        if self.rng.random() < 0.8:
            return self.rng.choice(simple)
        return self.rng.choice([[], {}, [self._value()], {self._word(): self._value()}, [1] * 1000, {"uri": URI}])


def initialize_params() -> Message:
    """Of a client with no wishes."""
    return {"processId": None, "rootUri": None, "capabilities": {}, "initializationOptions": {"prefetch": False}}


def must_answer(message: Any) -> int | str | None:
    """The identifier of a well-formed request; one with the name of a notification may go without an answer."""
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0" or not isinstance(message.get("method"), str):
        return None
    identifier = message.get("id")
    known = isinstance(identifier, (int, str)) and not isinstance(identifier, bool)
    known = known and not {"result", "error"} & message.keys() and message["method"] not in NOTIFICATIONS
    return identifier if known else None


def exits(message: Any) -> bool:
    """Whether a message is a well-formed ``exit``."""
    known = isinstance(message, dict) and message.get("jsonrpc") == "2.0" and message.get("method") == "exit"
    return known and "id" not in message


def shuts(message: Any) -> bool:
    """Whether a message may shut the server down."""
    return isinstance(message, dict) and message.get("method") == "shutdown"


def mutate(message: Message, rng: Random, value: Callable[[], Any]) -> None:
    """Change one thing somewhere in ``message``."""
    places = list(_places(message))
    owner, key = rng.choice(places)
    way = rng.randrange(4)
    if way == 0:
        del owner[key]
    elif way == 1 and isinstance(owner, dict):
        owner[str(key) + rng.choice(["", " ", "s"])] = owner.pop(key)
    elif way == 2 and isinstance(owner, dict):
        owner[rng.choice(["extra", "id", "params", "range"])] = value()
    else:
        owner[key] = value()
    if not message:
        message["jsonrpc"] = "2.0"


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in list(items):
        yield value, key
        yield from _places(each)
