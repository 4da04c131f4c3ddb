"""Checksums of fetched models as the hub gives them, kept beside the files for later comparison.

A line for each file as ``sha256sum`` writes it, so that ``sha256sum -c`` reads them, too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from codespec.llama.gguf import file_parts
from codespec.paths import make_private
from codespec.protocols import CodespecError

Report = Callable[[str, int, int], None]
"""Called with a message (what is done to which file), bytes done and bytes in all."""

_PIECE = 1 << 20
_MADE_OF = "# made of "
"""``sha256sum`` leaves out lines that begin with #."""


def sha256(path: Path, report: Report) -> str:
    """The checksum of a file, 64 hexadecimal digits.

    Raises:
        OSError: it cannot be read.
    """
    digest, done, size = hashlib.sha256(), 0, path.stat().st_size
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
            done += len(piece)
            report(f"checking {path.name}", done, max(size, done))
    return digest.hexdigest()


def note_checksum(path: Path, checksum: str, made_of: str = "") -> None:
    """Remember the hub's checksum of a file that was fetched.

    Args:
        made_of: that of the file that was fetched, where ``checksum`` is of one that was made of it here.

    Raises:
        OSError: it cannot be written.
    """
    make_private(_place(path).parent)
    _place(path).write_text(f"{checksum}  {path.name}\n" + (f"{_MADE_OF}{made_of}\n" if made_of else ""))


def is_made_of(path: Path, checksum: str) -> bool:
    """Whether a file was made here of the one with this checksum."""
    try:
        noted = _place(path).read_text("ascii", "replace")
    except OSError:
        return False
    return bool(checksum) and f"{_MADE_OF}{checksum}\n" in noted


def forget_checksum(path: Path) -> None:
    """Drop the checksum of a file that is deleted.

    Raises:
        OSError: it cannot be deleted.
    """
    _place(path).unlink(missing_ok=True)


def verify(path: Path, report: Report) -> None:
    """Compare all parts of a model with the checksums that the hub gave when they were fetched.

    Raises:
        CodespecError: one is another file now, cannot be read, or nothing is known of it.
    """
    for part in file_parts(path):
        try:
            noted = _place(part).read_text("ascii", "replace").split()[:1]
        except OSError:
            noted = []
        if not noted:
            raise CodespecError(
                f"{part}: its checksum is not known, since it was not fetched from a hub that gave one; "
                "`codespec models pull` fetches a model with its checksum"
            )
        try:
            same = sha256(part, report) == noted[0]
        except OSError as error:
            raise CodespecError(f"{part}: cannot be read ({error.strerror})") from error
        if not same:
            raise CodespecError(
                f"{part}: its checksum has changed since it was fetched, so it is damaged or was replaced; "
                f"run `codespec models remove {part.stem}` and fetch it again"
            )


def _place(path: Path) -> Path:
    return path.parent / ".checksums" / f"{path.name}.sha256"
