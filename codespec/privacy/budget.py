"""How long a text is searched for secrets: what is not done by then counts as private."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable
from typing import ParamSpec

P = ParamSpec("P")

BUDGET_S = 1.0
"""Processor time of this thread for one check. A megabyte of ordinary text takes 0.2 to 0.8 s."""


class _Current(threading.local):
    """The time at which the check of a thread ends; None outside of one."""

    ends: float | None = None


class _SpentError(Exception):
    """The time is over."""


_current = _Current()


def private_when_spent(check: Callable[P, bool]) -> Callable[P, bool]:
    """``check``, but True when its budget is spent. A check within another one shares that one's budget."""

    @functools.wraps(check)
    def checked(*args: P.args, **kwargs: P.kwargs) -> bool:
        if _current.ends is not None:
            return check(*args, **kwargs)
        _current.ends = time.thread_time() + BUDGET_S
        try:
            return check(*args, **kwargs)
        except _SpentError:
            return True
        finally:
            _current.ends = None

    return checked


def spend() -> None:
    """To be called before each step of a check; it does not return when the budget is spent."""
    if _current.ends is not None and time.thread_time() > _current.ends:
        raise _SpentError
