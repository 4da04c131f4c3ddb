"""Reads metadata and tensors of GGUF files without llama.cpp, which aborts the process on some bad files."""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from codespec.protocols import CodespecError

MAGIC = b"GGUF"
DIMENSIONS = 4

_STRING, _ARRAY = 8, 9
# By gguf_metadata_value_type.
_FORMATS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}


@dataclass(frozen=True)
class Tensor:
    """One tensor.

    Attributes:
        shape: as in the file, the fastest dimension first.
        kind: enum ggml_type.
        size: in bytes, padding included.
        start: of its data in the file, in bytes.
    """

    shape: tuple[int, ...]
    kind: int
    size: int
    start: int


@dataclass(frozen=True)
class Header:
    """All of a file but its data.

    Attributes:
        metadata: numbers, texts and lists of numbers by key; lists of texts are left out.
        tensors: by name.
    """

    metadata: dict[str, Any]
    tensors: dict[str, Tensor]

    def number(self, key: str, missing: int = 0) -> int:
        """A whole number of the architecture's own, such as ``block_count``; the largest where layers differ."""
        value = self.metadata.get(f"{self.metadata.get('general.architecture', '')}.{key}", missing)
        value = max(value, default=missing) if isinstance(value, tuple) else value
        return value if isinstance(value, int) else missing

    @property
    def most_kv_values(self) -> int:
        """Keys and values that the cache holds for one token in a layer, the one with most."""
        return self.number("attention.head_count_kv", self.number("attention.head_count")) * self._kv_head

    @property
    def kv_values(self) -> int:
        """Keys and values that the cache holds for one token in all layers; recurrent ones have none."""
        each = self.metadata.get(f"{self.metadata.get('general.architecture', '')}.attention.head_count_kv")
        if isinstance(each, tuple):
            return sum(each) * self._kv_head
        return self.number("block_count") // max(1, self.number("full_attention_interval")) * self.most_kv_values

    @property
    def _kv_head(self) -> int:
        width = self.number("embedding_length") // max(1, self.number("attention.head_count"))
        return self.number("attention.key_length", width) + self.number("attention.value_length", width)


def read_header(path: Path) -> Header:
    """The metadata and tensors of a file.

    Raises:
        CodespecError: it cannot be read, or is no GGUF file.
    """
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _Reader(data).header()
    except FileNotFoundError:
        raise CodespecError(f"{path}: no such file") from None
    except OSError as error:
        raise CodespecError(f"{path}: cannot be read ({error.strerror})") from error
    except (ValueError, struct.error, OverflowError) as error:  # an empty file cannot be mapped
        raise CodespecError(f"{path}: not a GGUF file, or damaged ({error})") from error


def file_parts(path: Path) -> list[Path]:
    """The files of a model, of which ``path`` is the first or only one; the others need not exist."""
    stem, mark, count = path.stem.rpartition("-of-")
    if not mark or not stem.endswith("-00001") or not count.isdigit():
        return [path]
    return [path.with_name(f"{stem[:-5]}{number + 1:05}-of-{count}{path.suffix}") for number in range(int(count))]


class _Reader:
    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        self._place = 0

    def header(self) -> Header:
        if self._data[:4] != MAGIC:
            raise ValueError(f"it begins with {bytes(self._data[:4])!r} instead of {MAGIC!r}")
        self._place = 4
        self._next("<I")  # version
        tensors, entries = self._next("<Q"), self._next("<Q")
        metadata: dict[str, Any] = {}
        for _ in range(entries):
            key = self._text()
            value = self._value(self._next("<I"))
            if value is not None:
                metadata[key] = value
        alignment = metadata.get("general.alignment")
        if not isinstance(alignment, int) or alignment <= 0:
            alignment = 32
        return Header(metadata, self._tensors(tensors, alignment))

    def _tensors(self, count: int, alignment: int) -> dict[str, Tensor]:
        found = []
        for _ in range(count):
            name = self._text()
            dimensions = self._next("<I")
            if dimensions > DIMENSIONS:
                raise ValueError(f"{name} has {dimensions} dimensions")
            shape = tuple(self._next("<Q") for _ in range(dimensions))
            kind = self._next("<I")
            found.append((self._next("<Q"), name, shape, kind))
        found.sort()
        base = -(-self._place // alignment) * alignment
        end = len(self._data) - base
        sizes = [after - before for before, after in pairwise([*(each[0] for each in found), end])]
        if any(size < 0 for size in sizes):
            raise ValueError("it ends within its tensors: perhaps it was not fetched whole")
        return {
            name: Tensor(shape, kind, size, base + start)
            for (start, name, shape, kind), size in zip(found, sizes, strict=True)
        }

    def _value(self, kind: int) -> Any:
        """A metadata value; None for the kinds that are left out."""
        if kind == _STRING:
            return self._text()
        if kind != _ARRAY:
            return self._next(_format(kind))
        kind, count = self._next("<I"), self._next("<Q")
        if kind == _STRING:
            for _ in range(count):
                self._skip(self._next("<Q"))
            return None
        form = _format(kind)
        start = self._place
        self._skip(count * struct.calcsize(form))
        return struct.unpack_from(f"<{count}{form[1]}", self._data, start)

    def _text(self) -> str:
        size = self._next("<Q")
        start = self._place
        self._skip(size)
        return self._data[start : self._place].decode("utf-8", "replace")

    def _next(self, form: str) -> Any:
        (value,) = struct.unpack_from(form, self._data, self._place)
        self._place += struct.calcsize(form)
        return value

    def _skip(self, size: int) -> None:
        self._place += size
        if self._place > len(self._data):
            raise ValueError("it ends too early")


def _format(kind: int) -> str:
    if kind not in _FORMATS:
        raise ValueError(f"unknown type {kind}")
    return _FORMATS[kind]
