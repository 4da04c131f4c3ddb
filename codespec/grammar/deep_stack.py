"""Room for an engine that recurses."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

STACK = 256 * 1024 * 1024
"""Bytes of address space (memory is taken only as far as it is used): some 60,000 rules deep."""
_lock = threading.Lock()


def with_deep_stack(work: Callable[[], T]) -> T:
    """``work()`` run on a large stack.

    llguidance compiles a rule where it is first mentioned, recursing: a chain of some thousand rules overflows
    an ordinary stack, which ends the process.
    """
    result: list[T] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            result.append(work())
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=run, name="grammar")
    with _lock:
        before = threading.stack_size(STACK)
        try:
            thread.start()
        finally:
            threading.stack_size(before)
    thread.join()
    if failure:
        raise failure[0]
    return result[0]
