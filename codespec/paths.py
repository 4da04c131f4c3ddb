"""The folders of a user's data, and safe writing to them."""

from __future__ import annotations

import contextlib
import functools
import os
import stat
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import platformdirs

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


PATIENCE = 2.0
"""Seconds to wait for a process that has a file; it normally has it for some milliseconds."""


def data_folder() -> Path:
    """Of models and what was learnt; it need not exist. ``CODESPEC_DATA`` in the environment names another one."""
    return _own("CODESPEC_DATA", "data")


def cache_folder() -> Path:
    """Of what can be made anew; it need not exist. ``CODESPEC_CACHE`` in the environment names another one."""
    return _own("CODESPEC_CACHE", "cache")


def machine_folder() -> Path:
    """Of what was found out about this machine, whatever ``CODESPEC_CACHE`` is; it need not exist."""
    return _own("", "cache")


def settings_folder() -> Path:
    """Of the user's settings; it need not exist."""
    return _own("", "config")


def _own(variable: str, kind: str) -> Path:
    if chosen := variable and os.environ.get(variable):
        return Path(chosen)
    try:
        usual = Path(getattr(platformdirs, f"user_{kind}_dir")("codespec"))
    except RuntimeError:  # a user without a home
        usual = Path()
    # A path that starts in the current folder starts in what may be anybody's.
    return usual if usual.is_absolute() else _homeless() / kind


@functools.cache
def _homeless() -> Path:
    folder = short_folder()
    try:
        keep_private(folder)
    except OSError:  # somebody else was there first
        folder = Path(tempfile.mkdtemp(prefix="codespec-"))
    return folder


def folder_of(workspace: str) -> Path | None:
    """The folder of a path or ``file:`` URI; None for an empty text and for what is no folder of this machine."""
    if not workspace:
        return None
    if "://" in workspace:
        parts = urlsplit(workspace)
        if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
            return None
        if sys.platform == "win32":
            from urllib.request import url2pathname

            return Path(url2pathname(parts.path))
        workspace = unquote(parts.path)  # what that does here; importing it takes longer than all the rest
    return Path(workspace)


def name_of(workspace: str) -> str:
    """The same name for a folder however it is written, as a path, through links or as a URI; empty as ``folder_of``
    gives None."""
    folder = folder_of(workspace)
    return os.path.realpath(folder) if folder is not None else ""


def kv_folder() -> Path:
    """Where KV caches of workspaces lie between runs; it need not exist."""
    return cache_folder() / "kv"


def runtime_folder() -> Path:
    """Of sockets and locks; made if need be, and nobody else can look into it.

    ``CODESPEC_RUNTIME`` in the environment names another one.

    Raises:
        OSError: it cannot be made, or belongs to somebody else.
    """
    # Without a session of systemd's, platformdirs would warn, and name a folder whose parent anybody may have made.
    named = ("CODESPEC_RUNTIME", "XDG_RUNTIME_DIR")
    missing = (
        sys.platform == "linux"
        and not any(map(os.environ.get, named))
        and not Path(f"/run/user/{os.getuid()}").is_dir()
    )
    folder = short_folder() if missing else _own("CODESPEC_RUNTIME", "runtime")
    try:
        keep_private(folder)
    except OSError:  # no such folder for this user, as in containers
        folder = short_folder()
        keep_private(folder)
    return folder


def short_folder() -> Path:
    """A place for sockets whose name would be too long elsewhere; one for each user."""
    who = str(os.getuid()) if sys.platform != "win32" else os.environ.get("USERNAME", "user")
    return Path(tempfile.gettempdir()) / f"codespec-{who}"


def keep_private(folder: Path) -> None:
    """Make a folder that nobody else can look into.

    Raises:
        OSError: it cannot be made, or belongs to somebody else.
    """
    make_private(folder)
    if sys.platform == "win32":  # the folder lies in the user's profile
        return
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise PermissionError(f"{folder} is not a folder of this user's own")
    if found.st_mode & 0o077:
        folder.chmod(0o700)


def write_whole(path: Path, parts: Iterable[bytes | memoryview]) -> None:
    """Write a file anew, readable by its owner alone; another process sees all of it or what was there before.

    Raises:
        OSError: it could not be written; what was there is as before.
    """
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.stem, suffix=".tmp")  # mode 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise


def make_private(folder: Path) -> None:
    """Create a folder, and those above it that are missing, for the user's eyes only."""
    if not folder.is_dir():
        make_private(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def others_may_write(path: Path) -> Path | None:
    """What of a file and its folder everybody may write to; None where nothing is, or nothing is there."""
    if sys.platform == "win32":  # the folder lies in the user's profile
        return None
    for each in (path, path.parent):
        with contextlib.suppress(OSError):
            if each.stat().st_mode & stat.S_IWOTH:
                return each
    return None


def own_python(code: str) -> list[str]:
    """A command line that runs ``code`` with the modules of this process; by itself a child would look in the current
    folder, which may be anybody's."""
    return [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}; {code}"]


def hold(path: Path) -> int | None:
    """Open a lock file and lock it until the handle that this returns is closed; None if another process has it.

    Raises:
        OSError: it cannot be made.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    if try_lock(handle):
        return handle
    os.close(handle)
    return None


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file ``path``, in a folder that is made if need be.

    Raises:
        OSError: it cannot be made, or another process has held it for ``PATIENCE`` seconds.
    """
    make_private(path.parent)
    until = time.monotonic() + PATIENCE
    while (handle := hold(path)) is None:
        if time.monotonic() > until:
            raise TimeoutError(f"{path}: another process has held it for {PATIENCE:.0f} seconds")
        time.sleep(0.002)
    try:
        yield
    finally:
        os.close(handle)


if sys.platform == "win32":

    def try_lock(handle: int) -> bool:
        """Lock an open file unless another process holds it; whether this one does now."""
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:

    def try_lock(handle: int) -> bool:
        """Lock an open file unless another process holds it; whether this one does now."""
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return True  # no locks here, as on some network drives
        return True
