"""A grammar from outside is compiled in a child process first, where it can do no harm.

A grammar can make an engine recurse until the stack ends, allocate until the memory ends, or work for hours, and
none of these can be caught in the process they happen in. So a helper process compiles it, takes a few steps with
it, and reports: only what came through is compiled here, by the same code, with the same outcome.

The helper imports the engine once. Where there is ``fork``, each grammar then gets a copy of the helper for itself,
with limits on its memory and processor time; elsewhere (Windows) the helper does the work itself, and is ended and
replaced when it takes too long or dies.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import signal
import subprocess
import threading
from typing import TYPE_CHECKING, Any

from codespec.grammar import cache
from codespec.grammar.errors import GrammarError
from codespec.paths import own_python

if TYPE_CHECKING:
    pass

SECONDS = 1.5
"""Processor time for compiling a grammar and the first steps with it."""
PATIENCE = 10.0
"""Seconds until a helper that has not answered is ended, however busy the machine."""
MEMORY = 500 * 1024 * 1024
"""Bytes that a grammar may take, the engine itself not counted."""
_APPROVED = "approved"
_IMPORT = re.compile(r"%import\s+\.")
_MOST_REFUSED = 256
_IDLE = 30.0  # seconds after which a helper that nobody needs is ended

TrialReport = dict[str, Any]
"""``kind``: ``ok``, ``error`` (with ``name``, ``cause``, ``remedy``, ``line``, ``column``), ``slow``, ``overdue``,
``memory``, ``crash`` or ``contradiction`` (with ``cause``). ``compiled``: entries for the cache, if ``ok``.
``seconds`` and ``memory`` (in MB, the helper included): what it took, if known."""


def approve(kind: str, text: str, name: str, **options: Any) -> None:
    """Return if the grammar compiles, in bounded time and memory, and can be used; an approval is remembered on disk.

    Args:
        kind: how ``text`` is written: ``gbnf``, ``lark``, ``json`` (a JSON Schema) or ``regex``.
        name: for messages.
        options: what the ``Grammar.from_...`` of that kind takes besides.

    Raises:
        GrammarError: what is wrong with it, or which limit it exceeds.
    """
    key = cache.key(text, sandbox=kind, **options)
    # What another file holds may change.
    remembered = not (kind == "lark" and _IMPORT.search(text))
    if remembered and (key in _approved or cache.load(key) == _APPROVED):
        return
    known = _refused.get(key)
    if known is not None:
        raise refusal(name, {**known, "name": name})
    verdict = shared.examine({"kind": kind, "text": text, "name": name, "options": options})
    if verdict["kind"] != "ok":
        if remembered and verdict["kind"] != "overdue":
            _refuse(key, verdict)
        raise refusal(name, verdict)
    keep(verdict)
    if remembered:
        _approved.add(key)
        cache.store(key, _APPROVED)


def _refuse(key: str, verdict: TrialReport) -> None:
    """Remember a refusal while this process lives: asking again then costs nothing."""
    if len(_refused) >= _MOST_REFUSED:
        _refused.clear()
    _refused[key] = verdict


def keep(verdict: TrialReport) -> None:
    """Put the grammars that the helper compiled into the cache, so that they are not compiled again."""
    for key, text in verdict.get("compiled", {}).items():
        cache.store(key, text)


def refusal(name: str, verdict: TrialReport) -> GrammarError:
    """The error for a helper's report."""
    shorten = "make it smaller: fewer rules, smaller repetition counts, fewer nested optional parts"
    kind = verdict["kind"]
    if kind == "error":
        return GrammarError(*(verdict[part] for part in ("name", "cause", "remedy", "line", "column")))
    if kind == "slow":
        return GrammarError(name, f"compiling it takes more than {SECONDS:g} s of processor time", shorten)
    if kind == "overdue":
        return GrammarError(name, f"compiling it gave no result within {PATIENCE:g} s", f"try again, or {shorten}")
    if kind == "memory":
        return GrammarError(name, f"compiling it takes more than {MEMORY >> 20} MB of memory", shorten)
    if kind == "contradiction":
        return GrammarError(name, f"the grammar engine contradicts itself on it: {verdict['cause']}", shorten)
    return GrammarError(name, f"the grammar engine fails on it ({verdict['cause']})", shorten)


class Sandbox:
    """A helper process, started when first needed. Any number of threads may share one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._idle: threading.Timer | None = None

    def examine(self, request: dict[str, Any]) -> TrialReport:
        """The helper's report on one grammar.

        Raises:
            GrammarError: no helper can be started.
        """
        with self._lock:
            if self._idle is not None:
                self._idle.cancel()
            try:
                return self._ask(request)
            finally:
                self._idle = threading.Timer(_IDLE, self.close)
                self._idle.daemon = True
                self._idle.start()

    def close(self) -> None:
        """End the helper; the next question starts another."""
        with self._lock:
            if self._idle is not None:
                self._idle.cancel()
            self._end()

    def _ask(self, request: dict[str, Any]) -> TrialReport:
        process = self._process
        if process is None or process.poll() is not None:
            self._end()
            process = self._process = _start(str(request["name"]))
        assert process.stdin is not None
        assert process.stdout is not None
        overdue = threading.Event()

        def end() -> None:
            overdue.set()
            process.kill()

        timer = threading.Timer(PATIENCE, end)
        timer.start()
        try:
            process.stdin.write(json.dumps(request, default=list).encode() + b"\n")
            process.stdin.flush()
            answer = process.stdout.readline()
        except OSError:
            answer = b""
        finally:
            timer.cancel()
        if answer.endswith(b"\n"):
            verdict: TrialReport = json.loads(answer)
            return verdict
        self._end()
        return {"kind": "overdue"} if overdue.is_set() else {"kind": "crash", "cause": ended(process.returncode)}

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()


_approved: set[str] = set()
_refused: dict[str, TrialReport] = {}
shared = Sandbox()
"""The helper of this process."""
atexit.register(shared.close)


def _start(name: str) -> subprocess.Popen[bytes]:
    # One thread of linear algebra: a process that forks must have no other.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    environment[cache.VARIABLE] = "off"  # what is kept on disk counts as tried out
    try:
        process = subprocess.Popen(
            own_python("from codespec.grammar.sandbox_child import main; main()"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
    except OSError as error:
        raise GrammarError(name, f"no process to check it in can be started ({error.strerror})", "try again") from None
    assert process.stdout is not None
    if process.stdout.readline().strip() != b"ready":
        process.kill()
        process.communicate()
        raise GrammarError(
            name, "the process that checks grammars does not start", "see: python -m codespec.grammar.sandbox_child"
        )
    return process


def ended(code: int | None) -> str:
    """How a process ended, by its exit code."""
    if code is not None and code < 0:
        try:
            return signal.Signals(-code).name
        except ValueError:
            return f"signal {-code}"
    return f"exit status {code}"
