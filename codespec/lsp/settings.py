"""The settings of a session, in layers: the configuration files, the editor's options, the choices of commands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote

from codespec import config
from codespec.config import Config
from codespec.config_sections import ContextConfig, EditsConfig, LanguageConfig

SECTION = "codespec"
"""The section that ``workspace/configuration`` asks for."""

SwitchableSetting = Literal["draft", "grammar"]
"""The settings that a command may override for the session."""


class Settings:
    """Keeps the layers of the settings apart, so that a change of one does not lose the others."""

    def __init__(self) -> None:
        self.config = Config()
        self.workspace: Path | None = None
        self._initial: Any = None
        self._pushed: Any = None
        self._chosen: dict[SwitchableSetting, dict[str, str]] = {}  # by language; the empty one is all others
        self._grammars: dict[str, str] = {}  # by document
        self._files: list[tuple[int, int] | None] = []  # as they were read
        self._latest: list[tuple[int, int] | None] = []

    def start(self, workspace: Path | None, options: Any) -> list[str]:
        """Read the files and apply ``initializationOptions``; returns messages for the user."""
        self.workspace = workspace
        self._initial = options
        return self.read()

    def change(self, options: Any) -> list[str]:
        """Apply the settings of the editor, which replace those it sent before; returns messages for the user."""
        self._pushed = options
        return self.read()

    def read(self) -> list[str]:
        """Read files and the client's settings again; what is wrong with them, for the user."""
        self._files = self._states()
        self.config, messages = config.load(self.workspace)
        for source, options in (("initializationOptions", self._initial), ("settings", self._pushed)):
            if options is None:
                continue
            options = _unwrap(options)
            if not isinstance(options, Mapping):
                messages.append(f"{source}: must be an object; ignored")
                continue
            options, more = _without_senders(options, source)
            messages += more
            self.config, more = self.config.apply(options, source, self.workspace)
            messages += more
        for key, chosen in self._chosen.items():
            self.config = _with(self.config, key, chosen)
        return messages

    @property
    def outdated(self) -> bool:
        """Whether a configuration file has changed since it was read, as ``codespec models use`` changes one, and is
        not being written: it was the same when this was asked the last time."""
        latest, self._latest = self._latest, self._states()
        return self._files != self._latest == latest

    def _states(self) -> list[tuple[int, int] | None]:
        """When each file was written, and its size."""
        return [_state(path) for path in config.files(self.workspace)]

    def choose(self, key: SwitchableSetting, value: str, language: str = "") -> None:
        """Use a draft or a grammar for the rest of the session, over all settings.

        Args:
            value: as ``check`` returns it.
            language: empty means every language, also those with a choice of their own.
        """
        chosen = self._chosen.setdefault(key, {})
        if not language:
            chosen.clear()
        chosen[language] = value
        self.config = _with(self.config, key, chosen)

    def choose_for(self, document: str, grammar: str) -> None:
        """Use a grammar in one document for the rest of the session, over what is chosen for its language; an empty one
        takes that back."""
        document = unquote(document)
        self._grammars.pop(document, None)
        if grammar:
            self._grammars[document] = grammar

    def grammar_of(self, document: str) -> str:
        """The grammar that was chosen for a document; empty where none was."""
        return self._grammars.get(unquote(document), "")

    def check(self, key: SwitchableSetting, name: str) -> tuple[str, list[str]]:
        """The value that ``name`` stands for, a path made absolute, and what is wrong with it."""
        config, messages = Config().apply({key: name}, folder=self.workspace)
        return str(getattr(config, key)), messages


def _state(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _with(settings: Config, key: SwitchableSetting, chosen: Mapping[str, str]) -> Config:
    """``settings`` with what was chosen for languages, or for all of them."""
    languages = dict(settings.language)
    changes: dict[str, Any] = {}
    if "" in chosen:
        changes[key] = chosen[""]
        languages = {name: _set(each, key, "") for name, each in languages.items()}
    for name in filter(None, chosen):
        languages[name] = _set(languages.get(name, LanguageConfig()), key, chosen[name])
    return replace(settings, language=languages, **changes)


def _set(settings: LanguageConfig, key: SwitchableSetting, value: str) -> LanguageConfig:
    return replace(settings, draft=value) if key == "draft" else replace(settings, grammar=value)


def needs_reload(old: Config, new: Config) -> bool:
    """Whether a change concerns the models, and not only what the server itself decides."""
    return _of_the_models(old) != _of_the_models(new)


def _of_the_models(settings: Config) -> Config:
    # Draft and grammar go with every request.
    return replace(
        settings,
        draft="auto",
        grammar="none",
        enabled=True,
        prefill=True,
        generate_ahead=True,
        prefetch=True,
        automatic=True,
        debounce_ms=0,
        quiet="auto",
        offer_models=True,
        statistics=True,
        status=True,
        log_level="warning",
        context=ContextConfig(),
        edits=EditsConfig(model=settings.edits.model),
        language={},
    )


def _without_senders(options: Mapping[str, Any], source: str) -> tuple[Mapping[str, Any], list[str]]:
    """The options without those that send code away: an editor's settings may come from a workspace."""
    target, messages = options.get("target"), []
    remedy = f"is ignored: only {config.user_file()} may set it"
    if "remote" in options:
        messages.append(f'{source}: "remote" {remedy}')
        options = {key: value for key, value in options.items() if key != "remote"}
    if isinstance(target, Mapping) and target.get("rpc"):
        messages.append(f'{source}: "target.rpc" {remedy}')
        options = {**options, "target": {key: value for key, value in target.items() if key != "rpc"}}
    return options, messages


def _unwrap(options: Any) -> Any:
    """The inner object of ``{"codespec": {...}}``: some editors send the section's name, some do not."""
    if isinstance(options, Mapping) and set(options) == {SECTION}:
        return options[SECTION] or {}
    return options
