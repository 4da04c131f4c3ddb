"""GGUFs without weights: 256 bytes, an end token and the markers of a model family."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import gguf

from tests.byte_vocabulary import _printable, smallest


def write(
    path: Path,
    markers: Sequence[str],
    name: str = "",
    beginning: bool = False,
    user_defined: Sequence[str] = (),
    metadata: Sequence[tuple[str, str]] = (),
) -> Path:
    """Write it to ``path``: token ``b`` is the byte ``b``, token 256 ends, the markers follow in their order.

    Args:
        name: of the model.
        beginning: whether texts begin with token 256.
        user_defined: of the markers, those whose names llama.cpp takes for them in any text.
    """
    writer = smallest(path, name)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    names = [_printable(byte) for byte in range(256)]
    kinds = [gguf.TokenType.USER_DEFINED if marker in user_defined else gguf.TokenType.CONTROL for marker in markers]
    writer.add_token_list([*names, "<end>", *markers])
    writer.add_token_types([gguf.TokenType.NORMAL] * 256 + [gguf.TokenType.CONTROL, *kinds])
    writer.add_token_merges([f"{names[97]} {names[98]}"])
    return _finish(writer, path, 256, beginning, metadata)


def write_spaced(path: Path, markers: Sequence[str], name: str = "") -> Path:
    """A SentencePiece vocabulary, whose tokenizer puts a space before a text; token 2 begins, 3 ends a text."""
    writer = smallest(path, name)
    writer.add_tokenizer_model("llama")
    letters = ["▁", *"abcdefghijklmnopqrstuvwxyz", "▁a"]
    kind = gguf.TokenType
    tokens = ["<unk>", "<pad>", "<s>", "</s>", *(f"<0x{b:02X}>" for b in range(256)), *letters, *markers]
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * 260 + [-float(i) for i in range(1, len(letters))] + [-0.5] + [0.0] * len(markers))
    writer.add_token_types(
        [
            kind.UNKNOWN,
            *[kind.CONTROL] * 3,
            *[kind.BYTE] * 256,
            *[kind.NORMAL] * len(letters),
            *[kind.CONTROL] * len(markers),
        ]
    )
    writer.add_unk_token_id(0)
    return _finish(writer, path, 3, True, (), beginning_token=2)


def _finish(
    writer: gguf.GGUFWriter,
    path: Path,
    end: int,
    beginning: bool,
    metadata: Sequence[tuple[str, str]],
    beginning_token: int | None = None,
) -> Path:
    writer.add_eos_token_id(end)
    writer.add_bos_token_id(end if beginning_token is None else beginning_token)
    writer.add_add_bos_token(beginning)
    for key, value in metadata:
        writer.add_string(key, value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
