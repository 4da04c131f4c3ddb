"""Adapters that fit one model and teach it to fill in the middle: how their files say so, and where they lie."""

from __future__ import annotations

import hashlib
from pathlib import Path

from codespec.llama.gguf import file_parts, read_header
from codespec.models.fim import Family, FimFormat
from codespec.models.registry import EMBEDDED, adapters_folder
from codespec.protocols import CodespecError

FITTED_KEY = "codespec.fim.target"
"""The GGUF key of what ``fingerprint`` says of the model that an adapter was trained for."""

PREFIX_KEY, SUFFIX_KEY = "codespec.fim.prefix_token", "codespec.fim.suffix_token"
"""The GGUF keys of the tokens that stand before the text before and after the cursor."""

NONE = "none"
"""In the settings, instead of an adapter: not even one that fits."""

FILES = "fim-*.gguf"

_F32 = 0
_FAMILY = Family("adapter", None, ("spm",), suffix_first=True)


def fingerprint(path: Path) -> str:
    """A hash of a model's norms, which all of its quantizations keep as they are, in whatever number of files.

    Raises:
        CodespecError: a file cannot be read, or is no GGUF file.
    """
    norms = {}
    for part in file_parts(path):
        with part.open("rb") as file:
            for name, tensor in read_header(part).tensors.items():
                if name.endswith("norm.weight") and tensor.kind == _F32:
                    file.seek(tensor.start)
                    norms[name] = file.read(4 * tensor.shape[0])
    digest = hashlib.sha256()
    for name in sorted(norms):
        digest.update(name.encode() + norms[name])
    return digest.hexdigest()[:32]


def filling_adapter(target: Path) -> Path | None:
    """The adapter that teaches this model to fill in: of those in the user's adapters folder, else of those that come
    with codespec. None where none fits."""
    files = [path for folder in (adapters_folder(), EMBEDDED / "adapters") for path in sorted(folder.glob(FILES))]
    if not files:
        return None
    try:
        wanted = fingerprint(target)
    except (CodespecError, OSError):
        return None
    return next((path for path in files if _made_for(path) == wanted), None)


def _made_for(adapter: Path) -> str:
    try:
        return str(read_header(adapter).metadata.get(FITTED_KEY, ""))
    except CodespecError:  # a damaged file is none that fits
        return ""


def adapter_layout(adapter: Path, size: int) -> FimFormat | None:
    """The layout that an adapter was trained with; None where it does not teach to fill in a model of ``size`` tokens.

    Raises:
        CodespecError: the file cannot be read, or is no GGUF file.
    """
    metadata = read_header(adapter).metadata
    prefix, suffix = metadata.get(PREFIX_KEY), metadata.get(SUFFIX_KEY)
    if (
        not isinstance(prefix, int)
        or not isinstance(suffix, int)
        or not 0 <= min(prefix, suffix) <= max(prefix, suffix) < size
    ):
        return None
    return FimFormat(prefix, suffix, None, "spm", family=_FAMILY)
