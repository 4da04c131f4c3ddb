"""The commands that a client may run: on completions that were shown, on the models, on what was learnt."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

from pygls.exceptions import JsonRpcInternalError, JsonRpcInvalidParams

from codespec.languages import by_id
from codespec.lsp.child import run
from codespec.lsp.feedback import ACCEPT
from codespec.lsp.handlers.status import STATUS, status_of
from codespec.lsp.model_fetch import suggested
from codespec.lsp.next_edits import ACCEPT_EDIT
from codespec.lsp.session import CodespecServer
from codespec.lsp.settings import SwitchableSetting
from codespec.lsp.workspace.surroundings import MOST_CHECKED
from codespec.privacy.secrets import is_secret
from codespec.protocols import CodespecError

ACCEPT_PARTIAL = "codespec.acceptPartial"
REJECT = "codespec.reject"
REJECT_EDIT = "codespec.rejectEdit"
RESTART = "codespec.restart"
SET_DRAFT = "codespec.setDraft"
SET_GRAMMAR = "codespec.setGrammar"
CLEAR_LEARNT = "codespec.clearLearnt"
CHOICES = "codespec.choices"
SUGGEST_MODELS = "codespec.suggestModels"
GET_MODEL = "codespec.getModel"
TRACE = "codespec.trace"

CANCEL = "cancel"
"""Instead of a model: stop fetching one."""

INHERIT = "inherit"
"""Instead of a grammar: that of the language."""


Handler: TypeAlias = "Callable[..., Awaitable[Any]]"


def register(server: CodespecServer) -> None:
    """Let clients run the commands."""
    handlers: dict[str, Handler] = {
        ACCEPT: accept,
        ACCEPT_PARTIAL: accept_partial,
        REJECT: reject,
        ACCEPT_EDIT: accept_edit,
        REJECT_EDIT: reject_edit,
        RESTART: restart,
        STATUS: status,
        SET_DRAFT: set_draft,
        SET_GRAMMAR: set_grammar,
        CLEAR_LEARNT: clear_learnt,
        CHOICES: choices,
        SUGGEST_MODELS: suggest_models,
        GET_MODEL: get_model,
        TRACE: trace,
    }
    for name, handler in handlers.items():
        server.command(name)(_with_server(server, handler))


def _with_server(server: CodespecServer, handler: Handler) -> Handler:
    async def run(*arguments: Any) -> Any:  # pygls evaluates the annotations, and cannot see our class
        return await handler(server, *arguments)

    return run


async def accept(ls: CodespecServer, *arguments: Any) -> None:
    """The user has taken a completion. Arguments: its identifier, as in the item's own command.

    One that is not known (any more) is no error: of those offered the latest are kept.
    """
    await ls.feedback.accept(_text(ACCEPT, arguments, 0, "the identifier of a completion"))


async def accept_partial(ls: CodespecServer, *arguments: Any) -> None:
    """The user has taken the beginning of a completion, which may grow with later calls.

    Arguments: its identifier; all that was taken of it so far, as text or as a length in the units of positions. What
    the item repeats of the line before the cursor does not count.
    """
    identifier = _text(ACCEPT_PARTIAL, arguments, 0, "the identifier of a completion")
    taken = arguments[1] if len(arguments) > 1 else None
    if isinstance(taken, bool) or not isinstance(taken, (int, str)):
        raise _invalid(ACCEPT_PARTIAL, "the second argument must be the accepted text, or its length")
    offered = ls.feedback.text_of(identifier)
    if offered is None:
        return
    if isinstance(taken, str):
        length = len(taken)
        if not offered.startswith(taken):
            raise _invalid(ACCEPT_PARTIAL, "the completion does not begin with this text")
    else:
        length = ls.units.columns(offered, taken) if taken > 0 else 0
        if taken > ls.units.length(offered):
            raise _invalid(ACCEPT_PARTIAL, f"the completion is shorter than {taken}")
    if not length:
        raise _invalid(ACCEPT_PARTIAL, "the accepted part must not be empty")
    await ls.feedback.accept(identifier, length)


async def reject(ls: CodespecServer, *arguments: Any) -> None:
    """The user does not want a completion. Arguments: its identifier."""
    ls.feedback.reject(_text(REJECT, arguments, 0, "the identifier of a completion"))


async def accept_edit(ls: CodespecServer, *arguments: Any) -> None:
    """The user has applied a next edit. Arguments: its identifier, as in its own command."""
    ls.next_edits.accept(_text(ACCEPT_EDIT, arguments, 0, "the identifier of an edit"))


async def reject_edit(ls: CodespecServer, *arguments: Any) -> None:
    """The user has dropped a next edit, which is not offered again. Arguments: its identifier."""
    ls.next_edits.reject(_text(REJECT_EDIT, arguments, 0, "the identifier of an edit"))


async def restart(ls: CodespecServer, *arguments: Any) -> None:
    """Read the settings again and load the models anew, in a new process if they have one; requests wait for them."""
    await asyncio.to_thread(ls.models.end_process)
    ls.use_settings(ls.settings.read(), again=True)


async def status(ls: CodespecServer, *arguments: Any) -> dict[str, Any]:
    """The loaded models, the settings in force, and counts. Arguments: a language, if not the latest one's;
    ``answers`` for what the latest answers took."""
    latest = {"answers": ls.completions.times.latest()} if "answers" in arguments else {}
    named = tuple(each for each in arguments if each != "answers")
    language = _text(STATUS, named, 0, "a language") if named else ""
    statistics = await asyncio.to_thread(ls.feedback.statistics.read) if ls.feedback.statistics.enabled else None
    return {**await asyncio.to_thread(status_of, ls, language), "statistics": statistics, **latest}


async def set_draft(ls: CodespecServer, *arguments: Any) -> None:
    """Draft with another model for the rest of the session. Arguments: ``auto``, ``none``, a name or a file; and the
    language that it is for, if not for all."""
    name, language = _choice(SET_DRAFT, arguments, "a draft model")
    value, messages = ls.settings.check("draft", name)
    if not messages:
        try:
            # Reads folders, and the first time loads a library: not in the event loop.
            await asyncio.to_thread(_find_draft, value, language)
        except CodespecError as error:
            messages = [str(error)]
    _choose(ls, SET_DRAFT, "draft", value, language, messages)


async def set_grammar(ls: CodespecServer, *arguments: Any) -> None:
    """Keep to another grammar for the rest of the session. Arguments: ``auto``, ``none``, a name or a file; and the
    language that it is for, if not for all; and the URI of the document that it is for, if only for one, where
    ``inherit`` goes back to that of the language."""
    name, language = _choice(SET_GRAMMAR, arguments, "a grammar")
    document = arguments[2] if len(arguments) > 2 else ""
    if not isinstance(document, str):
        raise _invalid(SET_GRAMMAR, "the third argument must be the URI of a document")
    inherited = bool(document) and name == INHERIT
    value, messages = ("", []) if inherited else ls.settings.check("grammar", name)
    if not messages and not inherited and value not in ("auto", "none"):
        try:
            await asyncio.to_thread(_load_grammar, value)  # may take a second
        except CodespecError as error:
            messages = [str(error)]
    if document and not messages:
        ls.settings.choose_for(document, value)
        ls.settings_changed()
        return
    _choose(ls, SET_GRAMMAR, "grammar", value, language, messages)


async def clear_learnt(ls: CodespecServer, *arguments: Any) -> None:
    """Forget all that was learnt in the folders given (paths or URIs), or in all folders of the workspace."""
    if not all(isinstance(each, str) and each for each in arguments):
        raise _invalid(CLEAR_LEARNT, "the arguments must be folders")
    try:
        await ls.feedback.forget(arguments or ls.workspace_folders())
    except CodespecError as error:
        ls.messages.failure(error)
        return
    ls.messages.log("what was learnt in this workspace is forgotten")


async def choices(ls: CodespecServer, *arguments: Any) -> dict[str, Any]:
    """What an editor offers to choose from: installed ``models`` and the names of ``grammars``.

    Models are as ``codespec models list --json`` has them. Each has the ``role`` that it was made for and the ``value``
    that settings take. A ``target`` may draft for a larger one; the other roles are ``draft`` and ``edit``.
    """
    try:
        found = json.loads(await run("models", "list", "--json"))
    except (CodespecError, OSError, ValueError) as error:
        raise JsonRpcInternalError(message=f"{CHOICES}: {error}") from error
    return {"models": [_choosable(each) for each in found], "grammars": await asyncio.to_thread(_grammars)}


async def suggest_models(ls: CodespecServer, *arguments: Any) -> list[dict[str, Any]]:
    """The models that this machine can run, as ``codespec models suggest --json`` has them, the one that suits it best
    first. Takes some seconds: the machine is measured."""
    try:
        return suggested(json.loads(await run("models", "suggest", "--json")))
    except (CodespecError, OSError, ValueError) as error:
        raise JsonRpcInternalError(message=f"{SUGGEST_MODELS}: {error}") from error


async def get_model(ls: CodespecServer, *arguments: Any) -> bool:
    """Fetch a model and complete with it. Arguments: its name, as ``codespec models pull`` takes it, or ``cancel``; and
    False where the client chooses it in its own settings. Answers once it is there whether it is, or was cancelled."""
    name = _text(GET_MODEL, arguments, 0, "the name of a model")
    if name == CANCEL:
        return ls.fetching.cancel()
    return await ls.fetching.get(name, use=arguments[1:2] != (False,))


async def trace(ls: CodespecServer, *arguments: Any) -> dict[str, Any] | None:
    """How the latest completion came about, token by token; None where there was none yet, and where its document
    holds a secret, which the model may have repeated."""
    traces = ls.completions.traces
    found = traces.latest()
    document = ls.document(found["document"]) if found else None
    if found and document is not None and is_secret(document.path, document.beginning(MOST_CHECKED)):
        traces.forget(found["document"])
    return traces.latest()


def _choosable(model: dict[str, Any]) -> dict[str, Any]:
    from codespec.models.registry import EMBEDDED_TARGET

    path = Path(model["path"])
    role = "draft" if path.stem.startswith("draft-") else "target"  # as `train draft` and the package name them
    if model["edits"]:
        role = "edit"
    return {**model, "role": role, "value": "" if path == EMBEDDED_TARGET else path.stem}


def _grammars() -> list[str]:
    from codespec.grammar import shipped

    return list(shipped())


def _choose(
    ls: CodespecServer, command: str, key: SwitchableSetting, value: str, language: str, messages: list[str]
) -> None:
    if messages:
        raise _invalid(command, messages[0])
    ls.settings.choose(key, value, language)
    ls.settings_changed()


def _find_draft(name: str, language: str) -> None:
    from codespec.llama.gguf import read_header
    from codespec.models.registry import find_draft, known

    path = find_draft(name, by_id(language))
    if path is None:
        return
    if not path.is_file():
        raise CodespecError(f"there is no file {path}; known are auto, none, {', '.join(known())}")
    header = read_header(path)
    if header.metadata.get("general.type", "model") != "model" or not header.tensors:
        raise CodespecError(f"{path} is a GGUF file, but no model; known are auto, none, {', '.join(known())}")


def _load_grammar(name: str) -> None:
    from codespec.grammar import Grammar

    Grammar.load(name)


def _choice(command: str, arguments: tuple[Any, ...], what: str) -> tuple[str, str]:
    name = _text(command, arguments, 0, f"{what}: auto, none, a name or a file")
    language = arguments[1] if len(arguments) > 1 and arguments[1] is not None else ""
    if not isinstance(language, str):
        raise _invalid(command, "the second argument must be a language")
    return name, language


def _text(command: str, arguments: tuple[Any, ...], index: int, what: str) -> str:
    value = arguments[index] if len(arguments) > index else None
    if not isinstance(value, str) or not value:
        raise _invalid(command, f"the first argument must be {what}")
    return value


def _invalid(command: str, message: str) -> JsonRpcInvalidParams:
    return JsonRpcInvalidParams(message=f"{command}: {message}")
