"""Runs codespec's own commands in child processes: the server stays small, and they may be killed at any time."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress

from codespec.child_progress import FORM, VARIABLE, heard
from codespec.exit_codes import ANSWER_IS_NO, DONE
from codespec.paths import own_python
from codespec.protocols import CodespecError

_CODE = "from codespec.cli.main import main; sys.exit(main())"
_LOWEST = 19
_BELOW_NORMAL = getattr(subprocess, "BELOW_NORMAL_PRIORITY_CLASS", 0)  # of Windows


async def run(
    *arguments: str,
    progress: Callable[[str, float], None] = lambda step, share: None,
    started: Callable[[asyncio.subprocess.Process], None] = lambda process: None,
    aside: bool = False,
    environment: Mapping[str, str] | None = None,
) -> bytes:
    """Run a command and return its standard output. Cancelling the task ends the process.

    Args:
        progress: called with a step of the command, and which share of it is done, from 0 to 1.
        started: called with the process.
        aside: at the lowest priority.
        environment: variables besides those of this process.

    Raises:
        CodespecError: it failed; with its error message.
        OSError: it could not be started.
    """
    code = f"import os; os.nice({_LOWEST}); {_CODE}" if aside and sys.platform != "win32" else _CODE
    process = await asyncio.create_subprocess_exec(
        *own_python(code), *arguments,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        creationflags=_BELOW_NORMAL if aside else 0, env={**os.environ, VARIABLE: FORM, **(environment or {})},
    )  # fmt: skip
    started(process)
    assert process.stdout is not None
    assert process.stderr is not None
    latest = ""
    try:
        printed = asyncio.create_task(process.stdout.read())
        async for text in _lines(process.stderr):
            told = heard(text)
            if told is None:
                latest = text
            else:
                progress(*told)
        out = await printed
        if await process.wait() not in (DONE, ANSWER_IS_NO):
            raise CodespecError(latest.removeprefix("codespec: ") or f"codespec {arguments[0]} failed")
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
    return out


async def _lines(stream: asyncio.StreamReader) -> AsyncIterator[str]:
    r"""Lines that are not blank; ``\r`` ends one, too."""
    rest = b""
    while data := await stream.read(1 << 16):
        *whole, rest = re.split(rb"[\r\n]", rest + data)
        for each in whole:
            if text := each.decode("utf-8", "replace").strip():
                yield text
    if text := rest.decode("utf-8", "replace").strip():
        yield text
