"""vLLM, which tests start where it is installed (``make test-vllm``)."""

import contextlib
import os
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

from tests.present import present

VLLM = "CODESPEC_VLLM"
"""The environment variable: the folder that ``install_vllm.sh`` made, or the address of one that runs."""


@contextlib.contextmanager
def vllm_server(length=1024, workers=1):
    """Yields its address; takes most of a minute to start. One worker tells rows behind what was cached.

    Several workers have some of the layers each; this machine has one NUMA node, so that each is given its core here.
    """
    if workers == 1 and os.environ[VLLM].startswith("http://"):
        yield os.environ[VLLM]  # one that runs already
        return
    folder = Path(os.environ[VLLM])
    port = free_port()
    environment = dict(os.environ) | {
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "PATH": f"{folder / 'venv' / 'bin'}{os.pathsep}{os.environ['PATH']}",
    }
    environment.pop("PYTHONPATH", None)
    command = [
        *(str(folder / "venv" / "bin" / "python"), "-m", "vllm.entrypoints.openai.api_server"),
        *("--model", str(folder / "model"), "--served-model-name", "target", "--host", "127.0.0.1"),
        *("--port", str(port), "--dtype", "float32", "--enforce-eager", "--max-model-len", str(length)),
        *("--max-num-seqs", "32"),
    ]
    if workers == 1:
        # What the last block of the prefix cache lacks is read again; on CPUs a block has 128 tokens else.
        command += ["--enable-scale-out", "--enable-prompt-tokens-details", "--block-size", "32"]
    else:
        # Eager models are not warmed up on CPUs, and without that later stages of a pipeline lack their buffers.
        command.remove("--enforce-eager")
        command += ["--compilation-config", '{"mode": 2, "backend": "eager"}']
        command += ["--pipeline-parallel-size", str(workers), "--distributed-executor-backend", "mp"]
        cores = sorted(os.sched_getaffinity(0))
        environment["VLLM_CPU_OMP_THREADS_BIND"] = "|".join(str(cores[each % len(cores)]) for each in range(workers))
    with started(command, environment, f"http://127.0.0.1:{port}", "/health", 600) as url:
        yield url


@contextlib.contextmanager
def started(command, environment, url, path, seconds):
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    log = bytearray()
    reading = _reading(process, log)
    try:
        end = time.monotonic() + seconds
        while True:
            said = bytes(log[-3000:]).decode("utf-8", "replace")
            assert process.poll() is None, f"it ended with {process.returncode}: {said}"
            assert time.monotonic() < end, f"it does not answer: {said}"
            with contextlib.suppress(OSError):
                urllib.request.urlopen(url + path, timeout=2).read()
                break
            time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(20)
        reading.join(5)
        present(process.stdout).close()


def _reading(process, log):
    import threading

    def read():
        with contextlib.suppress(ValueError, OSError):
            for line in process.stdout:
                log.extend(line)
                del log[:-100_000]

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    return thread


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]
