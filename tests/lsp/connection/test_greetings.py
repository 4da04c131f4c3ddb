"""Strangers who connect and say nothing keep nobody out, and do not use up what the process may open."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import sys
import time
from pathlib import Path

import pytest

from ..helpers import STUB, Raw, raw, wait_for_stderr

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has so many loopback addresses, and /proc")

STRANGERS, MOST = 400, 64


def open_files(process: int) -> int:
    return sum(1 for _ in Path(f"/proc/{process}/fd").iterdir())


def crowd(port: int, stack: contextlib.ExitStack) -> None:
    """Connect from several addresses, and say the beginning of something."""
    for number in range(STRANGERS):
        source = (f"127.0.0.{2 + number % 7}", 0)
        with contextlib.suppress(OSError):
            stranger = stack.enter_context(socket.create_connection(("127.0.0.1", port), source_address=source))
            stranger.sendall(b"GET / HTTP/1.1\r\n" if number % 2 else b"Content-Length: 7\r\n")


@pytest.mark.parametrize("over", ["--tcp", "--ws"])
def test_strangers(over, tmp_path: Path):
    if over == "--ws":
        client = pytest.importorskip("websockets.sync.client")
    with (
        raw(tmp_path, [*STUB, over], env={"CODESPEC_TOKEN": "open sesame"}) as process,
        contextlib.ExitStack() as stack,
    ):
        wait_for_stderr(tmp_path / "stderr", "listening on 127.0.0.1:")
        port = int(re.search(r"listening on 127.0.0.1:(\d+)", (tmp_path / "stderr").read_text())[1])
        before = open_files(process.process.pid)
        crowd(port, stack)
        time.sleep(1)
        assert open_files(process.process.pid) <= before + MOST + 2
        if over == "--ws":
            with client.connect(f"ws://127.0.0.1:{port}/?token=open%20sesame") as connection:
                params = {"processId": None, "rootUri": None, "capabilities": {}}
                connection.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}))
                assert json.loads(connection.recv(timeout=5))["result"]["capabilities"]
            return
        with socket.create_connection(("127.0.0.1", port)) as connection, connection.makefile("rwb") as stream:
            server = Raw(process.process, stream, stream)
            server.send_bytes(b"Authorization: Bearer open sesame\r\n")
            server.handshake()
            server.open("abc\n")
            server.complete(1, 0, 3)
            assert server.answer(1)["result"]["items"]
