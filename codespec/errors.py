"""What can go wrong, apart from the rest so that the command line starts without NumPy."""

from __future__ import annotations


class CodespecError(Exception):
    """What went wrong and what to do about it, in one line fit for a user."""


class ContextFull(CodespecError):
    """A decode needs more tokens than the context holds: a generation ends with ``length``, a prompt is refused."""


class Aborted(Exception):
    """A decode was stopped from another thread."""
