"""``python hanging_process.py load|generate``: a model process in which that takes long, whoever has given it up.

Prints ``ended`` where the process ended because nobody was there.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from typing import Any

from codespec.completion.load import load_engine
from codespec.completion.request import Request
from codespec.config import Config
from codespec.daemon.address import endpoint
from codespec.daemon.models import Models
from codespec.daemon.process import ModelProcess
from codespec.daemon.start import Unreachable, reach
from codespec.daemon.wire import Channel
from codespec.engine.engine import Engine
from codespec.errors import CodespecError

TAKES_S, STUCK_S = 4.0, 0.1

hangs = sys.argv[1]
asked, hung = threading.Event(), threading.Event()


def load(config: Config, progress: Any) -> Engine:
    if not asked.is_set():
        raise CodespecError("nothing is loaded ahead here")
    if hangs == "load":
        time.sleep(TAKES_S)
    engine = load_engine(config, progress)
    if hangs == "generate":
        engine.generate = hang  # type: ignore[method-assign]
    return engine


def hang(*arguments: Any, **more: Any) -> Any:
    hung.set()
    time.sleep(TAKES_S)
    return iter(())


def connected() -> Channel:
    while True:
        try:
            return reach(start=False)
        except Unreachable:
            time.sleep(0.02)


def window() -> None:
    """Asks, and is gone once that has begun."""
    channel = connected()
    asked.set()
    channel.send({"op": "open", "id": 1, "config": Config()})
    awaited = 1
    if hangs == "generate":
        while "result" not in channel.receive():
            pass
        request = Request("x = ", 4, "python", "/work/a.py")
        channel.send({"op": "complete", "id": 2, "document": "a", "request": request, "ahead": False})
        awaited = 2
    while channel.receive() != {"id": awaited, "begun": True}:
        pass
    if hangs == "generate":
        hung.wait()  # what is judged before that stops when nobody wants it any more
    channel.close()


logging.basicConfig()
threading.Thread(target=window, daemon=True).start()
ModelProcess(endpoint(), idle_s=TAKES_S, first_s=60, stuck_s=STUCK_S, models=Models(load)).run()
print("ended")
