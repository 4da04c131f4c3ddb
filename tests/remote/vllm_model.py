"""Writes the embedded target as vLLM reads models, by the export of ``codespec train``. Run with vLLM's own Python."""

import sys
from pathlib import Path

from codespec.models.registry import EMBEDDED_TARGET
from codespec.train import tokenizer
from codespec.train.gguf_file import load_gguf
from codespec.train.safetensors_folder import write_safetensors

if __name__ == "__main__":
    # What has been rounded once is not rounded again.
    write_safetensors(load_gguf(EMBEDDED_TARGET), tokenizer.of_gguf(EMBEDDED_TARGET), Path(sys.argv[1]), "f32")
