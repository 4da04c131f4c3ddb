"""A GGUF model and its vocabulary."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

from codespec.files import StrPath
from codespec.llama import probe
from codespec.llama.examine import examine
from codespec.llama.gguf import read_header
from codespec.llama.rpc import Servers
from codespec.llama.runtime import clear_errors, last_errors, library
from codespec.protocols import CodespecError

GGUF_MAGIC = b"GGUF"
FILE_ENDS = frozenset({b"<file_sep>", b"<|file_separator|>", b"<filename>", b"<|filename|>", "▁<EOT>".encode()})
"""Control tokens that begin another file, or another part of a prompt: a model that writes one has come to the end of
its text, whether or not the model file says so."""


class LlamaVocabulary:
    """The tokens of one model; implements ``protocols.Vocabulary``. Valid while its model is open."""

    def __init__(self, pointer: Any) -> None:
        self.pointer = pointer
        self._api = library()
        self.size: int = self._api.llama_vocab_n_tokens(pointer)
        self._pieces: dict[int, bytes] = {}

    @cached_property
    def end_tokens(self) -> frozenset[int]:
        """Every token that ends a generation."""
        return self.declared_ends | frozenset(t for t in self.control_tokens if self.name(t) in FILE_ENDS)

    @cached_property
    def declared_ends(self) -> frozenset[int]:
        """Tokens that llama.cpp ends a generation with."""
        return frozenset(t for t in range(self.size) if self._api.llama_vocab_is_eog(self.pointer, t))

    @cached_property
    def attributes(self) -> list[int]:
        """Of every token: bits of enum llama_token_attr."""
        return [self._api.llama_vocab_get_attr(self.pointer, token) for token in range(self.size)]

    @cached_property
    def texts(self) -> list[bytes]:
        """Of every token, the names of special ones included; what ``token_bytes`` says is known afterwards."""
        special = self._api.LLAMA_TOKEN_ATTR_CONTROL | self._api.LLAMA_TOKEN_ATTR_UNKNOWN
        buffer = ctypes.create_string_buffer(256)
        found = [self._piece(token, buffer, special=True) for token in range(self.size)]
        self._pieces = {
            token: b"" if attributes & special else text
            for token, (text, attributes) in enumerate(zip(found, self.attributes, strict=True))
        }
        return found

    @cached_property
    def used(self) -> int:
        """Its size without the padding at its end, which differs between models of one family."""
        unused = self._api.LLAMA_TOKEN_ATTR_UNUSED
        size = self.size
        while size and self._api.llama_vocab_get_attr(self.pointer, size - 1) & unused:
            size -= 1
        return size

    @cached_property
    def text_tokens(self) -> list[int]:
        """Tokens that the tokenizer has learnt, as the file says: nothing that was added, no padding.

        llama.cpp takes some of them for control tokens by their names, such as ``</s>`` in Qwen2's vocabulary, each
        version others: they are text all the same.
        """
        learnt = self._api.LLAMA_TOKEN_ATTR_NORMAL | self._api.LLAMA_TOKEN_ATTR_BYTE
        return [token for token, attributes in enumerate(self.attributes) if attributes & learnt]

    @cached_property
    def control_tokens(self) -> frozenset[int]:
        """Tokens that are no text: FIM markers, separators, end tokens."""
        control = self._api.LLAMA_TOKEN_ATTR_CONTROL
        return frozenset(token for token, attributes in enumerate(self.attributes) if attributes & control)

    def tokenize(self, text: str, special: bool = False) -> list[int]:
        """Token ids of ``text``: nothing is added, neither a token for its beginning nor a space before it.

        Args:
            special: whether the names of special tokens in ``text`` become those tokens.
        """
        if not self._spaced or not text:
            return self._tokenize(text, special)
        return self._tokenize("\n" + text, special)[len(self._tokenize("\n", False)) :]

    @cached_property
    def _spaced(self) -> bool:
        """Whether the tokenizer puts a space before every text, as those of Llama 2 and Mistral do."""
        return b"".join(map(self.token_bytes, self._tokenize("a", False))) == b" a"

    def _tokenize(self, text: str, special: bool) -> list[int]:
        if not self.pointer:
            raise CodespecError("the model is closed; load it again")
        data = text.encode("utf-8", "surrogatepass")
        size = len(data) + 8
        buffer = (self._api.llama_token * size)()
        count = self._api.llama_tokenize(self.pointer, data, len(data), buffer, size, False, special)
        if count < 0:
            raise CodespecError(f"the tokenizer refused a text of {len(data):,} bytes")
        return list(buffer[:count])

    def token_bytes(self, token: int) -> bytes:
        """The text of one token; empty for control tokens.

        Raises:
            IndexError: no such token.
        """
        piece = self._pieces.get(token)
        if piece is None:
            if not 0 <= token < self.size:
                raise IndexError(f"token {token} is not in a vocabulary of {self.size:,}")
            piece = self._pieces[token] = self._piece(token, ctypes.create_string_buffer(256))
        return piece

    def name(self, token: int) -> bytes:
        """The name of a token in the model file; control tokens have one too."""
        return self.names[token]

    @cached_property
    def names(self) -> list[bytes]:
        """``name`` of every token: a model that begins compares its vocabulary with others' several times."""
        name = self._api.llama_vocab_get_text
        return [name(self.pointer, token) or b"" for token in range(self.size)]

    def _piece(self, token: int, buffer: ctypes.Array[ctypes.c_char], special: bool = False) -> bytes:
        """``buffer`` is the caller's own: another thread runs while the library writes to it."""
        while True:
            count: int = self._api.llama_token_to_piece(self.pointer, token, buffer, len(buffer), 0, special)
            if count >= 0:
                return buffer.raw[:count]
            buffer = ctypes.create_string_buffer(-count)

    def fim_token(self, name: str) -> int | None:
        """A fill-in-the-middle token by llama.cpp's name for it (``pre suf mid pad rep sep``), None if it has none."""
        token: int = getattr(self._api, f"llama_vocab_fim_{name}")(self.pointer)
        return token if token >= 0 else None

    @property
    def beginning(self) -> int | None:
        """The token that every text begins with, None if the model was trained without."""
        if not self._api.llama_vocab_get_add_bos(self.pointer):
            return None
        token: int = self._api.llama_vocab_bos(self.pointer)
        return token if token >= 0 else None


class Model:
    """A loaded GGUF file.

    Args:
        gpu_layers: layers to put on a GPU; -1 is all that fit, 0 none.
        plain_buffers: never repack weights for faster kernels; ``exact`` decoding needs that.
        vocabulary_only: load no weights.
        heads: load the layers that predict further tokens, where it has some (``llama.heads``).
        servers: whose devices get those layers, before the GPUs of this machine; to be closed after the model.
        progress: called with 0..1 while loading; returning False stops it.

    Attributes:
        heads: how many of these layers are loaded.

    Raises:
        CodespecError: the file is missing, damaged, no GGUF, of an unknown architecture or too large; names the remedy.
    """

    def __init__(
        self,
        path: StrPath,
        *,
        gpu_layers: int = 0,
        plain_buffers: bool = False,
        vocabulary_only: bool = False,
        heads: bool = False,
        servers: Servers | None = None,
        progress: Callable[[float], bool] | None = None,
    ) -> None:
        self.path = Path(path)
        self.gpu_layers = gpu_layers
        self.servers = servers or Servers(())
        self.pointer: Any = None
        check_file(self.path)
        examine(self.path)
        api = self._api = library()
        parameters = api.llama_model_default_params()
        parameters.n_gpu_layers = gpu_layers
        parameters.vocab_only = vocabulary_only
        parameters.load_mtp = heads
        devices = self.servers.all_devices()
        parameters.devices = ctypes.cast(devices, ctypes.c_void_p)
        parameters.use_extra_bufts = not plain_buffers and probe.extra_buffers_work()
        if progress is not None:
            report = progress
            self._progress = api.llama_progress_callback(lambda value, _data: bool(report(value)))
            parameters.progress_callback = self._progress
        clear_errors()
        self.pointer = api.llama_model_load_from_file(os.fsencode(self.path), parameters)
        if not self.pointer:
            raise CodespecError(explain_load_failure(self.path, last_errors()))
        self.vocabulary = LlamaVocabulary(api.llama_model_get_vocab(self.pointer))
        self.heads = int(api.llama_model_n_layer_nextn(self.pointer)) if heads else 0

    @cached_property
    def trained_context(self) -> int:
        """Tokens of context that the model was trained with."""
        return int(self._api.llama_model_n_ctx_train(self.pointer))

    @cached_property
    def parameter_count(self) -> int:
        """Weights of the model, all tensors together."""
        return int(self._api.llama_model_n_params(self.pointer))

    @cached_property
    def size(self) -> int:
        """Bytes that the weights take in memory."""
        return int(self._api.llama_model_size(self.pointer))

    @cached_property
    def recurrent(self) -> bool:
        """Whether it has layers whose state goes forward only, beside attention or alone."""
        api, p = self._api, self.pointer
        return bool(api.llama_model_is_hybrid(p) or api.llama_model_is_recurrent(p))

    @cached_property
    def sliding_window(self) -> int:
        """Tokens that some of the layers look back at most; 0 where all look at all."""
        return int(self._api.llama_model_n_swa(self.pointer))

    @cached_property
    def kv_bytes_per_token(self) -> int:
        """Bytes of key and value cache that one token takes at 16 bits."""
        if self.recurrent:
            return 2 * read_header(self.path).kv_values
        api, p = self._api, self.pointer
        head_width = api.llama_model_n_embd(p) // max(1, api.llama_model_n_head(p))
        return int(4 * api.llama_model_n_layer(p) * api.llama_model_n_head_kv(p) * head_width)

    def metadata(self, key: str) -> str | None:
        """A metadata value as text, None if the file has no such key."""
        size = 256
        while True:
            buffer = ctypes.create_string_buffer(size)
            count = self._api.llama_model_meta_val_str(self.pointer, key.encode(), buffer, size)
            if count < 0:
                return None
            if count < size:
                return buffer.value.decode("utf-8", "replace")
            size = count + 1

    def close(self) -> None:
        """Free the weights. Close its contexts first; a second call does nothing."""
        if self.pointer:
            self._api.llama_model_free(self.pointer)
            self.pointer = self.vocabulary.pointer = None

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def check_file(path: Path) -> None:
    """Refuse what cannot be a model before the library sees it.

    Raises:
        CodespecError: with the reason and the remedy.
    """
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            raise CodespecError(f"{path}: is no file but a pipe or a device; name a .gguf file")
        with path.open("rb") as file:
            magic = file.read(4)
    except FileNotFoundError:
        raise CodespecError(
            f"{path}: no such model file; check `target`, `draft` and `edits.model` in your settings"
        ) from None
    except IsADirectoryError:
        raise CodespecError(f"{path}: is a folder; name the .gguf file in it") from None
    except OSError as error:
        raise CodespecError(f"{path}: cannot be read ({error.strerror}); check its permissions") from error
    if magic != GGUF_MAGIC:
        raise CodespecError(f"{path}: not a GGUF file; convert the model with llama.cpp's convert_hf_to_gguf.py")


def explain_load_failure(path: Path, errors: list[str]) -> str:
    """One line for a user from llama.cpp's complaints about a file."""
    text = " ".join(errors)
    if _is_adapter(path):
        return f"{path}: is a LoRA adapter, no model; name it as `target_lora` or `draft_lora` in your settings"
    if "unknown model architecture" in text:
        name = text.split("unknown model architecture:")[1].split("'")[1]
        return f"{path}: architecture {name!r} is unknown to this llama.cpp; upgrade llama-cpp-python"
    if "not within the file bounds" in text or "incomplete" in text or "failed to read" in text:
        return f"{path}: the file is damaged or incomplete; fetch it again"
    if "unable to allocate" in text or "failed to allocate" in text or "out of memory" in text:
        return f"{path}: not enough memory to load it; choose a smaller model or quantization, or fewer `gpu_layers`"
    detail = next((e for e in errors if "error" in e.lower()), errors[-1] if errors else "no reason given")
    return f"{path}: llama.cpp cannot load it ({detail.splitlines()[0][:200]}); try another GGUF of this model"


def _is_adapter(path: Path) -> bool:
    try:
        return read_header(path).metadata.get("general.type") == "adapter"
    except CodespecError:
        return False
