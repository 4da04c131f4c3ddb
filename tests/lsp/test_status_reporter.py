"""What the client was told of the status is put right, whatever the status was like at that time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from codespec.lsp.status_reporter import StatusReporter

from .helpers import until

pytestmark = pytest.mark.asyncio


async def test_a_stale_status_is_asked_for_again():
    answers = [{"draft": "auto", "stale": True}, {"draft": "auto", "stale": True}, {"draft": "draft-python"}]
    told: list[Any] = []
    reporter = StatusReporter(lambda: answers.pop(0), lambda _, status: told.append(status["draft"]))
    reporter.touch()
    await until(lambda: not answers)
    await until(lambda: told == ["auto", "draft-python"])


async def test_after_a_status_that_failed_there_is_another():
    told: list[Any] = []
    failed = asyncio.Event()
    loop = asyncio.get_running_loop()

    def status() -> dict[str, Any]:
        if failed.is_set():
            return {"state": "ready"}
        loop.call_soon_threadsafe(failed.set)
        raise RuntimeError("a fault of the model process")

    reporter = StatusReporter(status, lambda _, status: told.append(status["state"]))
    reporter.touch()
    await failed.wait()
    await until(lambda: reporter.touch() or told == ["ready"])
