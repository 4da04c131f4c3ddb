"""Offers a better model than the embedded one at the first start, with size and licence; fetches it on a yes only.

The smallest real model comes first: it is there within a minute. The message names the largest that this machine runs.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from codespec.lsp.child import run
from codespec.models.catalogue import PACKAGED, amount
from codespec.paths import data_folder, make_private, write_whole
from codespec.protocols import CodespecError

if TYPE_CHECKING:
    from codespec.lsp.session import CodespecServer

AFTER_S = 15.0
"""Seconds after the start, when no model is being loaded any more. ``CODESPEC_OFFER_AFTER_S`` overrides it."""

AGAIN_S = 7 * 86_400.0
"""Seconds until it is offered again to a user who postponed it."""

FIRST = PACKAGED[0]

FETCH, LATER, NEVER = "Download", "Not now", "Never"

logger = logging.getLogger(__name__)


async def offer_model(ls: CodespecServer) -> None:
    """Ask once whether to fetch a real model, where the embedded one is in use; then use it."""
    await asyncio.sleep(_after_s())
    if ls.settings.config.target.path or not ls.settings.config.offer_models or not _due(_marker()):
        return
    try:
        chosen = json.loads(await run("models", "suggest", "--json"))["best"]
    except (CodespecError, OSError, ValueError) as error:
        logger.info("nothing could be suggested: %s", error)
        return
    _mark(time.time() + AGAIN_S)  # of several windows one asks
    if not _asks_aside(ls):
        text = f"{_known(chosen)} `codespec models pull {FIRST.name}` fetches it."
        ls.window_show_message(types.ShowMessageParams(types.MessageType.Info, text))
        return
    question = types.ShowMessageRequestParams(
        types.MessageType.Info, _question(chosen), [types.MessageActionItem(each) for each in (FETCH, LATER, NEVER)]
    )
    try:
        answer = await ls.window_show_message_request_async(question)
    except Exception as error:  # whatever a client makes of it
        logger.info("the client does not ask: %s", error)
        return
    if answer is not None and answer.title == NEVER:
        _mark(float("inf"))
    if answer is not None and answer.title == FETCH:
        await ls.fetching.get(FIRST.name)


def _asks_aside(ls: CodespecServer) -> bool:
    """Whether the client shows a question without interrupting: Neovim and Emacs stop the user while typing."""
    return bool(re.search(r"\bcode\b|codium|cursor|windsurf|positron", ls.usage.client_name, re.IGNORECASE))


def _after_s() -> float:
    try:
        return float(os.environ.get("CODESPEC_OFFER_AFTER_S", ""))
    except ValueError:
        return AFTER_S


def _known(best: dict[str, Any] | None) -> str:
    """What there is beside the embedded model: the first, and the best for this machine."""
    text = (
        f"codespec runs its embedded model, which is for trying it out. {FIRST.name} is a small real one "
        f"({amount(FIRST.size)}, {FIRST.licence})."
    )
    if best is None or best["model"] == FIRST.name:
        return text
    return f"{text} This machine can run {best['model']}, too ({amount(best['download'])}: `codespec models suggest`)."


def _question(best: dict[str, Any] | None) -> str:
    return f"{_known(best)} Download {FIRST.name} and use it?"


def _marker() -> Path:
    return data_folder() / "offered"


def _due(marker: Path) -> bool:
    try:
        return float(marker.read_text("ascii")) <= time.time()
    except (OSError, ValueError):
        return True


def _mark(until: float) -> None:
    with suppress(OSError):
        make_private(data_folder())
        write_whole(_marker(), [str(until).encode()])
