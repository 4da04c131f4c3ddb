"""``python -m tests.settings_texts`` writes what docs/settings.md and VS Code's package.json say of the settings.

Descriptions come from the docstrings of ``Config`` and its sections, all else from their fields. In package.json the
groups, their order and ``scope`` are written by hand: a setting is offered from ``"codespec.KEY": {}`` in a group on.
"""

from __future__ import annotations

import inspect
import json
import re
import textwrap
from collections.abc import Callable, Collection
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

from codespec.config import Config
from codespec.config_rules import SettingRule, Workspace
from codespec.config_sections import LanguageConfig, LoraConfig

ROOT = Path(__file__).parents[1]
SHAPED_BY_VS_CODE = {"enabled", "language"}  # tables by language there
KEPT = ("type", "default", "scope", "items")
TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", tuple: "array"}


@dataclass(frozen=True)
class Setting:
    """One key, or a section of them, which has neither default nor rule; an adapter has no rule."""

    text: str
    default: Any
    rule: SettingRule | None


def settings_of(section: Any, prefix: str = "") -> dict[str, Setting]:
    """By key; a section comes before its own."""
    entries = (inspect.getdoc(type(section)) or "").partition("Attributes:\n")[2]
    written = re.findall(r"^ {4}(\w+): (\S[^\n]*(?:\n {8}[^\n]+)*)$", entries, re.MULTILINE)
    texts = {name: text[0].upper() + re.sub(r"\s+", " ", text[1:]) for name, text in written}
    assert set(texts) == {each.name for each in fields(section)}, f"{type(section).__name__} describes other fields"
    found = {}
    for each in fields(section):
        key, value, text = prefix + each.name, getattr(section, each.name), texts[each.name]
        if isinstance(value, LoraConfig):
            found[key] = Setting(text, value.path, None)
        elif is_dataclass(value):
            found |= {key: Setting(text, None, None)} | settings_of(value, f"{key}.")
        elif "rule" in each.metadata:
            found[key] = Setting(text, value, each.metadata["rule"])
    return found


def rules_of(section: Any, prefix: str = "") -> dict[str, SettingRule]:
    """By key, those within adapters too."""
    found = {}
    for each in fields(section):
        value = getattr(section, each.name)
        if "rule" in each.metadata:
            found[prefix + each.name] = each.metadata["rule"]
        elif is_dataclass(value):
            found |= rules_of(value, f"{prefix}{each.name}.")
    return found


SETTINGS = settings_of(Config())
RULES = rules_of(Config()) | rules_of(LanguageConfig(), "language.*.")


def with_links(key: str, keys: Collection[str], link: str, literal: str) -> str:
    """The text of ``key``: of what it quotes, ``keys`` have the form ``link``, values and all else ``literal``."""
    section, setting = key.rpartition(".")[0], SETTINGS[key]

    def form(quoted: re.Match[str]) -> str:
        name = quoted[1]
        known = [each for each in (f"{section}.{name}", name) if each in keys]
        value = not known or (setting.rule and name in setting.rule.choices)
        return literal.format(name) if value else link.format(known[0])

    return re.sub(r"``([^`]+)``", form, setting.text)


def toml() -> str:
    """All settings and their defaults, tables last."""
    lines = []
    for key, setting in sorted(SETTINGS.items(), key=lambda item: item[1].default is None or "." in item[0]):
        text, rule = with_links(key, SETTINGS, "{}", '"{}"'), setting.rule
        if rule and any(f'"{each}"' not in text for each in rule.choices if each):
            text += " One of " + ", ".join(f'"{each}"' for each in rule.choices if each) + "."
        if rule and rule.kind(setting.default) in (int, float) and rule.maximum < SettingRule.maximum:
            text += f" From {rule.minimum:g} to {rule.maximum:,}."
        if setting.default is None:
            lines += ["", *commented(f"[{key}]", text)]
        else:
            lines += commented(f"{key.rpartition('.')[2]} = {json.dumps(setting.default)}", text)
    return "\n".join(lines) + "\n"


def commented(line: str, text: str) -> list[str]:
    first, *more = textwrap.wrap(text, 92)
    return [f"{line:25} # {first}", *(f"{'':25} # {each}" for each in more)]


def documentation(old: str) -> str:
    """docs/settings.md with its TOML (but for single languages) and its table anew."""
    before, fence, rest = old.partition("```toml\n")
    _, languages, rest = rest.partition("\n[language.")
    between, head, rest = rest.partition("| a workspace | keys |\n|---|---|\n")
    _, blank, after = rest.partition("\n\n")
    rows = [
        f"| {each.value} | {', '.join(f'`{key}`' for key, rule in RULES.items() if rule.workspace is each)} |"
        for each in Workspace
    ]
    return "".join([before, fence, toml(), languages, between, head, "\n".join(rows), blank, after])


def of_vs_code(key: str, old: dict[str, Any], keys: Collection[str]) -> dict[str, Any]:
    """The property of package.json that a key is, in the place of ``old``."""
    setting = SETTINGS[key]
    rule, text = setting.rule, setting.text
    new: dict[str, Any] = {}
    if rule:
        kind = rule.kind(setting.default)
        new["type"] = [TYPES[kind], "string"] if rule.automatic else TYPES[kind]
        if rule.choices:
            said = [re.search(rf"``{each}`` \(([^)]+)\)", text) for each in rule.choices]
            new["enum"] = rule.choices
            new |= {"enumDescriptions": [each[1] if each else "" for each in said]} if any(said) else {}
        whole = kind is float and setting.default == int(setting.default)
        new["default"] = int(setting.default) if whole else setting.default
        if kind in (int, float):
            new |= {"minimum": rule.minimum, "maximum": rule.maximum}
        new |= {"pattern": "^auto$"} if rule.automatic else {}
    kept = {name: old[name] for name in KEPT if name in old and name not in new}
    return new | kept | {"markdownDescription": with_links(key, keys, "`#codespec.{}#`", "`{}`")}


def package(old: str) -> str:
    """package.json with the properties anew that mirror settings, and which of them need a trusted workspace."""
    made = json.loads(old)
    groups = [group["properties"] for group in made["contributes"]["configuration"]]
    properties = {name: each for group in groups for name, each in group.items()}
    offered = {key: f"codespec.{key}" for key in SETTINGS if f"codespec.{key}" in properties}
    for group in groups:
        for key, name in offered.items():
            if name in group and key not in SHAPED_BY_VS_CODE:
                group[name] = of_vs_code(key, group[name], offered)
    made["capabilities"]["untrustedWorkspaces"]["restrictedConfigurations"] = [
        name
        for key, name in offered.items()
        if key in RULES and RULES[key].workspace is not Workspace.ANY and properties[name].get("scope") != "machine"
    ]
    return json.dumps(made, indent=2, ensure_ascii=False) + "\n"


FILES: dict[Path, Callable[[str], str]] = {
    ROOT / "docs/settings.md": documentation,
    ROOT / "editors/vscode/package.json": package,
}

if __name__ == "__main__":
    for path, write in FILES.items():
        path.write_text(write(path.read_text("utf-8")), "utf-8", newline="\n")
