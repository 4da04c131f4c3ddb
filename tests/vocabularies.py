"""Vocabularies of real models, without weights, from the source distribution of llama-cpp-python."""

import os
from pathlib import Path

NAMES = ("qwen2", "starcoder", "deepseek-coder", "llama-bpe", "gpt-2", "gemma-4")
VOCABULARIES = Path(
    os.environ.get("CODESPEC_VOCABULARIES") or Path(__file__).parents[1] / ".venv" / "llama-tools" / "vocabularies"
)
"""``make llama-server`` keeps them there."""


def vocabulary_files():
    """``embedded``, ``smollm2``, and the files that are there."""
    files = [VOCABULARIES / f"ggml-vocab-{name}.gguf" for name in NAMES]
    return ["embedded", "smollm2", *(path for path in files if path.exists())]
