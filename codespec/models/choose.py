"""Writes the choice of a model into the user's settings, whose other lines stay as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from codespec.paths import make_private, write_whole
from codespec.protocols import CodespecError


def choose(file: Path, role: str, name: str, language: str = "") -> None:
    """Write a choice into a settings file, which need not exist.

    Args:
        role: ``target``, ``draft``, or ``edit``: the model of next edits.
        name: of a model, or its path; for a draft also ``auto`` and ``none``.
        language: the only one that the draft is for; empty: all, also those that had one of their own.

    Raises:
        CodespecError: the file cannot be read or written; it is as before.
    """
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        file = file.resolve()  # what a link leads to is written, not the link
        document = tomlkit.parse(file.read_bytes().decode("utf-8-sig") if file.exists() else "")
        table = cast("dict[str, Any]", document)
        if role == "target":
            _table(table, "target")["path"] = name
        elif role == "edit":
            _table(table, "edits")["model"] = name
        elif language:
            _table(_table(table, "language"), language)["draft"] = name
        else:
            table["draft"] = name
            for own in table.get("language", {}).values():
                own.pop("draft", None)
        text = tomlkit.dumps(document)
    except (TOMLKitError, UnicodeDecodeError, AttributeError, TypeError) as error:
        raise CodespecError(f"{file}: {error}; mend it, or delete it for the defaults") from error
    except OSError as error:
        raise CodespecError(f"{file}: cannot be read ({error.strerror})") from error
    try:
        make_private(file.parent)
        write_whole(file, [text.encode()])
    except OSError as error:
        raise CodespecError(f"{file}: cannot be written ({error.strerror})") from error


def _table(parent: dict[str, Any], key: str) -> dict[str, Any]:
    import tomlkit

    if key not in parent:
        parent[key] = tomlkit.table(is_super_table=key == "language")
    return cast("dict[str, Any]", parent[key])
