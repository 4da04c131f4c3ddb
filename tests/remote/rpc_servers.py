"""rpc-servers on this machine, where there are a program and a library for them."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from codespec.llama import rpc

WAIT_S = 30.0


def _program() -> str | None:
    own = Path(sys.executable).parent  # where `make rpc-server` puts it
    return os.environ.get("CODESPEC_RPC_SERVER") or shutil.which("rpc-server", path=f"{own}{os.pathsep}{os.environ['PATH']}")


PROGRAM = _program()
SUPPORTED = rpc.supported()
needs_servers = pytest.mark.skipif(
    not (SUPPORTED and PROGRAM),
    reason="no rpc-server (`make rpc-server`, or $CODESPEC_RPC_SERVER)" if SUPPORTED else "llama.cpp was built without RPC",
)


class Server:
    """An rpc-server at an address of its own, which may be ended and started again."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        self.host = host
        with socket.socket() as free:
            free.bind((host, 0))
            self.port = free.getsockname()[1]
        self.start()

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    def start(self) -> None:
        assert PROGRAM
        command = [PROGRAM, "--host", self.host, "--port", str(self.port), "--threads", "1"]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + WAIT_S
        while True:
            with contextlib.suppress(OSError), socket.create_connection((self.host, self.port), 1):
                return
            assert self._process.poll() is None, "it has ended"
            assert time.monotonic() < end, "it does not listen"
            time.sleep(0.02)

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


@contextlib.contextmanager
def servers(count: int) -> Iterator[list[Server]]:
    """So many of them."""
    with contextlib.ExitStack() as stack:
        found = []
        for _ in range(count):
            found.append(Server())
            stack.callback(found[-1].end)
        yield found
