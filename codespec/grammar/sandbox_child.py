"""The helper of ``sandbox``: compiles grammars and takes a few steps with each, in copies of itself that may crash."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from random import Random
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from codespec.grammar import cache
from codespec.grammar.errors import GrammarError, one_line
from codespec.grammar.grammar import Grammar
from codespec.grammar.lower.lower import lower
from codespec.grammar.sandbox import MEMORY, PATIENCE, SECONDS, TrialReport, ended
from codespec.grammar.tokenizer import byte_tokenizer
from codespec.protocols import CodespecError

if TYPE_CHECKING:
    from codespec.protocols import GrammarState

_RESERVED = (2 * 256 + 128) * 1024 * 1024  # address space, not memory: stacks that compiling runs on, and a heap
_PR_SET_PDEATHSIG = 1  # linux/prctl.h


Trial = Callable[[str, str, str, dict[str, Any]], None]
"""A trial of a grammar, given its kind, text, name and options."""


def try_out(kind: str, text: str, name: str, options: dict[str, Any]) -> None:
    """Compile one grammar and take some steps with it.

    Raises:
        GrammarError, CodespecError, AssertionError: what is wrong with it.
    """
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


def main() -> None:
    """Answer requests, one line of JSON each, until standard input ends."""
    examine = _choose_way()
    print("ready", flush=True)
    for line in sys.stdin.buffer:
        print(json.dumps(examine(json.loads(line))), flush=True)


def _choose_way() -> Callable[[dict[str, Any]], TrialReport]:
    """A process for each grammar, where one that is known to be fine comes through that way."""
    if not hasattr(os, "fork"):
        return examine_here
    trial = {"kind": "gbnf", "text": 'root ::= "a" [b-z]*', "name": "trial", "options": {}}
    return examine_in_copy if examine_in_copy(trial)["kind"] == "ok" else examine_here


def examine_in_copy(request: dict[str, Any], work: Trial = try_out) -> TrialReport:
    """The report of a fork of this process, which ``work`` may crash or hang."""
    with tempfile.TemporaryFile() as answer, tempfile.TemporaryFile() as complaints:
        child = os.fork()
        if child == 0:
            _be_copy(request, work, answer, complaints)
        _, status, usage = os.wait4(child, 0)
        answer.seek(0)
        complaints.seek(0)
        text, errors = answer.read(), complaints.read(10_000).decode("utf-8", "replace")
    cost = {
        "seconds": usage.ru_utime + usage.ru_stime,
        "memory": usage.ru_maxrss >> (20 if sys.platform == "darwin" else 10),
    }
    return {**_verdict(os.waitstatus_to_exitcode(status), text, errors), **cost}


def _verdict(code: int, answer: bytes, errors: str) -> TrialReport:
    if code == 0:
        verdict: TrialReport = json.loads(answer)
        return verdict
    if code in (-signal.SIGPROF, -signal.SIGXCPU):
        return {"kind": "slow"}
    if code == -signal.SIGALRM:
        return {"kind": "overdue"}
    if "memory allocation of" in errors or "MemoryError" in errors:
        return {"kind": "memory"}
    return {"kind": "crash", "cause": ended(code)}


def _be_copy(request: dict[str, Any], work: Trial, answer: IO[bytes], complaints: IO[bytes]) -> None:
    code = 1
    try:
        os.dup2(complaints.fileno(), 2)
        # The helper's answers have no end as long as this process can write to the same pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        _limit()
        answer.write(json.dumps(examine_here(request, work)).encode())
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


def examine_here(request: dict[str, Any], work: Trial = try_out) -> TrialReport:
    """The report on one grammar, tried in this process."""
    compiled = cache.collected = {}
    try:
        work(request["kind"], request["text"], request["name"], request["options"])
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


if __name__ == "__main__":
    main()
