"""How long one piece of work may take in all. Whatever reads documents asks as it goes on, whether its time is over.

A completion stops writing in time, but texts are judged between two tokens, and a document can be made so that one
judgement takes a minute. Nobody waits that long, and while it runs nobody else is served.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import NoReturn

from codespec.errors import Aborted

JUDGING_S = 2.0
"""More seconds than its time budget that a request may take, to judge what was written until then."""


class OutOfTime(Aborted):
    """The time of this thread's work is over."""


def _never() -> bool:
    return False


class _Own(threading.local):
    end: float = math.inf
    stopped: Callable[[], bool] = staticmethod(_never)
    depth = 0  # of blocks of ``within``
    given_up = False
    aside = 0.0  # seconds that do not count, of all since the thread began


_own = _Own()


def _now() -> float:
    return perf_counter() - _own.aside


@contextmanager
def within(seconds: float, stopped: Callable[[], bool] | None = None) -> Iterator[None]:
    """Have ``check`` end what this thread does in the block after so many seconds, or sooner where that was said.

    Args:
        stopped: whether nobody wants it any more; None: as it is around the block.
    """
    before = _own.end, _own.stopped
    _own.end, _own.stopped = min(_own.end, _now() + seconds), stopped or _own.stopped
    _own.depth += 1
    try:
        yield
    finally:
        _own.end, _own.stopped = before
        _own.depth -= 1
        _own.given_up = _own.given_up and _own.depth > 0


@contextmanager
def aside() -> Iterator[None]:
    """Have the time in the block not count: what is loaded there serves others, too."""
    began = perf_counter()
    try:
        yield
    finally:
        _own.aside += perf_counter() - began


def left() -> float:
    """Seconds that are left; infinite where nothing was said, negative where the time is over."""
    return -math.inf if _own.given_up else _own.end - _now()


def over() -> bool:
    """Whether ``check`` would end the work."""
    return left() < 0 or _own.stopped()


def check() -> None:
    """Nothing, as long as there is time (0.3 µs).

    Raises:
        OutOfTime: the time is over.
        Aborted: nobody wants it any more.
    """
    if _own.stopped():
        raise Aborted
    if left() < 0:
        raise OutOfTime


def give_up() -> NoReturn:
    """End what this thread does in the outermost block of ``within``: it would take too long.

    Raises:
        OutOfTime: always, and again wherever ``check`` is called in that block.
    """
    _own.given_up = _own.depth > 0
    raise OutOfTime
