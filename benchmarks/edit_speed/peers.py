"""llama.cpp's own n-gram modes over the same texts: servers that stay, asked in turn with codespec's arms."""

from __future__ import annotations

import re
import struct
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep

from benchmarks.decode.llama_cpp import (
    SERVER,
    PeerOptions,
    PeerPrompt,
    PeerResult,
    PeerSetting,
    command,
    environment,
    parse_answer,
)
from benchmarks.decode.llama_cpp import request as server_request
from benchmarks.edit_speed.arms import Sample
from benchmarks.edit_speed.cases import Tokens
from benchmarks.edit_speed.replay_model import CONTEXT
from benchmarks.llama_server import Server
from codespec.protocols import CodespecError

FOUND = (
    ("ngram-simple", (4, 7)),
    ("ngram-simple", (4, 15)),
    ("ngram-simple", (4, 31)),
    ("ngram-simple", (8, 31)),
    ("ngram-simple", (12, 48)),
    ("ngram-map-k", (4, 7)),
    ("ngram-map-k", (4, 15)),
    ("ngram-map-k", (4, 31)),
    ("ngram-map-k4v", (4, 15)),
)
"""Modes that look an n-gram up: how long it is, and how many tokens are proposed then."""

HASHED = ((16, 4, 15), (8, 2, 7), (8, 2, 15), (8, 2, 31), (16, 2, 31), (24, 48, 64))
"""Settings of ``ngram-mod``: tokens of the n-gram, proposed at least, and at most; the last one is the default."""

_FILE_HEADER = struct.Struct("<III")  # magic number, version, tokens
_STATE = "prompt"
_VERIFIED = re.compile(rb"ids\.size=(\d+), n_draft=(\d+)")  # tokens of a pass, its own included, and proposed ones
_DEBUG = "5"
_LOG_S = 2.0  # until a server has written its log


def settings() -> list[PeerSetting]:
    """All modes of the server that need no draft model."""
    found: list[PeerSetting] = []
    arguments: tuple[str, ...]
    for kind, (key, value) in FOUND:
        arguments = ("--spec-type", kind, f"--spec-{kind}-size-n", str(key), f"--spec-{kind}-size-m", str(value))
        found.append(PeerSetting(f"server {kind}", f"size-n {key}, size-m {value}", SERVER, arguments))
    for match, least, most in HASHED:
        values = {"n-match": match, "n-min": least, "n-max": most}
        arguments = ("--spec-type", "ngram-mod", *(each for k, v in values.items() for each in _option(k, v)))
        name = ", ".join(f"{key} {value}" for key, value in values.items())
        found.append(PeerSetting("server ngram-mod", name, SERVER, arguments))
    found.append(PeerSetting("server ngram-cache", "default", SERVER, ("--spec-type", "ngram-cache")))
    return found


def _option(name: str, value: int) -> tuple[str, str]:
    return f"--spec-ngram-mod-{name}", str(value)


def selected(names: str) -> list[PeerSetting]:
    """The settings whose mode and name begin with one of several texts, parted by semicolons; empty: all.

    Raises:
        CodespecError: a text that none begins with.
    """
    found = []
    for name in filter(None, map(str.strip, names.split(";"))):
        matching = [each for each in settings() if title(each).startswith(name)]
        if not matching:
            raise CodespecError(f"--peer-settings {name}: none begins so; " + "; ".join(map(title, settings())))
        found += matching
    return found or settings()


def title(setting: PeerSetting) -> str:
    """Mode and settings in one line."""
    return f"{setting.mode}, {setting.name}"


@dataclass(frozen=True)
class Peer:
    """A server that runs with a setting."""

    setting: PeerSetting
    server: Server


class Peers:
    """Servers of llama.cpp over one model file, whose text may change meanwhile: the file is mapped into memory.

    Only one reads a prompt, the longest: that KV cache is restored under the tokens of every prompt.

    Args:
        folder: where llama.cpp's programs lie.
        counts: whether the rows of each pass are wanted, which the server's log tells; it costs time.

    Raises:
        CodespecError: a server does not start.
    """

    def __init__(self, folder: Path, model: Path, chosen: Sequence[PeerSetting], threads: int, counts: bool) -> None:
        self._counts = counts
        self._options = PeerOptions(temperature=0.0, ignore_eos=True, context=CONTEXT, threads=threads)
        self._stack = ExitStack()
        self.peers: list[Peer] = []
        self._read: tuple[bytes, bytes] | None = None  # the header and the state of the longest prompt
        self._cells = 0
        try:
            self._states = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="codespec-edit-speed-")))
            for setting in chosen:
                line = [*command(setting, folder, model, None, self._options), "--parallel", "1", "--cache-ram", "0"]
                line += ["--no-ui", "--no-warmup", "--slot-save-path", str(self._states)]
                line += ["--log-verbosity", _DEBUG] if counts else []
                server = Server(line, environment(self._options.spin_count), 600.0)
                self.peers.append(Peer(setting, self._stack.enter_context(server)))
        except (OSError, RuntimeError) as error:
            self.close()
            raise CodespecError(f"{folder}: {SERVER} does not run ({error})") from None

    def run(self, peer: Peer, case: Tokens) -> Sample:
        """Let a server write a case's text, which the model file says.

        Raises:
            CodespecError: it failed, or wrote something else.
        """
        prompt = PeerPrompt(tuple(case.prompt), "")
        try:
            self._bring_to(peer.server, prompt)
            logged = peer.server.logged() if self._counts else b""
            body = {**server_request(prompt, self._options), "n_predict": len(case.written), "cache_prompt": True}
            result = parse_answer(peer.server.ask("/completion", body), prompt)
        except (OSError, RuntimeError, KeyError) as error:
            raise CodespecError(f"{title(peer.setting)}: {error}") from None
        if result.error is not None or list(result.ids or ()) != case.written:
            raise CodespecError(f"{title(peer.setting)}: {result.error or 'another text was written'}")
        passes = self._passes(peer.server, len(logged), len(case.written), result) if self._counts else ()
        counts = {"ngram": (result.drafted, result.accepted)}
        return Sample(result.decode_ms / max(1, result.decoded), passes, counts)

    def _passes(self, server: Server, before: int, tokens: int, result: PeerResult) -> tuple[int, ...]:
        """The rows of each pass after the one that gave the first token, in any order."""
        until = monotonic() + _LOG_S
        while True:
            found = [(int(grown), int(drafted)) for grown, drafted in _VERIFIED.findall(server.logged()[before:])]
            if sum(drafted for _, drafted in found) == result.drafted:
                break
            if monotonic() > until:
                raise CodespecError(f"the server's log says other than its answer: {result.drafted:,} drafted")
            sleep(0.02)
        alone = tokens - 1 - sum(grown for grown, _ in found)
        return (*[1] * alone, *[1 + drafted for _, drafted in found])

    def _bring_to(self, server: Server, prompt: PeerPrompt) -> None:
        name = {"filename": _STATE}
        file = self._states / _STATE
        if self._read is None:
            server.ask("/completion", {**server_request(prompt, self._options), "n_predict": 0})
            self._cells = int(server.ask("/slots/0?action=save", name)["n_saved"])
            data = file.read_bytes()
            _, _, count = _FILE_HEADER.unpack_from(data)
            self._read = data[:8], data[_FILE_HEADER.size + 4 * count :]
        if len(prompt.tokens) > self._cells:
            raise CodespecError("the longest prompt has to be the first")
        tokens = [*prompt.tokens, *[prompt.tokens[-1]] * (self._cells - len(prompt.tokens))]
        header, state = self._read
        file.write_bytes(header + struct.pack(f"<I{len(tokens)}i", len(tokens), *tokens) + state)
        server.ask("/slots/0?action=restore", name)

    def close(self) -> None:
        """End the servers."""
        self._stack.close()
