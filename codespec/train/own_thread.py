"""llama.cpp and torch in one process, each in threads of its own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


def in_own_thread(work: Callable[[], T]) -> T:
    """The result of ``work``, computed in a new thread; what it raises is raised.

    ggml and torch's oneDNN both set up the AMX units of a CPU once in each thread that they compute in, and expect that
    nobody else does so: in a thread that both use the next matrix product ends the process (SIGILL), or is wrong.
    """
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    # A daemon: an interrupted process does not wait for it.
    Thread(target=run, name="llama.cpp", daemon=True).start()
    return future.result()
