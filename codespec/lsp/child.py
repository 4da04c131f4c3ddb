"""Runs codespec's own commands in child processes: the server stays small, and they may be killed at any time."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

from codespec.child_progress import FORM, VARIABLE, heard
from codespec.exit_codes import ANSWER_IS_NO, DONE
from codespec.paths import own_python
from codespec.protocols import CodespecError

_CODE = "from codespec.cli.main import main; sys.exit(main())"


async def run(*arguments: str, progress: Callable[[str, float], None] = lambda step, share: None) -> bytes:
    """Run a command and return its standard output. Cancelling the task ends the process.

    Args:
        progress: called with a step of the command, and which share of it is done, from 0 to 1.

    Raises:
        CodespecError: it failed; with its error message.
        OSError: it could not be started.
    """
    process = await asyncio.create_subprocess_exec(
        *own_python(_CODE), *arguments,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, VARIABLE: FORM},
    )  # fmt: skip
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
