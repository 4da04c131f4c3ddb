"""A short run of ``python -m tests.http.fuzz``."""

import asyncio

from tests.http.child_server import ChildServer
from tests.http.fuzz import LIMITS, Fuzz


def test_requests_as_nobody_should_send_them(chat_model):
    with ChildServer(chat_model, LIMITS) as server:
        report = asyncio.run(Fuzz(server).run(range(1_000_000, 1_000_300)))
    assert report.failures == []
    assert report.count == 300
