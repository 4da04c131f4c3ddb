"""The devices of other machines: servers of llama.cpp's RPC backend, which layers of a model lie and are computed on.

llama.cpp ends the process where a server is missing, is no RPC server or one of another version, and waits for ever
where a server has another client, since it serves one at a time. So servers are tried first: whether they are free, and
then in a child process what llama.cpp makes of them.
"""

from __future__ import annotations

import ctypes
import socket
import subprocess
import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from codespec import hosts
from codespec.llama.devices import Gpu, gpu_pointers
from codespec.llama.runtime import ggml, library
from codespec.paths import own_python
from codespec.protocols import CodespecError

CONNECT_SECONDS = 3.0
ANSWER_SECONDS = 5.0
TRIAL_SECONDS = 30.0
"""For a child to start, load the library and ask the servers for their devices; half a second where all is well."""

UNSUPPORTED = (
    "`target.rpc` needs a llama.cpp with its RPC backend, and this build has none. To rebuild: "
    "CMAKE_ARGS=\"-DGGML_RPC=ON -DCMAKE_CXX_FLAGS='-fno-tree-dse -fno-dse'\" "
    "pip install --force-reinstall --no-cache-dir --no-deps --no-binary llama-cpp-python llama-cpp-python==0.3.36"
)
UNSAFE = (
    "nothing that llama.cpp's RPC sends is encrypted and its servers ask for no key: whoever reaches one can read your "
    "code and take over that machine; use them only in a network that you trust, or through a tunnel such as ssh -L"
)
"""About servers that are not on this machine."""

_connected: Counter[str] = Counter()  # by address: how many ``Servers`` of this process hold its connection
_lock = threading.Lock()


class InUse(CodespecError):
    """A server has another client, or is no RPC server: it accepts connections and does not answer."""


class Servers:
    """The devices of RPC servers; each server stays connected to this process until they are closed.

    Args:
        addresses: each ``host:port``; none: no devices, nothing is loaded.

    Raises:
        InUse: a server has another client.
        CodespecError: the library has no RPC backend, or a server is missing or another one; names it and the remedy.

    Attributes:
        addresses: without those named twice.
        gpus: the devices, by the names of their servers; memory as of now.
    """

    def __init__(self, addresses: Sequence[str]) -> None:
        self.addresses = tuple(dict.fromkeys(addresses))
        self.gpus: tuple[Gpu, ...] = ()
        self._pointers: list[int] = []
        self._connections: list[int] = []
        if not self.addresses:
            return
        api = _api()
        with _lock:
            _check([each for each in self.addresses if not _connected[each]])
            for address in self.addresses:
                self._connect(api, address)
            _connected.update(self.addresses)

    def _connect(self, api: Any, address: str) -> None:
        pointers = _devices_of(api, address)
        self._pointers += pointers
        # A backend of the server's first device holds the connection, so that no other client gets in between.
        self._connections.append(api.ggml_backend_dev_init(pointers[0], None))
        self.gpus += tuple(_gpu(api, address, each) for each in pointers)

    def all_devices(self) -> Any:
        """For ``llama_model_params.devices``: these devices and the GPUs of this machine, with a null at the end. None
        without servers.

        Raises:
            CodespecError: more than llama.cpp takes.
        """
        if not self._pointers:
            return None
        pointers = [*self._pointers, *gpu_pointers()]
        most = library().llama_max_devices() - 2  # the CPU, and what speeds it up, are others
        if len(pointers) > most:
            raise CodespecError(
                f"`target.rpc` has {len(pointers)} devices, and llama.cpp takes {most}; name fewer servers"
            )
        return (ctypes.c_void_p * (len(pointers) + 1))(*pointers)

    @property
    def free(self) -> int:
        """Bytes that were free on them."""
        return sum(each.free for each in self.gpus)

    @property
    def warning(self) -> str:
        """What is wrong with sending code there; empty where all are on this machine."""
        far = [each for each in self.addresses if not is_loopback(each)]
        return f"{', '.join(far)} (`target.rpc`): {UNSAFE}" if far else ""

    def close(self) -> None:
        """Let the servers go, after the models on them; a second call does nothing."""
        connections, self._connections = self._connections, []
        if not connections:
            return
        with _lock:
            for each in connections:
                ggml().ggml_backend_free(each)
            _connected.subtract(self.addresses)

    def __enter__(self) -> Servers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def supported() -> bool:
    """Whether the library has the RPC backend."""
    with suppress(CodespecError):
        return _api() is not None
    return False


def is_loopback(address: str) -> bool:
    """Whether a server is on this machine, or at the end of a tunnel that begins here."""
    return hosts.is_loopback(address.rpartition(":")[0])


def ask(addresses: Sequence[str]) -> None:
    """Print the addresses of the servers that have devices, each once its server has answered; for the child process,
    which ends where one does not."""
    for address in addresses:
        if _devices_of(_api(), address):
            print(address, flush=True)


def _check(addresses: Sequence[str]) -> None:
    for address in addresses:
        _reach(address)
    if not addresses:
        return
    command = [*own_python("from codespec.llama.rpc import ask; ask(sys.argv[1:])"), *addresses]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        try:
            out, complaints = child.communicate(timeout=TRIAL_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            out, complaints = child.communicate()
    answered = out.decode().split()
    for address in addresses:
        if address not in answered:
            raise _refusal(address, complaints.decode("utf-8", "replace"))


def _reach(address: str) -> None:
    """As llama.cpp does it: by IPv4."""
    host, _, port = address.rpartition(":")
    start = f"start llama.cpp's rpc-server there (`make rpc-server` builds it), or take {address} out of `target.rpc`"
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as connection:
            connection.settimeout(CONNECT_SECONDS)
            connection.connect((host, int(port)))
            # A free server closes what begins with its end. Nothing is sent: an rpc-server dies of SIGPIPE where a
            # client has asked for something and is gone when the answer comes, as this one would be.
            connection.shutdown(socket.SHUT_WR)
            connection.settimeout(ANSWER_SECONDS)
            free = _closes(connection)
    except socket.gaierror as error:
        raise CodespecError(f"{address}: there is no machine of that name ({error.strerror}); {start}") from None
    except TimeoutError:
        raise CodespecError(f"{address}: nothing answers within {CONNECT_SECONDS:g} s; {start}") from None
    except OSError as error:
        raise CodespecError(f"{address}: no connection ({error.strerror or error}); {start}") from None
    if not free:
        raise InUse(
            f"{address}: accepts connections and does not answer. An rpc-server serves one client at a time: end the "
            "other one (another codespec, or a program of llama.cpp), start another server for it, or check the port"
        )


def _closes(connection: socket.socket) -> bool:
    with suppress(TimeoutError):
        return not connection.recv(1 << 16) or not connection.recv(1 << 16)  # another server may say something first
    return False


def _refusal(address: str, complaints: str) -> CodespecError:
    said = next((line for line in complaints.splitlines() if "RPC" in line), "it did not name a device")
    said = said.rpartition("ggml-rpc.cpp:")[2].partition(": ")[2] or said
    return CodespecError(
        f"{address}: is no RPC server that this llama.cpp understands ({said}); it has to be the rpc-server of the "
        "same version of llama.cpp, which `make rpc-server` builds"
    )


def _api() -> Any:
    """ggml's C API with the RPC backend.

    Raises:
        CodespecError: there is none.
    """
    library()
    api = ggml()
    try:
        _declare(api)
        found = api.ggml_backend_reg_by_name(b"RPC")
    except AttributeError:  # another version of the bindings, or none
        found = None
    if not found:
        raise CodespecError(UNSUPPORTED)
    return api


def _declare(api: Any) -> None:
    pointer, text, size = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t
    for name, result, arguments in (
        ("ggml_backend_reg_by_name", pointer, [text]),
        ("ggml_backend_reg_get_proc_address", pointer, [pointer, text]),
        ("ggml_backend_reg_dev_count", size, [pointer]),
        ("ggml_backend_reg_dev_get", pointer, [pointer, size]),
        ("ggml_backend_dev_memory", None, [pointer, ctypes.POINTER(size), ctypes.POINTER(size)]),
        ("ggml_backend_dev_init", pointer, [pointer, text]),
        ("ggml_backend_free", None, [pointer]),
    ):
        function = getattr(api, name)
        function.restype, function.argtypes = result, arguments


def _devices_of(api: Any, address: str) -> list[int]:
    """``ggml_backend_dev_t`` of each device of a server. They are not registered: other models would go there too."""
    backend = api.ggml_backend_reg_by_name(b"RPC")
    add = api.ggml_backend_reg_get_proc_address(backend, b"ggml_backend_rpc_add_server")
    registry = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_char_p)(add)(address.encode()) if add else None
    count = api.ggml_backend_reg_dev_count(registry) if registry else 0
    return [api.ggml_backend_reg_dev_get(registry, index) for index in range(count)]


def _gpu(api: Any, address: str, device: int) -> Gpu:
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    api.ggml_backend_dev_memory(device, ctypes.byref(free), ctypes.byref(total))
    return Gpu(address, free.value, total.value)
