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
import contextlib
import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from random import Random
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from codespec.grammar import cache
from codespec.grammar.errors import GrammarError, one_line
from codespec.paths import own_python
from codespec.protocols import CodespecError

if TYPE_CHECKING:
    from codespec.protocols import GrammarState

SECONDS = 1.5
"""Processor time for compiling a grammar and the first steps with it."""
PATIENCE = 10.0
"""Seconds until a helper that has not answered is ended, however busy the machine."""
MEMORY = 500 * 1024 * 1024
"""Bytes that a grammar may take, the engine itself not counted."""
_RESERVED = (2 * 256 + 128) * 1024 * 1024  # address space, not memory: stacks that compiling runs on, and a heap
_APPROVED = "approved"
_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_IMPORT = re.compile(r"%import\s+\.")
_MOST_REFUSED = 256
_IDLE = 30.0  # seconds after which a helper that nobody needs is ended

Verdict = dict[str, Any]
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
    if key in _refused:
        raise refusal(name, {**_refused[key], "name": name})
    verdict = shared.examine({"kind": kind, "text": text, "name": name, "options": options})
    if verdict["kind"] != "ok":
        if remembered and verdict["kind"] != "overdue":
            _refuse(key, verdict)
        raise refusal(name, verdict)
    keep(verdict)
    if remembered:
        _approved.add(key)
        cache.store(key, _APPROVED)


def _refuse(key: str, verdict: Verdict) -> None:
    """Remember a refusal while this process lives: who asks again need not wait for it again."""
    if len(_refused) >= _MOST_REFUSED:
        _refused.clear()
    _refused[key] = verdict


def keep(verdict: Verdict) -> None:
    """Put what the helper compiled in the cache, so that it is not compiled again."""
    for key, text in verdict.get("compiled", {}).items():
        cache.store(key, text)


def refusal(name: str, verdict: Verdict) -> GrammarError:
    """The error that tells a user what the helper found."""
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

    def examine(self, request: dict[str, Any]) -> Verdict:
        """What the helper says of one grammar.

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

    def _ask(self, request: dict[str, Any]) -> Verdict:
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
            verdict: Verdict = json.loads(answer)
            return verdict
        self._end()
        return {"kind": "overdue"} if overdue.is_set() else {"kind": "crash", "cause": _ended(process.returncode)}

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()


_approved: set[str] = set()
_refused: dict[str, Verdict] = {}
shared = Sandbox()
"""The helper of this process."""
atexit.register(shared.close)


def _start(name: str) -> subprocess.Popen[bytes]:
    # One thread of linear algebra: a process that forks must have no other.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    environment[cache.VARIABLE] = "off"  # what is kept on disk counts as tried out
    try:
        process = subprocess.Popen(
            own_python(f"from {__name__} import main; main()"),
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
            name, "the process that checks grammars does not start", "see: python -m codespec.grammar.sandbox"
        )
    return process


def _ended(code: int | None) -> str:
    if code is not None and code < 0:
        try:
            return signal.Signals(-code).name
        except ValueError:
            return f"signal {-code}"
    return f"exit status {code}"


# --- in the helper --------------------------------------------------------------------------------------


def main() -> None:
    """Answer requests, one line of JSON each, until standard input ends."""
    examine = _choose_way()
    print("ready", flush=True)
    for line in sys.stdin.buffer:
        print(json.dumps(examine(json.loads(line))), flush=True)


def _choose_way() -> Callable[[dict[str, Any]], Verdict]:
    """A process for each grammar, where one that is known to be fine comes through that way."""
    import codespec.grammar.grammar  # noqa: F401 - so that no copy has to import it

    if not hasattr(os, "fork"):
        return examine_here
    trial = {"kind": "gbnf", "text": 'root ::= "a" [b-z]*', "name": "trial", "options": {}}
    return examine_in_copy if examine_in_copy(trial)["kind"] == "ok" else examine_here


def examine_in_copy(request: dict[str, Any]) -> Verdict:
    """The verdict of a fork of this process, which may come to any end."""
    with tempfile.TemporaryFile() as answer, tempfile.TemporaryFile() as complaints:
        child = os.fork()
        if child == 0:
            _be_copy(request, answer, complaints)
        _, status, usage = os.wait4(child, 0)
        answer.seek(0)
        complaints.seek(0)
        text, errors = answer.read(), complaints.read(10_000).decode("utf-8", "replace")
    cost = {
        "seconds": usage.ru_utime + usage.ru_stime,
        "memory": usage.ru_maxrss >> (20 if sys.platform == "darwin" else 10),
    }
    return {**_verdict(os.waitstatus_to_exitcode(status), text, errors), **cost}


def _verdict(code: int, answer: bytes, errors: str) -> Verdict:
    if code == 0:
        verdict: Verdict = json.loads(answer)
        return verdict
    if code in (-signal.SIGPROF, -signal.SIGXCPU):
        return {"kind": "slow"}
    if code == -signal.SIGALRM:
        return {"kind": "overdue"}
    if "memory allocation of" in errors or "MemoryError" in errors:
        return {"kind": "memory"}
    return {"kind": "crash", "cause": _ended(code)}


def _be_copy(request: dict[str, Any], answer: IO[bytes], complaints: IO[bytes]) -> None:
    code = 1
    try:
        os.dup2(complaints.fileno(), 2)
        # The helper's answers have no end as long as this process can write to the same pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        _limit()
        answer.write(json.dumps(examine_here(request)).encode())
        answer.flush()
        code = 0
    finally:
        os._exit(code)  # never back into the helper's loop


def _limit() -> None:
    """Bound this process's memory and processor time."""
    if sys.platform == "win32":
        return
    import resource

    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    # Who waits without computing ends too, also where the helper has been ended meanwhile.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE)
    _die_with_parent()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    room = _address_space() + _RESERVED + MEMORY
    _, ceiling = resource.getrlimit(resource.RLIMIT_AS)
    if ceiling != resource.RLIM_INFINITY:
        room = min(room, ceiling)
    resource.setrlimit(resource.RLIMIT_AS, (room, ceiling))


def _die_with_parent() -> None:
    """On Linux; elsewhere the limits end an orphan."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _address_space() -> int:
    """Bytes of address space in use, about."""
    try:
        with open("/proc/self/statm") as file:  # noqa: PTH123 - called in a process that should allocate little
            return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 1 << 30


def examine_here(request: dict[str, Any]) -> Verdict:
    """The verdict on one grammar, found in this process."""
    compiled = cache.collected = {}
    try:
        _try_out(request["kind"], request["text"], request["name"], request["options"])
    except AssertionError as error:
        return {"kind": "contradiction", "cause": str(error)}
    except MemoryError:
        return {"kind": "memory"}
    except GrammarError as error:
        where = {"name": error.name, "line": error.line, "column": error.column}
        return {"kind": "error", "cause": error.cause, "remedy": error.remedy, **where}
    except RecursionError:
        return {"kind": "crash", "cause": "it is nested too deeply"}
    except CodespecError as error:
        cause = str(error).removeprefix(f"{request['name']}: ")
        return {"kind": "error", "name": request["name"], "cause": cause, "remedy": "", "line": 0, "column": 0}
    except BaseException as error:  # a panic of the engine is no Exception
        return {"kind": "crash", "cause": one_line(f"{type(error).__name__}: {error}", 200)}
    return {"kind": "ok", "compiled": compiled}


def _try_out(kind: str, text: str, name: str, options: dict[str, Any]) -> None:
    from codespec.grammar.grammar import Grammar
    from codespec.grammar.lower.lower import lower
    from codespec.grammar.tokenizer import byte_tokenizer

    if options.get("levels") is not None:
        options = {**options, "levels": tuple(options["levels"])}
    grammar, steps = Grammar.from_source(kind, text, name, **options), 48
    if grammar.needs_vocabulary:
        # The model is not known here; every token element stands for one token, and the first mask must do.
        assert grammar.rules is not None
        grammar, steps = Grammar(name, lower(grammar.rules, lambda _: [(65, 65)]), grammar.rules), 1
    walk(grammar.state(byte_tokenizer()), steps)


def walk(state: GrammarState, steps: int, seconds: float = 0.5) -> None:
    """Take up to ``steps`` tokens that the grammar allows, with every operation a generation uses.

    Raises:
        CodespecError: the engine gives up at the very start. Later on it is the text's fault: some grammars have
            texts that can be read in too many ways, and others that are fine.
        AssertionError: the engine contradicts itself.
    """
    random = Random(1)
    began = time.process_time()
    bits = np.zeros((257 + 31) // 32, np.uint32)
    for step in range(steps):
        try:
            state.mask_into(bits)
            allowed = np.flatnonzero(np.unpackbits(bits.view(np.uint8), bitorder="little")).tolist()
            if not allowed or time.process_time() - began > seconds:
                return
            state.forced()
            token = random.choice(allowed)
            assert state.allows(token), f"token {token} is in the mask and not allowed"
            assert state.accept([token]) == 1, f"token {token} is in the mask and not accepted"
            if step % 8 == 7:
                state.copy().rollback(step + 1)
                state.rollback(1)
                assert state.accept([token]) == 1, f"token {token} is not accepted again"
        except CodespecError:
            if step == 0:
                raise
            return


if __name__ == "__main__":
    main()
