"""Vocabularies of real models, without weights, from the source distribution of llama-cpp-python."""

import os
from pathlib import Path

import pytest

NAMES = ("qwen2", "starcoder", "deepseek-coder", "llama-bpe", "gpt-2", "gemma-4")
VOCABULARIES = Path(
    os.environ.get("CODESPEC_VOCABULARIES") or Path(__file__).parents[1] / ".venv" / "llama-tools" / "vocabularies"
)
"""``make llama-server`` keeps them there."""


def vocabulary_files():
    """``embedded``, ``smollm2``, and files; the tests with these need ``make llama-server``."""
    files = [VOCABULARIES / f"ggml-vocab-{name}.gguf" for name in NAMES]
    return ["embedded", "smollm2", *(pytest.param(path, id=path.stem, marks=pytest.mark.tools) for path in files)]


def skip_without(path):
    """Skip the test where one of these files is missing."""
    if isinstance(path, Path) and not path.exists():
        pytest.skip(f"no {path.name}: `make llama-server` keeps those of llama-cpp-python's source distribution")
