"""Servers for other clients than windows, in the model process: what starts them is above this package."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

from codespec.config import Config
from codespec.daemon.models import Models
from codespec.worker.decode_thread import DecodeThread


class ServerBeside(Protocol):
    """A server that shares the models with the windows."""

    @property
    def url(self) -> str:
        """The address that clients ask, such as ``http://127.0.0.1:8080``."""
        ...

    def stop(self) -> None:
        """End soon; from any thread."""
        ...


Beside: TypeAlias = Callable[[Config, Mapping[str, Any], DecodeThread, Models, Callable[[str], None]], ServerBeside]
"""Starts one: with these settings, options as plain data, and what is told why the model could not be loaded."""
