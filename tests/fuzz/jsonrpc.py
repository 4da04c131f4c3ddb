"""``python -m tests.fuzz jsonrpc``: hostile messages to a language server: malformed, out of order, wrong, huge.

A session is a server process and some batches of messages. After each batch a request of a kind that needs nothing must
be answered, and at the end every well-formed request must have been. A message that breaks the framing (a wrong
length, say) may cost the session: then the server must end by itself once its input ends. ``exit`` ends it with the
status that the protocol names. A process that hangs, dies of a signal, or logs a traceback has failed.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import os
import queue
import re
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from .messages import HUGE, Generator, Message, Sent, framed, initialize_params

ROOT = Path(__file__).resolve().parents[2]
STUB = [sys.executable, str(ROOT / "tests" / "lsp" / "stub_server.py")]
REAL = [sys.executable, "-m", "codespec", "serve"]
BATCH, BATCHES = (1, 15), (1, 40)
ANSWER_S, EXIT_S = 120.0, 60.0
SHOWN = 300  # characters of a message in a report


class Failure(Exception):
    """A server that did what it must not."""


class Session:
    """A server process at the end of two pipes."""

    def __init__(self, command: list[str], folder: Path) -> None:
        own = {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "CODESPEC_DATA": str(folder / "data")}
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  # closed by `kill`
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env={**os.environ, **own, "PYTHONPATH": path, "STUB_STEP_S": "0.001"},
        )
        self.answers: dict[int | str, Message] = {}
        self._arrivals: queue.Queue[Any] = queue.Queue()
        self._probes = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def send(self, data: bytes) -> bool:
        """Whether the server still takes messages."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(data)
            self.process.stdin.flush()
        except OSError:
            return False
        return True

    def handshake(self) -> None:
        """Begin a session in good order."""
        first = {"jsonrpc": "2.0", "id": "first", "method": "initialize", "params": initialize_params()}
        for message in (first, {"jsonrpc": "2.0", "method": "initialized", "params": {}}):
            self.send(framed("handshake", json.dumps(message).encode()).data)

    def probe(self) -> bool:
        """Whether a request is answered; False where the server has ended."""
        self._probes += 1
        name = f"probe {self._probes}"
        if not self.send(
            framed("probe", b'{"jsonrpc": "2.0", "id": "%s", "method": "no/such", "params": {}}' % name.encode()).data
        ):
            return False
        return self.wait({name}, ANSWER_S)

    def wait(self, names: set[int | str], timeout: float) -> bool:
        """Whether all of these requests were answered in time."""
        end = time.monotonic() + timeout
        while names - self.answers.keys():
            try:
                arrival = self._arrivals.get(timeout=max(0.01, end - time.monotonic()))
            except queue.Empty:
                return False
            if arrival is None:
                self._arrivals.put(None)
                return False
            if isinstance(arrival, Exception):
                raise Failure(f"the server's output cannot be read: {arrival!r}")
            identifier = arrival.get("id") if isinstance(arrival, dict) and "method" not in arrival else None
            if isinstance(identifier, (int, str)) and not isinstance(identifier, bool):
                if identifier in self.answers:
                    raise Failure(f"answered twice: {identifier!r}")
                self.answers[identifier] = arrival
        return True

    def end(self) -> int:
        """Close the server's input; its exit status.

        Raises:
            Failure: it does not end.
        """
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        try:
            return self.process.wait(EXIT_S)
        except subprocess.TimeoutExpired:
            raise Failure(f"still running {EXIT_S:g} s after its input ended") from None

    def kill(self) -> None:
        """End the process, however it is."""
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                stream.close()  # type: ignore[union-attr]
        self._stderr.close()

    def stderr(self) -> str:
        """What the server has logged."""
        # The server writes where this file is read: with ``seek`` it would write over what it has written.
        return os.pread(self._stderr.fileno(), os.fstat(self._stderr.fileno()).st_size, 0).decode("utf-8", "replace")

    def _read(self) -> None:
        stdout = self.process.stdout
        assert stdout is not None
        try:
            while header := stdout.readline():
                length = 0
                while header.strip():
                    name, _, value = header.partition(b":")
                    length = int(value) if name.lower() == b"content-length" else length
                    header = stdout.readline()
                self._arrivals.put(json.loads(stdout.read(length)))
            self._arrivals.put(None)
        except Exception as error:
            self._arrivals.put(error if not isinstance(error, ValueError) or self.process.poll() is None else None)


@dataclass
class Outcome:
    """What many messages have done."""

    messages: int = 0
    sessions: int = 0
    kinds: collections.Counter[str] = field(default_factory=collections.Counter)
    ends: collections.Counter[str] = field(default_factory=collections.Counter)
    failures: list[str] = field(default_factory=list)

    def text(self, seconds: float) -> str:
        """The summary to print."""
        lines = [
            f"{self.messages} messages in {self.sessions} sessions, {seconds:.0f} s: {dict(self.kinds.most_common())}"
        ]
        lines.append(f"sessions ended: {dict(self.ends.most_common())}")
        lines += [f"FAILED  {failure}" for failure in self.failures]
        return "\n".join([*lines, f"{len(self.failures)} sessions failed"])


def fuzz(
    count: int, seed: int = 1, command: list[str] | None = None, huge: int = HUGE, most_failures: int = 10
) -> Outcome:
    """Send ``count`` messages, in as many sessions as that takes; the same ones for the same seed.

    Args:
        huge: characters of the longest texts.
    """
    outcome = Outcome()
    while outcome.messages < count and len(outcome.failures) < most_failures:
        generator = Generator(Random(seed + outcome.sessions), huge)
        _session(seed + outcome.sessions, generator, command or STUB, count - outcome.messages, outcome)
        outcome.sessions += 1
        if sys.stderr.isatty():
            print(f"\r{outcome.messages}/{count}, {len(outcome.failures)} failed", end="", file=sys.stderr)
    return outcome


def _session(seed: int, generator: Generator, command: list[str], most: int, outcome: Outcome) -> None:
    rng = generator.rng
    batch: list[Sent] = []
    with tempfile.TemporaryDirectory(prefix="codespec-fuzz-", ignore_cleanup_errors=True) as folder:
        session = Session(command, Path(folder))
        try:
            if rng.random() < 0.9:
                session.handshake()
            shut = False
            expected: set[int | str] = set()
            end = "input closed"
            for _ in range(rng.randint(*BATCHES)):
                batch = [generator.message() for _ in range(min(rng.randint(*BATCH), most))]
                most -= len(batch)
                batch = _until_over(batch)
                outcome.messages += len(batch)
                outcome.kinds.update(each.kind for each in batch)
                for each in batch:
                    session.send(each.data)
                    shut = shut or each.shuts
                expected |= {each.request for each in batch if each.request is not None}
                last = batch[-1] if batch else None
                if last is not None and last.exits:
                    end = "exit"
                    break
                if last is not None and last.breaks:
                    expected = set()
                    end = "broken framing"
                    break
                if not session.probe():
                    raise Failure("a request that must be answered was not")
                if most <= 0:
                    break
            if expected and end == "input closed" and not session.wait(expected, ANSWER_S):
                raise Failure(f"never answered: {sorted(map(repr, expected - session.answers.keys()))[:5]}")
            status = session.end()
            allowed = (0, 1) if shut or end != "exit" else (1,)
            if status not in allowed:
                raise Failure(f"exit status {status} after {end}")
            if bad := unexpected(session.stderr()):
                raise Failure(f"a traceback in the log: {bad[:1500]}")
            outcome.ends[f"{end}, status {status}"] += 1
        except Failure as failure:
            outcome.failures.append(f"seed {seed}: {failure}\n{_show(batch)}\n  log: {session.stderr()[-1500:]}")
        finally:
            session.kill()


def unexpected(log: str) -> str:
    """The first traceback that is not of a message that could not be read, which pygls logs as it should."""
    for record in re.split(
        r"(?=\b(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) [\w.]+: )|^(?=stub: )", log, flags=re.MULTILINE
    ):
        if re.search("Traceback|never (retrieved|awaited)", record) and not record.startswith("ERROR pygls."):
            return record
    return ""


def _until_over(batch: list[Sent]) -> list[Sent]:
    """The messages up to the first after which the server need not listen."""
    for index, each in enumerate(batch):
        if each.breaks or each.exits:
            return batch[: index + 1]
    return batch


def _show(batch: list[Sent]) -> str:
    return "\n".join(
        f"  {each.kind}: {each.data[:SHOWN]!r}{f' … {len(each.data)} bytes' if len(each.data) > SHOWN else ''}"
        for each in batch
    )


def main(arguments: list[str]) -> int:
    """Run; 1 if a session failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz jsonrpc", description=__doc__)
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1, help="of the first session; each next one adds 1")
    parser.add_argument("--real", action="store_true", help="the real server with the embedded models")
    options = parser.parse_args(arguments)
    began = time.monotonic()
    outcome = fuzz(options.messages, options.seed, REAL if options.real else STUB)
    print(outcome.text(time.monotonic() - began))
    return 1 if outcome.failures else 0
