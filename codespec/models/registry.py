"""Finds models by name: embedded in the package, in the user's models folder, or at a path."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from codespec.files import StrPath
from codespec.languages import Language
from codespec.models.catalogue import known_model
from codespec.models.installed import models_in_packages
from codespec.paths import data_folder
from codespec.protocols import CodespecError

if TYPE_CHECKING:
    from codespec.llama.model import LlamaVocabulary  # which takes longer than all that the settings need

EMBEDDED = Path(__file__).parent.parent / "data"
EMBEDDED_TARGET = EMBEDDED / "target.gguf"
EMBEDDED_EDIT = EMBEDDED / "edit.gguf"


def models_folder() -> Path:
    """The folder of a user's models; it need not exist."""
    return data_folder() / "models"


def adapters_folder() -> Path:
    """The folder of a user's LoRA adapters; it need not exist."""
    return models_folder() / "adapters"


def find_adapter(name: StrPath) -> Path:
    """The file of a LoRA adapter: a path, or a name in the adapters folder.

    Raises:
        CodespecError: there is none of that name.
    """
    name = os.fspath(name)
    path = _expanded(name)
    if path.is_absolute():
        return path
    path = adapters_folder() / f"{name.removesuffix('.gguf')}.gguf"
    if not path.is_file():
        raise CodespecError(
            f"no LoRA adapter {name!r}; give the path of a .gguf file, or put {path.name} into {path.parent}"
        )
    return path


EMBEDDED_NAME = "embedded"
"""How people call the embedded target."""


def find_target(name: StrPath = "") -> Path:
    """The file of a target: a path, a name in the user's models folder, or the embedded one for an empty name.

    Raises:
        CodespecError: there is none of that name.
    """
    return _find(name, "target") if name else EMBEDDED_TARGET


def find_edit_model(name: StrPath = "") -> Path:
    """The file of a model of next edits: a path, a name in the user's models folder, or the embedded one for an empty
    name.

    Raises:
        CodespecError: there is none of that name.
    """
    if name:
        return _find(name, "edit")
    if not EMBEDDED_EDIT.is_file():
        raise CodespecError(f"there is no {EMBEDDED_EDIT}: install codespec again or set `edits.model` to a .gguf file")
    return EMBEDDED_EDIT


def find_draft(name: StrPath, language: Language) -> Path | None:
    """The file of a draft, None where no draft model is wanted or known.

    Args:
        name: ``none``, ``auto`` (the embedded draft of the language, if any), a name or a path.

    Raises:
        CodespecError: there is no draft of this name or path.
    """
    if name == "none":
        return None
    if name != "auto":
        return _find(name, "draft")
    path = EMBEDDED / f"draft-{language.draft}.gguf"
    return path if language.draft and path.exists() else None


def find_model(name: StrPath) -> Path:
    """The file of a model by its path or name.

    Raises:
        CodespecError: there is none of that name.
    """
    return _find(name, "")


def file_or_model(name: StrPath) -> Path:
    """The model that an argument of the command line means: a file of the current folder, or a known name.

    Raises:
        CodespecError: there is neither.
    """
    return Path(name).resolve() if Path(name).is_file() else find_model(name)


def _expanded(name: str) -> Path:
    try:
        return Path(name).expanduser()
    except RuntimeError:
        raise CodespecError(f"{name}: there is no such user, or a user without a home; write the path out") from None


def _find(name: StrPath, role: str) -> Path:
    name = os.fspath(name)
    path = _expanded(name)
    # Never a bare name: the current folder may be a workspace that somebody else has filled.
    if path.is_absolute():
        return path
    given, name = name, name.removesuffix(".gguf")
    places = [EMBEDDED / f"{name}.gguf", EMBEDDED / f"{role}-{name}.gguf", models_folder() / f"{name}.gguf"]
    if name == EMBEDDED_NAME and role in ("", "target"):
        places.append(EMBEDDED_TARGET)
    found = next((p for p in places if p.is_file()), None) or models_in_packages().get(name)
    if found is None and path.name != given:
        raise CodespecError(f"{given}: no such model file; check the path, and give it from the root on")
    if found is None and role == "edit":
        raise CodespecError(
            f"no model of next edits {name!r}; `edits.model` takes the path of a .gguf file or a name in "
            f"{models_folder()}, and is empty for the embedded model"
        )
    if found is None:
        what = f"{role} model" if role else "model"
        own = {path.stem for path in EMBEDDED.glob("*.gguf")}
        if role == "draft":
            names = [other for other in known() if other not in (EMBEDDED_TARGET.stem, EMBEDDED_EDIT.stem)]
        else:  # what comes with codespec for one language or for edits is found by itself
            names = [EMBEDDED_NAME, *(other for other in known() if other not in own)]
        remedy = f"pull {name}` fetches it" if known_model(name) else "suggest` names some to fetch"
        raise CodespecError(
            f"no {what} {name!r}; give the path of a .gguf file or one of {', '.join(names)}; `codespec models {remedy}"
        )
    return found


def known() -> list[str]:
    """Names of the installed and embedded models."""
    files = (p for folder in (EMBEDDED, models_folder()) for p in folder.glob("*.gguf") if p.is_file())
    return sorted({*(p.stem for p in files if is_whole(p)), *models_in_packages()})


def is_whole(path: Path) -> bool:
    """Whether a file is a model, or the first part of one, by which the others are found."""
    return not re.search(r"-(?!00001)\d{5}-of-\d{5}\.gguf$", path.name, re.IGNORECASE)


def vocabulary_hash(vocabulary: LlamaVocabulary) -> str:
    """A hash that is equal for two vocabularies if every token has the same text, padding at the end aside."""
    return digest_of(vocabulary.names[: vocabulary.used])


def digest_of(names: Iterable[bytes]) -> str:
    """A hash of names of tokens."""
    return hashlib.sha256(b"".join(name + b"\0" for name in names)).hexdigest()


def text_hash(vocabulary: LlamaVocabulary) -> str:
    """A hash that is equal for two vocabularies if their tokens that are text are the same: members of a family add
    special tokens, and name them otherwise."""
    return digest_of(vocabulary.name(token) for token in vocabulary.text_tokens)


def first_difference(target: LlamaVocabulary, draft: LlamaVocabulary) -> int | None:
    """The first token that differs between two vocabularies, or that one of them lacks; None where they are equal,
    padding at the end aside."""
    shorter = min(target.used, draft.used)
    different = (token for token in range(shorter) if target.name(token) != draft.name(token))
    return next(different, None if target.used == draft.used else shorter)
