"""Servers on real sockets, with the embedded model."""

import inspect

import httpx
import pytest

from tests.http.http_servers import serving, with_chat_template

# The time of all that name none: httpx gives 5 s, which a busy machine may take for an answer.
for part in ("connect", "read", "write", "pool"):
    setattr(inspect.signature(httpx.get).parameters["timeout"].default, part, 60.0)


@pytest.fixture(scope="session")
def server():
    """The embedded model, which has no chat template."""
    with serving() as running:
        yield running


@pytest.fixture(scope="session")
def chat_model(tmp_path_factory):
    """The embedded model with a chat template."""
    return with_chat_template(tmp_path_factory.mktemp("chat"))


@pytest.fixture(scope="session")
def chat_server(chat_model):
    with serving(target=chat_model) as running:
        yield running


@pytest.fixture
def client(server):
    with httpx.Client(base_url=server.url, timeout=60) as client:
        yield client


@pytest.fixture
def chat_client(chat_server):
    with httpx.Client(base_url=chat_server.url, timeout=60) as client:
        yield client
