"""A server in this process, for tests; beside it lies `conftest.py`."""

import contextlib
import subprocess
import sys
import threading
import time
from functools import partial

from codespec import Config, Sampling
from codespec.completion.load import load_engine
from codespec.config_sections import TargetConfig
from codespec.daemon.own_models import OwnModels
from codespec.http.apis.common_fields import Defaults
from codespec.http.backend import Backend
from codespec.http.limits import HttpLimits
from codespec.http.security import Access
from codespec.http.server import HttpServer
from codespec.models.registry import EMBEDDED_TARGET

NAMES = ("target", "codespec")
TEMPLATE = (
    "{% for m in messages %}{% if m.role == 'tool' %}{{ raise_exception('no tools') }}{% endif %}"
    "# {{ m.role }}: {{ m.content }}\n{% endfor %}{% if add_generation_prompt %}# answer:\n{% endif %}"
)


@contextlib.contextmanager
def serving(target="", access=None, limits=None, config=None, load=None, wait=True, exact=False, own=None):
    """A running server, on any free port of this machine; ``load`` replaces what loads the engine, and ``own`` the
    models of this process, which an editor may share."""
    config = config or Config(target=TargetConfig(path=str(target)), time_budget_ms=0)
    defaults = Defaults(Sampling(), 128, NAMES, config.draft, limits or HttpLimits())
    own = own or OwnModels(load or partial(load_engine, exact=exact))
    models, decoding = own.get()
    backend = Backend(models, decoding, config, lambda problem: None)
    server = HttpServer(("127.0.0.1", 0), access or Access("127.0.0.1"), defaults, backend)
    thread = threading.Thread(target=server.run)
    thread.start()
    backend.open()
    until(lambda: server.started and (not wait or backend.state != "loading"))
    try:
        yield server
    finally:
        server.stop()
        thread.join(10)
        backend.close()
        own.close(10)


def until(true, seconds=120):
    """Wait until something holds; where this process or its machine was stopped meanwhile, it is asked once more."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end or true(), "it never came true"
        time.sleep(0.01)


def with_chat_template(folder):
    """A copy of the embedded model in ``folder`` that has a chat template."""
    path = folder / "talkative.gguf"
    command = [sys.executable, "-m", "gguf.scripts.gguf_new_metadata", "--chat-template", TEMPLATE]
    subprocess.run([*command, EMBEDDED_TARGET, path], check=True, capture_output=True)
    return path
