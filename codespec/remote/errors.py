"""What goes wrong with an engine elsewhere."""

from __future__ import annotations

from codespec.protocols import CodespecError


class RemoteError(CodespecError):
    """The engine did not do what it was asked to."""


class Away(RemoteError):
    """The engine cannot be reached, is too slow or too busy, or failed: it may do later what it did not do now."""


class Unreachable(Away):
    """Nothing listens there: to ask once more at once is of no use."""


class Refused(RemoteError):
    """The engine will not do this, however often it is asked: the settings have to change."""


class Private(Refused):
    """What was to be sent holds something that stays on this machine; nothing was sent."""

    def __init__(self) -> None:
        super().__init__("this text is not sent to an engine elsewhere (docs/privacy.md); see `remote.fallback`")
