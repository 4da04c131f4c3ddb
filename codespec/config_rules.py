"""What values each key of the settings takes, and what of that a workspace may decide."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeVar

AUTO = "auto"
GRAMMAR_SUFFIXES = (".gbnf", ".lark", ".json")
MODEL_SUFFIXES = (".gguf",)

T = TypeVar("T")


class Workspace(Enum):
    """What the file of a workspace may do with a key: a repository can make things stricter, never looser."""

    ANY = "sets it"
    OFF = "switches it off"
    LOWER = "lowers it"
    NEVER = "nothing"


@dataclass(frozen=True)
class SettingRule:
    """What values a key takes, besides having the type of its default.

    Attributes:
        workspace: what a workspace may do.
        minimum, maximum: of numbers, both included.
        choices: of text; empty is any. Where a workspace may lower it, what takes most comes first.
        automatic: whether a number may also be ``auto``, which is then the default.
        stands_for: what ``auto`` and 0 stand for where a workspace may lower the key; None: 0 is no more than 0.
        file: ``model``, ``adapter`` or ``grammar`` where the text may be a path.
        texts: of a list of texts, which its default, a tuple, makes it: what is wrong with one of them, or an empty
            text; None: nothing ever is.
    """

    workspace: Workspace
    minimum: float = 0
    maximum: float = 2**31 - 1
    choices: tuple[str, ...] = ()
    automatic: bool = False
    stands_for: float | str | None = None
    file: str = ""
    texts: Callable[[str], str] | None = None

    def problem(self, value: Any, default: Any) -> str:
        """What a value should be instead; empty where it is good."""
        if self.automatic and value == AUTO:
            return ""
        kind = self.kind(default)
        if kind is tuple:
            return self._problem_of_list(value)
        good = isinstance(value, (int, float) if kind is float else kind) and (
            kind is bool or not isinstance(value, bool)
        )
        # `not (a <= v <= b)` also refuses nan.
        if good and kind in (int, float):
            good = self.minimum <= value <= self.maximum
        if good and self.choices:
            good = value in self.choices
        return "" if good else self._expected(kind)

    def _problem_of_list(self, value: Any) -> str:
        if not isinstance(value, (list, tuple)) or not all(isinstance(each, str) for each in value):
            return "a list of texts"
        return next(filter(None, map(self.texts, value)), "") if self.texts is not None else ""

    def kind(self, default: Any) -> type:
        """The type of a value."""
        return int if self.automatic else bool if default is None else type(default)

    def refusal(self, value: Any, old: Any) -> str:
        """Why a workspace may not put a good value in the place of what holds; empty where it may."""
        if value == old or self.workspace is Workspace.ANY:
            return ""
        if self.workspace is Workspace.OFF:
            return "a workspace may not switch it on" if value is True and old is False else ""
        if self.workspace is Workspace.LOWER:
            return f"a workspace may only lower it from {show(old)}" if self._takes(value) > self._takes(old) else ""
        return "a workspace may not set it"

    def _takes(self, value: Any) -> float:
        if value in (0, AUTO) and self.stands_for is not None:
            value = self.stands_for
        return -self.choices.index(value) if self.choices else float(value)

    def _expected(self, kind: type) -> str:
        if self.choices:
            return "one of " + ", ".join(map(show, self.choices))
        if kind is bool:
            return "true or false"
        if kind is str:
            return "text"
        other = f" or {show(AUTO)}" if self.automatic else ""
        return f"a {'whole ' if kind is int else ''}number from {self.minimum:g} to {self.maximum:.10g}{other}"


def option(default: T, workspace: Workspace, **rule: Any) -> T:
    """A field of a dataclass of settings; ``rule`` as ``SettingRule`` takes it."""
    value: T = field(default=default, metadata={"rule": SettingRule(workspace, **rule)})
    return value


def cores() -> int:
    """Logical cores of the machine; 1 where the system does not tell."""
    return os.cpu_count() or 1


def host_and_port(text: str) -> str:
    """What an item of ``target.rpc`` must be instead; empty where it is good."""
    host, colon, port = text.rpartition(":")
    if not colon:
        wrong = "has no port"
    elif ":" in host:
        wrong = "is an IPv6 address or a URL, and llama.cpp takes names and IPv4 addresses"
    elif not re.fullmatch(r"[A-Za-z0-9_.-]+", host):
        wrong = "names no host"
    elif not re.fullmatch(r"[0-9]{1,5}", port) or not 0 < int(port) < 1 << 16:
        wrong = "has no port from 1 to 65535"
    else:
        return ""
    return f'a list of texts such as "192.168.1.5:50052" ({show(text)} {wrong})'


def is_path(text: str) -> bool:
    """Whether the value of ``draft``, ``grammar`` or ``target.path`` means a file rather than a name."""
    return bool(re.search(r"[/\\:]", text)) or text.lower().endswith(MODEL_SUFFIXES + GRAMMAR_SUFFIXES)


def in_short(messages: Sequence[str], most: int) -> list[str]:
    """The first messages, and how many more there are."""
    more = len(messages) - most
    return [*messages[:most], f"and {more} more of this file do not count"] if more > 1 else list(messages)


def show(value: Any) -> str:
    """A value as a user would write it, not too long."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except TypeError:
        text = str(value)  # a date in TOML
    except (ValueError, RecursionError):
        text = "a value too long to show"
    return text if len(text) <= 60 else text[:57] + "..."
