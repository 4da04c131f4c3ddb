"""The order of a model's fill-in-the-middle prompts, as its file has it, and a copy of the file with the other one."""

from __future__ import annotations

import mmap
import shutil
import struct
from pathlib import Path

from codespec.protocols import CodespecError

_KEY = b"codespec.fim.order"
_STRING = 8  # GGUF's type of a value that is text
_LOOKED_AT = 64 << 20  # bytes in which the metadata must be


def order_of(path: Path) -> str:
    """``spm`` or ``psm``, which is what holds without an entry.

    Raises:
        CodespecError: the file cannot be read.
    """
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            at = _value(data)
            return data[at : at + 3].decode() if at >= 0 else "psm"
    except (OSError, ValueError) as error:  # an empty file cannot be mapped
        raise CodespecError(f"{path}: cannot be read ({error})") from None


def with_order(path: Path, order: str, folder: Path) -> Path:
    """A copy of the model in ``folder`` that asks for another order.

    Raises:
        CodespecError: the file has no entry for the order.
    """
    copy = folder / f"{path.stem}-{order}.gguf"
    shutil.copyfile(path, copy)
    with copy.open("r+b") as file, mmap.mmap(file.fileno(), 0) as data:
        at = _value(data)
        if at < 0:
            raise CodespecError(f"{path}: no entry for the order of fill-in-the-middle prompts that could be changed")
        data[at : at + 3] = order.encode()
    return copy


def _value(data: mmap.mmap) -> int:
    """Where the value stands, -1 where there is none of three letters."""
    at = data.find(_KEY, 0, _LOOKED_AT)
    if at < 0:
        return -1
    at += len(_KEY)
    start = at + struct.calcsize("<IQ")
    return start if struct.unpack("<IQ", data[at:start]) == (_STRING, 3) else -1
