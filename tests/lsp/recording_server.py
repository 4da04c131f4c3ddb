"""The real server with the real models, which writes every prompt to the file that ``RECORDED`` names."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from codespec.completion.completer import Completer
from codespec.completion.request import Request
from codespec.config import Config
from codespec.daemon.models import Models
from codespec.daemon.own_models import OwnModels
from codespec.lsp import serve


class RecordingModels(Models):
    """Models whose completers write their prompts."""

    def completer(self, user: object, config: Config, progress: Callable[[str, int], None]) -> Completer:
        return recording(super().completer(user, config, progress))  # type: ignore[arg-type]  # nothing is elsewhere


def recording(completer: Completer) -> Completer:
    engine, path = completer.engine, ""

    def named(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(request: Request, *rest: Any) -> Any:
            nonlocal path
            path = request.path
            return method(request, *rest)

        return call

    def recorded(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(prompt: Sequence[int], *rest: Any, **more: Any) -> Any:
            text = b"".join(map(engine.vocabulary.token_bytes, prompt)).decode("utf-8", "replace")
            with Path(os.environ["RECORDED"]).open("a", encoding="utf-8") as file:
                file.write(json.dumps([path, text]) + "\n")
            return method(prompt, *rest, **more)

        return call

    completer.complete, completer.prefill = named(completer.complete), named(completer.prefill)  # type: ignore[method-assign]
    for name in ("generate", "generate_together", "prefill"):
        setattr(engine, name, recorded(getattr(engine, name)))
    return completer


if __name__ == "__main__":
    sys.exit(serve(own=OwnModels(models=RecordingModels)))
