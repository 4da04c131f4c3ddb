"""Files that a later run reads again: a damaged one is set aside, and of many the longest unused go."""

from __future__ import annotations

import logging
from contextlib import suppress
from pathlib import Path

DAMAGED = ".damaged"
"""The ending of a file that was set aside."""
_BLOCK = 4096  # bytes that a small file takes on most disks


def set_aside(path: Path, reason: object, then: str, log: logging.Logger, level: int = logging.WARNING) -> None:
    """Give a damaged file another name, so that somebody may look at it, and say so.

    Args:
        then: what follows from that.
    """
    aside = path.with_suffix(DAMAGED)
    with suppress(OSError):
        path.replace(aside)
    log.log(level, "%s is damaged (%s); set aside as %s, %s", path, reason, aside.name, then)


def remove_oldest(folder: Path, suffix: str, most: int, most_bytes: int | None = None) -> None:
    """Delete the files of a folder that are longest unused, those set aside and what a killed process left included.

    Args:
        suffix: of the files that count.
        most: how many may stay.
        most_bytes: how large they may be together; None: any size.
    """
    found = []
    for path in folder.iterdir():
        if path.suffix in (suffix, DAMAGED, ".tmp"):
            with suppress(OSError):  # another process was faster
                status = path.stat()
                found.append((status.st_mtime, max(status.st_size, _BLOCK), path))
    left, size = len(found), sum(size for _, size, _ in found)
    for _, own, path in sorted(found):
        if left <= most and (most_bytes is None or size <= most_bytes):
            break
        left, size = left - 1, size - own
        with suppress(OSError):
            path.unlink()
