"""The settings of a session: the configuration files with the editor's options over them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from codespec import config
from codespec.config import Config

SECTION = "codespec"
"""What ``workspace/configuration`` is asked for."""


class Settings:
    """Keeps the layers apart, so that a change of one does not lose the others."""

    def __init__(self) -> None:
        self.config = Config()
        self.workspace: Path | None = None
        self._initial: Any = None
        self._pushed: Any = None

    def start(self, workspace: Path | None, options: Any) -> list[str]:
        """Read the files and apply ``initializationOptions``; returns messages for the user."""
        self.workspace = workspace
        self._initial = options
        return self.read()

    def change(self, options: Any) -> list[str]:
        """Apply the settings of the editor, which take the place of those it sent before; returns messages."""
        self._pushed = options
        return self.read()

    def read(self) -> list[str]:
        """Read everything again."""
        self.config, messages = config.load(self.workspace)
        for source, options in (("initializationOptions", self._initial), ("settings", self._pushed)):
            if options is None:
                continue
            options = _unwrap(options)
            if not isinstance(options, Mapping):
                messages.append(f"{source}: must be an object; ignored")
                continue
            self.config, more = self.config.apply(options, source, self.workspace)
            messages += more
        return messages


def needs_reload(old: Config, new: Config) -> bool:
    """Whether a change concerns the models, and not only what the server itself decides."""
    return _of_the_models(old) != _of_the_models(new)


def _of_the_models(settings: Config) -> Config:
    languages = {name: replace(each, enabled=None) for name, each in settings.language.items()}
    default = config.LanguageConfig()
    return replace(
        settings,
        enabled=True,
        prefill=True,
        prefetch=True,
        log_level="warning",
        context=config.ContextConfig(),
        language={name: each for name, each in languages.items() if each != default},
    )


def _unwrap(options: Any) -> Any:
    """The inner object of ``{"codespec": {...}}``: some editors send the section's name, some do not."""
    if isinstance(options, Mapping) and set(options) == {SECTION}:
        return options[SECTION] or {}
    return options
