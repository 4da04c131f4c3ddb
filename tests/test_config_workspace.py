"""What the settings of a workspace may do: a repository can make things stricter, never looser."""

from __future__ import annotations

import os
from typing import Any

import pytest

from codespec.config import Config
from codespec.config_rules import Workspace
from codespec.config_sections import LanguageConfig
from tests.settings_texts import rules_of

RULES = rules_of(Config()) | rules_of(LanguageConfig(), "language.python.")
VALUES = [False, True, 0, 1, 4, 64, 100, 128, 2000, 4096, 8192, 8193, 1 << 16, "auto", "none", "debug", "error", "f32"]
VALUES += ["f16", "bf16", "q8_0", "q4_0", "on", "off", "psm", "window", "whole", 0.5, (), ("gpu:50052",)]


def apply(config: Config, key: str, value: Any, trusted: bool) -> tuple[Any, list[str]]:
    *path, name = key.split(".")
    options: Any = {name: value}
    for part in reversed(path):
        options = {part: options}
    config, messages = config.apply(options, "w", trusted=trusted)
    found: Any = config
    for part in path:
        found = found[part] if isinstance(found, dict) else getattr(found, part)
    return (config, getattr(found, name)), messages


def good_values(key: str) -> list[Any]:
    return [value for value in VALUES if not apply(Config(), key, value, trusted=True)[1]]


# Written down here once more, so that a change of the table is noticed.
LOOSER = {
    "learn": (False, True), "statistics": (False, True), "enabled": (False, True),
    "cache.saved_mib": (64, 100), "cache.memory_mib": (64, 100), "context.enabled": (False, True),
    "context.imports": (False, True), "context.ring_chunks": (4, 64), "context.chunk_lines": (4, 64),
    "log_level": ("error", "debug"), "max_tokens": (64, 128), "time_budget_ms": (100, 0), "shared": (True, False),
    "draft_memory_mib": (64, 100), "prefill": (False, True), "generate_ahead": (False, True),
    "prefetch": (False, True), "offer_models": (False, True), "status": (False, True),
    "language.python.enabled": (False, True), "target.path": ("", "big"),
    "target.threads": ("auto", (os.cpu_count() or 1) + 1), "target.context": (0, 8193),
    "target.kv_type": ("auto", "f32"), "target.gpu_layers": (1, 0), "target.flash_attention": ("off", "on"),
    "remote.kind": ("", "vllm"), "remote.url": ("", "http://a"), "remote.model": ("", "a"),
    "remote.vocabulary": ("", "a"), "remote.mode": ("auto", "score"), "remote.context": (1, 0),
    "remote.key_env": ("A", "HOME"),
    "remote.certificate": ("", "a"), "remote.silence_s": (1.0, 64.0), "remote.fallback": ("none", "local"),
    "target.rpc": ((), ("gpu:50052",)), "edits.mode": ("manual", "automatic"), "edits.model": ("", "big"),
    "edits.budget_ms": (64, 100), "automatic": (False, True), "debounce_ms": (64, 0), "quiet": ("always", "never"),
}  # fmt: skip
HARMLESS = {
    "draft", "grammar", "language.python.draft", "language.python.grammar", "gate", "temperature", "seed",
    "draft_length", "target.fim", "target_lora.path", "target_lora.scale", "draft_lora.path", "draft_lora.scale",
}  # fmt: skip


def test_every_key_is_decided_upon():
    assert set(RULES) == set(LOOSER) | HARMLESS
    assert {key for key, rule in RULES.items() if rule.workspace is Workspace.ANY} == HARMLESS


@pytest.mark.parametrize("key", LOOSER)
def test_a_workspace_cannot_loosen(key):
    users, looser = LOOSER[key]
    (config, _), messages = apply(Config(), key, users, trusted=True)
    assert messages == []
    (_, value), messages = apply(config, key, looser, trusted=False)
    assert value == users
    assert len(messages) == 1
    assert messages[0].startswith(f'w: "{key}" is ignored: a workspace may ')
    (_, value), messages = apply(config, key, looser, trusted=True)
    assert (value, messages) == (looser, [])


@pytest.mark.parametrize("key", RULES)
def test_what_counts_is_never_more_than_the_users(key):
    rule = RULES[key]
    for users in good_values(key):
        (config, _), _ = apply(Config(), key, users, trusted=True)
        for wanted in good_values(key):
            (_, value), messages = apply(config, key, wanted, trusted=False)
            assert value in (users, wanted)
            assert bool(messages) == (value != wanted)
            if value == users or rule.workspace is Workspace.ANY:
                continue
            assert rule.workspace is not Workspace.NEVER
            if rule.workspace is Workspace.OFF:
                assert value is False or users is None
            elif isinstance(value, int) and isinstance(users, int) and value and users:
                assert value < users


def test_messages_about_a_workspace_are_few():
    many = {f"unknown{number}": 1 for number in range(3000)}
    config, messages = Config().apply({**many, "learn": False}, "w", trusted=False)
    assert not config.learn
    assert len(messages) == 6
    assert messages[-1] == "and 2995 more of this file do not count"
