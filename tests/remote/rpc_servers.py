"""RPC servers on this machine: llama.cpp's rpc-server where it is there, else the library does what that does."""

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
from codespec.paths import own_python

WAIT_S = 30.0


def _program() -> str:
    own = Path(sys.executable).parent  # where `make rpc-server` puts it
    found = shutil.which("rpc-server", path=f"{own}{os.pathsep}{os.environ['PATH']}")
    return os.environ.get("CODESPEC_RPC_SERVER", found or "")


PROGRAM = _program()
SUPPORTED = rpc.supported()
needs_servers = pytest.mark.skipif(not SUPPORTED, reason="this llama.cpp was built without RPC (-DGGML_RPC=ON)")
LIBRARY = """
import ctypes, sys
from codespec.llama import rpc
pointer, text, size, api = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, rpc._api()
backend = api.ggml_backend_reg_by_name(b"RPC")
address = api.ggml_backend_reg_get_proc_address(backend, b"ggml_backend_rpc_start_server")
api.ggml_backend_dev_by_type.restype = pointer
cpu = (pointer * 1)(api.ggml_backend_dev_by_type(0))
start = ctypes.CFUNCTYPE(None, text, text, size, size, ctypes.POINTER(pointer))(address)
start(f"{sys.argv[2]}:{sys.argv[4]}".encode(), None, int(sys.argv[6]), 1, cpu)
"""


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
        command = [PROGRAM] if PROGRAM else own_python(f"exec({LIBRARY!r})")
        command += ["--host", self.host, "--port", str(self.port), "--threads", "1"]
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
