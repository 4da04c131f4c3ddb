"""Inline completions from a local code model, drafted per language and constrained to a grammar when asked.

The public interface, loaded on first use::

    from codespec import Grammar, Request, load_completer
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from codespec.completion.completer import Completer
    from codespec.completion.load import load_completer
    from codespec.completion.request import Completion, Request
    from codespec.config import Config
    from codespec.engine.local import LocalEngine
    from codespec.errors import CodespecError
    from codespec.grammar import Grammar, GrammarError
    from codespec.llama.model import Model
    from codespec.protocols import Limits, Sampling
    from codespec.speculative.generate import Generator

_HOMES = {
    "CodespecError": "codespec.errors",
    "Completer": "codespec.completion.completer",
    "Completion": "codespec.completion.request",
    "Config": "codespec.config",
    "Generator": "codespec.speculative.generate",
    "Grammar": "codespec.grammar",
    "GrammarError": "codespec.grammar",
    "Limits": "codespec.protocols",
    "LocalEngine": "codespec.engine.local",
    "Model": "codespec.llama.model",
    "Request": "codespec.completion.request",
    "Sampling": "codespec.protocols",
    "load_completer": "codespec.completion.load",
}

__all__ = [
    "CodespecError",
    "Completer",
    "Completion",
    "Config",
    "Generator",
    "Grammar",
    "GrammarError",
    "Limits",
    "LocalEngine",
    "Model",
    "Request",
    "Sampling",
    "load_completer",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'codespec' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
