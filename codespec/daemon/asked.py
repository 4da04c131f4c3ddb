"""What a language server has asked the models for, until it is answered."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from codespec.daemon.link import Reply

T = TypeVar("T")


@dataclass(eq=False)
class Asked:
    """Something that was asked for, until it is answered.

    Attributes:
        document: what is asked for one document replaces what was asked before.
        ahead: nobody waits for it yet.
        key: equal for what asks for the same; None is like no other.
        future: the answer; None where it was stopped, replaced or given up.
        cancelled: whether nobody here wants the answer any more.
        reply: what was sent, where it was.
        blamed: how often the model process has ended while it worked on this.
    """

    op: str
    document: str
    fields: dict[str, Any]
    ahead: bool = False
    key: Any = None
    future: asyncio.Future[Any] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    cancelled: bool = False
    reply: Reply | None = None
    blamed: int = 0

    def __post_init__(self) -> None:
        self.future.add_done_callback(lambda future: future.cancelled() or future.exception())  # it may be nobody's

    @property
    def lesson(self) -> bool:
        """Whether it waits until nobody asks for anything."""
        return self.op in ("learn", "accepted", "forget")

    @property
    def succeeded(self) -> bool:
        """Whether the answer is there."""
        future = self.future
        done = future.done() and not future.cancelled() and future.exception() is None
        return done and future.result() is not None

    def resolve(self, result: Any) -> None:
        """Answer, unless it is answered."""
        if not self.future.done():
            self.future.set_result(result)

    def fail(self, error: BaseException) -> None:
        """Answer with an error, unless it is answered."""
        if not self.future.done():
            self.future.set_exception(error)


async def in_thread(work: Callable[[], T]) -> T:
    """What ``work`` returns, from a thread that nobody waits for at the end."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if not future.done():
            future.set_exception(error) if error is not None else future.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result, failure = None, None
        try:
            result = work()
        except BaseException as error:
            failure = error
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(partial(settle, result, failure))

    threading.Thread(target=run, name="opens", daemon=True).start()
    return await future
