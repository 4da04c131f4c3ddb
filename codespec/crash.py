"""What a crash leaves behind: nothing of what was in memory."""

from __future__ import annotations

from contextlib import suppress


def keep_no_memory() -> None:
    """Have this process and its children write no core dump, which would hold the texts of documents.

    Only the soft limit is changed: whoever debugs a process may raise it again (``prlimit --core=unlimited``).
    """
    with suppress(ImportError, OSError, ValueError):  # there is no such limit on Windows
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
