"""``codespec.toml`` and the options of the language server: the same keys, read into frozen dataclasses.

A bad key or value never stops anything: it gives a message and keeps the value from before.
"""

from __future__ import annotations

import difflib
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from codespec.config_rules import AUTO, SettingRule, Workspace, in_short, is_path, option, show
from codespec.config_sections import (
    CacheConfig,
    ContextConfig,
    EditsConfig,
    LanguageConfig,
    LoraConfig,
    RemoteConfig,
    TargetConfig,
)
from codespec.files import StrPath
from codespec.languages import LANGUAGES
from codespec.models.registry import adapters_folder, models_folder
from codespec.paths import others_may_write, settings_folder

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE_NAME = "codespec.toml"

LARGEST_FILE, LONGEST_LINE = 1 << 16, 1024
"""Bytes: the parser takes time that grows with the square of a key's length."""

_MOST_MESSAGES = 5  # about one file of a workspace

T = TypeVar("T")


@dataclass(frozen=True)
class Config:
    """Every setting. ``python -m tests.settings_texts`` writes its texts into docs/settings.md and VS Code's settings.

    Attributes:
        target: the large model, whose text is shown.
        remote: an engine elsewhere that the target runs on. Only the user's own file counts.
        draft: the model that proposes tokens: ``auto`` (the language's own), ``none``, a GGUF file or a name. It
            changes how fast completions come, not what they say.
        target_lora: a LoRA adapter for the model: a GGUF file, the name of one in the adapters folder, or ``path`` and
            ``scale`` of one. Empty: if the model cannot fill in the middle, the adapter that teaches it to, where there
            is one. ``none``: no adapter.
        draft_lora: a LoRA adapter for the draft model that is in use, given as in ``target_lora``.
        grammar: the grammar that completions keep to: ``auto`` (the language's own, of the version that the project
            requires), ``none``, a grammar file or a name such as ``json``. Without one a parser alone checks them.
        gate: how much of the text after the cursor must fit after a completion: ``window`` (its first kilobyte),
            ``whole`` or ``off``.
        enabled: whether the editor gets completions.
        max_tokens: how long a completion may be, in tokens.
        time_budget_ms: how long a completion may take, in milliseconds; 0 is no limit.
        temperature: how much chance decides between tokens; 0 always takes the likeliest.
        seed: the same seed gives the same text.
        draft_length: how many tokens are proposed at a time at most; 0: as many as are expected to save time.
        draft_memory_mib: memory for draft models, in MiB; above it the least recently used ones are unloaded.
        learn: whether drafts learn from open files and accepted completions, on this machine and for each workspace
            apart. It changes how fast completions come, not what they say.
        prefill: whether the model reads the prompt as you type, before a completion is asked for.
        generate_ahead: whether the model completes before the editor asks, where it mostly asks by itself a moment
            later. Completions come sooner, for a little more work.
        prefetch: whether the next completion is prepared while one is shown, so that it follows at once if you accept.
        automatic: whether ghost text appears as you type; otherwise only when you press its key.
        debounce_ms: how long you must stop typing before ghost text appears by itself, in milliseconds, in addition to
            the editor's own delay.
        quiet: when to spare the processor: ``auto`` (on a battery, and while the machine is overloaded), ``always`` or
            ``never``. codespec then prepares nothing ahead, and waits until you stop typing for 300 ms.
        cache: what is kept of earlier prompts.
        statistics: whether codespec counts how many completions are shown, accepted or rejected. The counts stay on
            this machine.
        status: whether the editor is told of the state of the models, by ``codespec/status`` notifications.
        offer_models: whether codespec offers to download a larger model while the embedded one is in use.
        shared: whether all editor windows share one process with the models, which then take memory only once.
            Otherwise each window loads its own.
        log_level: how much the server writes to its log, on standard error.
        context: pieces of other files in prompts.
        edits: next edits: the change that follows from the one just made.
        language: by LSP language identifier.
    """

    target: TargetConfig = field(default_factory=TargetConfig)
    remote: RemoteConfig = field(default_factory=RemoteConfig)
    draft: str = option("auto", Workspace.ANY, file="model")
    target_lora: LoraConfig = field(default_factory=LoraConfig)
    draft_lora: LoraConfig = field(default_factory=LoraConfig)
    grammar: str = option("auto", Workspace.ANY, file="grammar")
    gate: str = option("window", Workspace.ANY, choices=("window", "whole", "off"))
    enabled: bool = option(True, Workspace.OFF)
    max_tokens: int = option(128, Workspace.LOWER, minimum=1, maximum=8192)
    time_budget_ms: int = option(2000, Workspace.LOWER, maximum=600_000, stands_for=float("inf"))
    temperature: float = option(0.0, Workspace.ANY, maximum=10)
    seed: int = option(0, Workspace.ANY)
    draft_length: int = option(0, Workspace.ANY, maximum=32)
    draft_memory_mib: int = option(2048, Workspace.LOWER, maximum=1 << 20)
    learn: bool = option(True, Workspace.OFF)
    prefill: bool = option(True, Workspace.OFF)
    generate_ahead: bool = option(True, Workspace.OFF)
    prefetch: bool = option(True, Workspace.OFF)
    automatic: bool = option(True, Workspace.OFF)
    debounce_ms: int = option(0, Workspace.NEVER, maximum=10_000)
    quiet: str = option("auto", Workspace.NEVER, choices=("auto", "always", "never"))
    cache: CacheConfig = field(default_factory=CacheConfig)
    statistics: bool = option(True, Workspace.OFF)
    status: bool = option(True, Workspace.OFF)
    offer_models: bool = option(True, Workspace.OFF)
    shared: bool = option(True, Workspace.NEVER)
    log_level: str = option("warning", Workspace.NEVER, choices=("error", "warning", "info", "debug"))
    context: ContextConfig = field(default_factory=ContextConfig)
    edits: EditsConfig = field(default_factory=EditsConfig)
    language: Mapping[str, LanguageConfig] = field(default_factory=dict)

    def for_language(self, identifier: str) -> LanguageConfig:
        """The settings that hold for one language, nothing left open."""
        own = self.language.get(identifier, LanguageConfig())
        return LanguageConfig(
            draft=own.draft or self.draft,
            grammar=own.grammar or self.grammar,
            enabled=self.enabled and own.enabled is not False,
        )

    def apply(
        self,
        options: Mapping[str, Any],
        source: str = "",
        folder: StrPath | None = None,
        trusted: bool = True,
    ) -> tuple[Config, list[str]]:
        """These settings with ``options`` over them, and a message for every option that does not count.

        Args:
            options: keys and values as in the file; None leaves a key as it is.
            source: what the messages name as their origin.
            folder: where relative paths start; None leaves them as they are.
            trusted: False for a workspace's own file, which can make things stricter only (``Workspace``), and may not
                choose files outside the known folders.
        """
        reader = _Reader(source, Path(folder) if folder is not None else None, trusted)
        config = reader.config(self, options)
        return config, reader.messages if trusted else in_short(reader.messages, _MOST_MESSAGES)


def user_file() -> Path:
    """The user's own configuration file."""
    return settings_folder() / FILE_NAME


def files(workspace: StrPath | None = None) -> list[Path]:
    """The configuration files that count, the user's first; they need not exist."""
    return [user_file(), *([Path(workspace) / FILE_NAME] if workspace else [])]


def load(workspace: StrPath | None = None) -> tuple[Config, list[str]]:
    """The defaults, the user's file over them, and over that the file of ``workspace``, which is not trusted."""
    config = Config()
    messages: list[str] = []
    for path, trusted in zip(files(workspace), (True, False), strict=False):
        if trusted and (open_to_all := others_may_write(path)):
            messages.append(f"{path}: ignored, since everybody may write to {open_to_all}; chmod o-w {open_to_all}")
            continue
        options, problems = _read(path)
        config, more = config.apply(options, str(path), path.parent, trusted)
        messages += problems + more
    return config, messages


def _read(path: Path) -> tuple[dict[str, Any], list[str]]:
    try:
        # is_file(), because opening a pipe of that name would wait for ever.
        if not path.is_file():
            return {}, []
        with path.open("rb") as file:
            data = file.read(LARGEST_FILE + 1)
        if len(data) > LARGEST_FILE:
            return {}, [f"{path}: larger than 64 KiB; the file is ignored"]
        if max(map(len, data.split(b"\n"))) > LONGEST_LINE:
            return {}, [f"{path}: a line of more than {LONGEST_LINE} bytes; the file is ignored"]
        return tomllib.loads(data.decode("utf-8-sig")), []
    except OSError as error:
        return {}, [f"{path}: cannot be read ({error.strerror}); the file is ignored"]
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return {}, [f"{path}: not UTF-8 (at line {line}); the file is ignored"]
    except ValueError as error:  # TOMLDecodeError, whose text gives line and column, or a number of thousands of digits
        return {}, [f"{path}: {error}; the file is ignored"]
    except RecursionError:
        return {}, [f"{path}: nested too deeply; the file is ignored"]


class _Reader:
    """Reads one mapping of options into the dataclasses and collects what was wrong with it."""

    def __init__(self, source: str, folder: Path | None, trusted: bool) -> None:
        self._source = source
        self._folder = folder
        self._trusted = trusted
        self.messages: list[str] = []

    def config(self, config: Config, options: Mapping[str, Any]) -> Config:
        nested = {
            "target": partial(self._table, config.target),
            "remote": partial(self._table, config.remote),
            "target_lora": partial(self._lora, config.target_lora),
            "draft_lora": partial(self._lora, config.draft_lora),
            "cache": partial(self._table, config.cache),
            "context": partial(self._table, config.context),
            "edits": partial(self._table, config.edits),
            "language": partial(self._languages, config.language),
        }
        return self._table(config, "", options, nested)

    def _table(self, old: T, prefix: str, options: Any, nested: Mapping[str, Any] | None = None) -> T:
        """``old``, a dataclass, with the good ones of ``options``."""
        nested = nested or {}
        if not isinstance(options, Mapping):
            self._say(f'"{prefix[:-1]}" must be a table, not {show(options)}; keeping what was set before')
            return old
        known = {each.name: each for each in fields(old)}  # type: ignore[arg-type]
        changes = {}
        for key, value in options.items():
            if value is None:
                continue
            if key not in known:
                self._say(f'unknown key "{prefix}{key}"; {_nearest(str(key), known)}')
            elif key in nested:
                changes[key] = nested[key](f"{key}.", value)
            else:
                rule = known[key].metadata["rule"]
                changes[key] = self._value(prefix + key, value, getattr(old, key), known[key].default, rule)
        return replace(old, **changes)  # type: ignore[type-var]

    def _lora(self, old: LoraConfig, prefix: str, options: Any) -> LoraConfig:
        if isinstance(options, str):
            options = {"path": options, "scale": 1.0}
        return self._table(old, prefix, options)

    def _languages(self, old: Mapping[str, LanguageConfig], prefix: str, options: Any) -> Mapping[str, LanguageConfig]:
        if not isinstance(options, Mapping):
            self._say(f'"language" must be a table, not {show(options)}; keeping what was set before')
            return old
        languages = dict(old)
        for identifier, settings in options.items():
            if settings is None:
                continue
            # Editors may know languages that the table does not, so an unknown one counts; a slip gets a hint.
            close = difflib.get_close_matches(str(identifier), LANGUAGES, n=1, cutoff=0.85)
            if identifier not in LANGUAGES and close:
                self._say(f'unknown language "{identifier}"; did you mean "{close[0]}"?')
            languages[identifier] = self._table(
                languages.get(identifier, LanguageConfig()), f"{prefix}{identifier}.", settings
            )
        return languages

    def _value(self, key: str, value: Any, old: Any, default: Any, rule: SettingRule) -> Any:
        if expected := rule.problem(value, default):
            kept = "the general setting" if old is None else show(old)
            self._say(f'"{key}" must be {expected}, not {show(value)}; keeping {kept}')
            return old
        value = value if value == AUTO else rule.kind(default)(value)
        if not self._trusted and (refusal := rule.refusal(value, old)):
            self._say(f'"{key}" is ignored: {refusal}')
            return old
        if rule.file and is_path(value):
            path, problem = self._path(value, rule.file)
            if problem:
                self._say(f'"{key}" = {show(value)} is ignored: {problem}; keeping {show(old)}')
                return old
            return path
        return value

    def _path(self, value: str, kind: str) -> tuple[str, str]:
        """The file that ``value`` names, and why it may not be used, or an empty string."""
        try:
            if "\0" not in value:
                return self._resolve(value, kind)
        except (OSError, RuntimeError):  # too long, no such user, a loop of links
            pass
        return value, "not a file name"

    def _resolve(self, value: str, kind: str) -> tuple[str, str]:
        home = {"model": models_folder, "adapter": adapters_folder}.get(kind, lambda: None)()
        if self._trusted:
            path = Path(value).expanduser() if value.startswith("~") else Path(value)
            if home is not None and not re.search(r"[/\\:]", value):
                path = home / value
            elif self._folder and not path.is_absolute():
                path = self._folder / path
            return str(path), ""
        # A bare name must not be looked up in the current folder, which may well be the workspace. Links count as
        # where they lie in the models folder, which is the user's own, and as where they lead in a workspace.
        folder = (self._folder or Path()).resolve() if home is None else home
        path = Path(os.path.normpath(folder / value))
        if (path.resolve() if home is None else path).is_relative_to(folder):
            return str(path), ""
        if home is None:
            return value, "it is outside the workspace"
        return value, f"a workspace may only choose {kind}s in {home}"

    def _say(self, message: str) -> None:
        self.messages.append(f"{self._source}: {message}" if self._source else message)


def _nearest(key: str, known: Mapping[str, Any]) -> str:
    close = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
    return f'did you mean "{close[0]}"?' if close else "known are " + ", ".join(known)
