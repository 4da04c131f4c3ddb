"""What was found out about a file or a library on this machine, kept until it changes."""

from __future__ import annotations

import json
import logging
from contextlib import suppress

from codespec.paths import machine_folder, make_private, write_whole

log = logging.getLogger("codespec.llama")

MOST = 200


class Verdicts:
    """Yes or no by key, in a file of the machine's folder; the ``MOST`` latest."""

    def __init__(self, name: str) -> None:
        self._name = name

    def all(self) -> dict[str, bool]:
        """Everything known; nothing where the file is missing or damaged."""
        with suppress(OSError, ValueError):
            found = json.loads((machine_folder() / self._name).read_text("utf-8"))
            if isinstance(found, dict):
                return {key: value for key, value in found.items() if isinstance(value, bool)}
        return {}

    def remember(self, key: str, verdict: bool) -> None:
        """Keep a verdict; a folder that cannot be written to is no failure."""
        path = machine_folder() / self._name
        latest = dict(list({**self.all(), key: verdict}.items())[-MOST:])
        try:
            make_private(path.parent)
            write_whole(path, [json.dumps(latest).encode()])
        except OSError as error:
            log.warning("%s: cannot be written (%s); what it would hold is found out again next time", path, error)
