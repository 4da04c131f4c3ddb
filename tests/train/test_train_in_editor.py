"""A training runs beside a session of an editor."""

from __future__ import annotations

from typing import Any

import pytest
from lsprotocol import types

from codespec.draft.storage.accepted_texts import AcceptedText, keep
from tests.lsp.helpers import run_command, running, until

pytest.importorskip("torch", reason="torch is not installed; `make test-train` installs it and runs this file")


@pytest.mark.asyncio
async def test_a_training_is_cancelled_in_the_editor(tmp_path):
    folder = tmp_path / "data" / "accepted"
    text = "".join(f"def f{n}(x):\n    return x + {n}\n\n\n" for n in range(300))
    for number in range(60):
        at = 40 * number + 20
        keep(
            AcceptedText(number, str(number), "w", "python", "a.py", text[:at], text[at : at + 30], text[at + 30 :]),
            folder,
        )
    async with running(tmp_path, folder=tmp_path, options={"target": {"path": ""}}) as server:
        assert await run_command(server, "codespec.trainDraft", "python", 5) is True
        await until(lambda: _shown(server), 60)
        [(token, reports)] = _shown(server).items()
        assert reports[0].cancellable is True
        server.client.window_work_done_progress_cancel(types.WorkDoneProgressCancelParams(token))
        await until(lambda: reports[-1].kind == "end", 20)
        assert reports[-1].message == "cancelled"
        assert await run_command(server, "codespec.trainDraft", "cancel") is False, "it is over"
        assert not any("draft" in each for each in server.shown)


def _shown(server: Any) -> dict[Any, list[Any]]:
    reports = server.client.progress_reports
    return {token: found for token, found in reports.items() if found and "a draft for" in (found[0].title or "")}
