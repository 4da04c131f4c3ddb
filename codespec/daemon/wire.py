"""The protocol between language servers and the model process: JSON messages, documents sent as differences.

A request of the language server has an ``id`` and an ``op``::

    {"id": 1, "op": "open", "config": ...}                         {"id": 1, "progress": ["loading x.gguf", 40]}
                                                                   {"id": 1, "result": []}
    {"id": 2, "op": "complete", "request": ..., "ahead": false}    {"id": 2, "begun": true}
                                                                   {"id": 2, "result": [...]}
    {"op": "cancel", "id": 2}                                      {"id": 2, "error": "...", "internal": false}
    {"id": 3, "op": "edit", "request": ...}                        {"id": 3, "result": [...]}

A setting, a request or an answer is ``{"kind of": "request", "fields": {...}}``: see ``_KINDS``.
The other ops are ``prefill``, ``learn``, ``accepted``, ``forget``, ``status`` and ``stop``. Unasked, the model process
sends ``{"bye": reason}`` before it ends on purpose, ``{"log": [level, logger, text]}``, and, so that it is never silent
for longer than a second, ``{"alive": true}``.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import secrets
import socket
import struct
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from codespec.completion.request import Completion, Request
from codespec.completion.trace import Pass
from codespec.config import Config
from codespec.config_rules import is_path
from codespec.edits.request import Edit, EditOffer, EditRequest, OtherDocument, RecentEdit
from codespec.protocols import Snippet
from codespec.recent import Recent
from codespec.text_difference import common_ends

GREETING_S = 10.0
"""How long either side waits for the other to prove that it knows the key."""

BEAT_S = 1.0
"""Seconds between two messages of the model process; without another one to send it sends ``alive``."""

DOCUMENTS = 16
"""Documents whose text both sides of a connection remember."""

_PATHS = frozenset({"path", "draft", "grammar"})  # settings that may name a file
_LARGEST = 1 << 28
_NONCE = 32
_PROOF = 32


class Channel:
    """One end of a connection. One thread may send while another receives."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._sent, self._received = DocumentTexts(), DocumentTexts()

    def greet(self, key: bytes, listening: bool, seconds: float = GREETING_S) -> None:
        """Prove to the other side that this one knows the key, and have that proved in turn, within so many seconds.

        Raises:
            TimeoutError: it takes longer.
            PermissionError: the other side does not know it, or is of another user.
            OSError, EOFError: the connection is lost.
        """
        check_user(self._connection)
        overdue = threading.Event()

        def end() -> None:
            overdue.set()
            self.shut()

        # Waiting for each message alone would leave whoever says half of one all the time in the world.
        timer = threading.Timer(seconds, end)
        timer.daemon = True
        timer.start()
        try:
            self._converse(key, listening)
        except (OSError, EOFError) as error:
            if overdue.is_set():
                raise TimeoutError("the other side says nothing") from error
            raise
        finally:
            timer.cancel()

    def _converse(self, key: bytes, listening: bool) -> None:
        if listening:
            asked = secrets.token_bytes(_NONCE)
            self._connection.send_bytes(asked)
            answer = self._hear(_NONCE + _PROOF)
            nonce, proof = answer[:_NONCE], answer[_NONCE:]
            if not hmac.compare_digest(proof, _proof(key, b"client", asked + nonce)):
                raise PermissionError("the other side does not know the key")
            self._connection.send_bytes(_proof(key, b"server", nonce + asked))
        else:
            asked, nonce = self._hear(_NONCE), secrets.token_bytes(_NONCE)
            self._connection.send_bytes(nonce + _proof(key, b"client", asked + nonce))
            if not hmac.compare_digest(self._hear(_PROOF), _proof(key, b"server", nonce + asked)):
                raise PermissionError("the other side does not know the key")

    def send(self, message: Mapping[str, Any]) -> None:
        """Send one message, whose values may be what ``_KINDS`` names, and lists of it.

        Raises:
            OSError: the connection is lost.
            ValueError: the message is too long.
        """
        packed = {name: _pack(value, self._sent) for name, value in message.items()}
        # Halves of surrogate pairs are no UTF-8; JSON reads them back as they were.
        self._connection.send_bytes(json.dumps(packed, ensure_ascii=False).encode("utf-8", "surrogatepass"))

    def receive(self) -> dict[str, Any]:
        """Wait for one message.

        Raises:
            OSError, EOFError: the connection is lost.
            KeyError, TypeError, ValueError: it is no message.
        """
        message = json.loads(self._connection.recv_bytes(_LARGEST))
        if not isinstance(message, dict):
            raise ValueError("not a message")
        return {name: _unpack(value, self._received) for name, value in message.items()}

    def shut(self) -> None:
        """End the connection while other threads use it: they get an error."""
        if sys.platform == "win32":  # where closing does that
            self.close()
            return
        with self._lock, contextlib.suppress(OSError):
            if not self._connection.closed:
                with socket.socket(fileno=os.dup(self._connection.fileno())) as end:
                    end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End the connection, which no thread may use any more: its file descriptor may be reused."""
        with self._lock, contextlib.suppress(OSError):
            self._connection.close()

    def _hear(self, length: int) -> bytes:
        found = self._connection.recv_bytes(length)
        if len(found) != length:
            raise PermissionError("the other side speaks another protocol")
        return found


def _proof(key: bytes, role: bytes, nonces: bytes) -> bytes:
    return hmac.digest(key, role + nonces, "sha256")


def check_user(connection: Connection) -> None:
    """Refuse other users' processes, where the system tells.

    Raises:
        PermissionError: the other end belongs to somebody else.
    """
    if sys.platform == "linux":
        with socket.socket(fileno=os.dup(connection.fileno())) as end:
            credentials = end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        user = struct.unpack("3i", credentials)[1]
        if user not in (os.getuid(), 0):
            raise PermissionError(f"the other side belongs to user {user}")


class DocumentTexts:
    """The latest text of each document, the same on both sides, so that only the changed part is sent.

    Both sides must see the same documents in the same order.
    """

    def __init__(self) -> None:
        self._texts: Recent[str, str] = Recent(DOCUMENTS)

    def pack(self, document: str, text: str) -> list[Any]:
        """``[document, start, deleted characters, inserted text, length of all]``."""
        old = self._texts.get(document, "")
        start, end = common_ends(old, text)
        self._texts[document] = text
        return [document, start, len(old) - start - end, text[start : len(text) - end], len(text)]

    def unpack(self, packed: Any) -> tuple[str, str]:
        """A document and its text.

        Raises:
            ValueError: it is not what ``pack`` gave, or a message was lost.
        """
        document, start, deleted, inserted, length = packed
        old = self._texts.get(document, "")
        text: str = old[:start] + inserted + old[start + deleted :]
        if len(text) != length:
            raise ValueError("the two sides have different texts")
        self._texts[document] = text
        return document, text


def pack_request(request: Request, texts: DocumentTexts) -> dict[str, Any]:
    """A request as JSON; ``draft`` and ``grammar`` as in ``pack_config``."""
    fields = asdict(replace(request, text=""))
    for name in ("draft", "grammar"):
        fields[name] = _absolute(name, fields[name])
    return {**fields, "text": texts.pack(request.path, request.text)}


def unpack_request(fields: Mapping[str, Any], texts: DocumentTexts) -> Request:
    """A request from JSON.

    Raises:
        TypeError, ValueError: it is none.
    """
    context = tuple(Snippet(**each) for each in fields["context"])
    return Request(**{**fields, "text": texts.unpack(fields["text"])[1], "context": context})


def pack_edit_request(request: EditRequest, texts: DocumentTexts) -> dict[str, Any]:
    """A request for a next edit as JSON."""
    fields = asdict(replace(request, text="", others=(), rejected=frozenset()))
    others = [{**asdict(replace(each, text="")), "text": texts.pack(each.path, each.text)} for each in request.others]
    return {
        **fields,
        "rejected": sorted(request.rejected),
        "text": texts.pack(request.path, request.text),
        "others": others,
    }


def unpack_edit_request(fields: Mapping[str, Any], texts: DocumentTexts) -> EditRequest:
    """A request for a next edit from JSON.

    Raises:
        TypeError, ValueError: it is none.
    """
    others = [OtherDocument(**{**each, "text": texts.unpack(each["text"])[1]}) for each in fields["others"]]
    return EditRequest(
        **{
            **fields,
            "text": texts.unpack(fields["text"])[1],
            "others": tuple(others),
            "recent": tuple(RecentEdit(**each) for each in fields["recent"]),
            "rejected": frozenset(fields["rejected"]),
        }
    )


def pack_completion(completion: Completion, texts: DocumentTexts) -> dict[str, Any]:
    """A completion as JSON, without its rounds."""
    fields = asdict(replace(completion, rounds=()))
    del fields["rounds"]
    return fields


def unpack_completion(fields: Mapping[str, Any], texts: DocumentTexts) -> Completion:
    """The completion that ``pack_completion`` packed; without its rounds, which stay in the model process."""
    return Completion(**{**fields, "passes": tuple(map(_pass, fields["passes"]))}, rounds=())


def _pass(packed: Mapping[str, Any]) -> Pass:
    return Pass(packed["ms"], tuple(packed["tokens"]), tuple(packed["sources"]), tuple(packed["rejected"]))


def pack_offer(offer: EditOffer, texts: DocumentTexts) -> dict[str, Any]:
    """A next edit as JSON."""
    return asdict(offer)


def unpack_offer(fields: Mapping[str, Any], texts: DocumentTexts) -> EditOffer:
    """A next edit from JSON."""
    edits = tuple(Edit(**each) for each in fields["edits"])
    return EditOffer(**{**fields, "edits": edits, "parts": tuple(fields["parts"])})


def pack_config(config: Config, texts: DocumentTexts) -> dict[str, Any]:
    """Settings as JSON; paths no longer depend on the current folder, which the model process does not share."""
    packed: dict[str, Any] = _absolute("", asdict(config))
    packed["edits"]["model"] = _absolute("path", config.edits.model)  # that of `remote` is no file
    return packed


def unpack_config(options: Mapping[str, Any], texts: DocumentTexts) -> Config:
    """Settings from JSON.

    Raises:
        ValueError: they are none.
    """
    config, messages = Config().apply(options)
    if messages:
        raise ValueError("; ".join(messages))
    return config


def _absolute(key: str, value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _absolute(name, each) for name, each in value.items()}
    if key in _PATHS and is_path(value):
        return str(Path(value).absolute())
    return value


_KINDS: dict[str, tuple[type, Callable[[Any, DocumentTexts], Any], Callable[[Any, DocumentTexts], Any]]] = {
    "request": (Request, pack_request, unpack_request),
    "edit request": (EditRequest, pack_edit_request, unpack_edit_request),
    "completion": (Completion, pack_completion, unpack_completion),
    "offer": (EditOffer, pack_offer, unpack_offer),
    "settings": (Config, pack_config, unpack_config),
}
_KIND = "kind of"


def _pack(value: Any, texts: DocumentTexts) -> Any:
    """A value of a message as JSON: plain data, one of ``_KINDS``, or a list of those."""
    if isinstance(value, list):
        return [_pack(each, texts) for each in value]
    for name, (kind, pack, _) in _KINDS.items():
        if isinstance(value, kind):
            return {_KIND: name, "fields": pack(value, texts)}
    return value


def _unpack(value: Any, texts: DocumentTexts) -> Any:
    if isinstance(value, list):
        return [_unpack(each, texts) for each in value]
    if isinstance(value, dict) and _KIND in value:
        return _KINDS[value[_KIND]][2](value["fields"], texts)
    return value
