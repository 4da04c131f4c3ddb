"""A short run of ``python -m tests.http.soak``."""

import asyncio

from tests.http.child_server import ChildServer
from tests.http.soak import LIMITS, soak


def test_many_clients_well_and_badly_behaved(chat_model):
    with ChildServer(chat_model, LIMITS) as server:
        report = asyncio.run(soak(server, 10, 10, 1, lambda line: None))
    assert report.problems() == []
    assert report.outcomes["whole"]["200"]
