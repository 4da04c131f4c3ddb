"""Secrets without a form of their own: values assigned to a password, a token or a key, in any language."""
# ruff: noqa: E501  # forms that are cut in two are read by nobody

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from pathlib import PurePosixPath

from codespec.privacy.budget import private_when_spent, spend
from codespec.privacy.key_places import holds_key, holds_row
from codespec.privacy.rules import holds_placed
from codespec.privacy.secret_names import is_code
from codespec.privacy.secret_values import (
    NameKind,
    holds_random,
    is_chosen,
    is_drawn,
    is_secret_value,
    name_kind,
)


class FileKind(Enum):
    """The kind of a file, which tells how values are written in it.

    Attributes:
        CODE: values are quoted.
        CONFIG: values end with their line.
        SHELL: values end with a blank, and commands take passwords as arguments.
        MARKUP: values are elements and attributes.
        PROSE: what follows a colon is mostly no value.
    """

    CODE = "code"
    CONFIG = "config"
    SHELL = "shell"
    MARKUP = "markup"
    PROSE = "prose"


_KINDS = {
    FileKind.CONFIG: "yaml yml properties ini cfg conf cnf config toml tf hcl reg service netrc desktop dist",
    FileKind.SHELL: "sh bash zsh fish ksh bat cmd ps1 psm1 mk makefile dockerfile containerfile env envrc",
    FileKind.MARKUP: "xml csproj plist xaml resx pom xsd wsdl",
    FileKind.PROSE: "md rst txt adoc log http rest csv html htm tex org",
    FileKind.CODE: "json",
}
_KIND_OF = {suffix: kind for kind, suffixes in _KINDS.items() for suffix in suffixes.split()}


def kind_of(path: str, text: str) -> FileKind:
    """The kind of a file, by the last part of its name that tells one."""
    name = PurePosixPath(path.replace("\\", "/")).name.lower()
    if name.endswith((".config", ".conf")) and text.lstrip()[:1] == "<":
        return FileKind.MARKUP
    for part in reversed(name.split(".")[1:] or [name]):
        if part in _KIND_OF:
            return _KIND_OF[part]
    stem = name.split(".")[0]
    if (stem in ("dockerfile", "makefile", "env", "containerfile") and not is_code(name)) or text.startswith("#!/"):
        return FileKind.CODE if re.match(r"#!.*(python|node|perl|ruby)", text) else FileKind.SHELL
    if (name[:1] in "._" and "." not in name[1:]) or name.endswith("rc"):  # of programs in a home folder
        return FileKind.SHELL if _SHELL_FILE.fullmatch(name) else FileKind.CONFIG
    return FileKind.CODE if "." in name else FileKind.PROSE


_SHELL_FILE = re.compile(
    r"\.?(?:(?:ba|z|k|c|tc|da|fi)?shrc|(?:bash_|z)?profile|(?:bash_|z)?log(?:in|out)|zshenv|bash_aliases|xinitrc|xprofile)"
)


_STEMS = [
    form
    for stem in (
        "pass",
        "pwd",
        "secret",
        "token",
        "key",
        "auth",
        "pw",
        "psk",
        "credential",
        "salt",
        "kennwort",
        "login",
    )
    for form in (stem, stem.capitalize(), stem.upper())
]
_REST = re.compile(r"[\w-]{0,48}")
_BEFORE = re.compile(r"(?:[\w$.][\w.$-]{0,47})?\Z")

_QUOTED = r"(?P<open>\\?[\"'`]{1,3}|\\&quot;|&quot;)(?P<value>(?:(?!(?P=open))[^\n\\]|\\[^\n\"'](?!(?<=\\n)\")){3,400})(?P=open)"
_WRAPPED = (  # what makes bytes, or an object, of a literal
    r"(?:(?:\[\](?:byte|rune)|&?new\s{1,4}\w{1,30}|\w{0,20}(?:Secret|Password|Secure|Key|Token|Redacted)\w{0,20}|[Bb]uffer\.from"
    r"|[Ss]tring(?:(?:::|\.)\w{1,12})?|Some|Ok|Box::new|Arc::new|bytes|bytearray|Bytes(?:::|\.)\w{1,20}|str|b64decode|atob"
    r"|unhexlify|hex\.\w{1,20}|Base64\.\w{1,20}|base64\.\w{1,20})\(\s{0,8}){0,2}"
)
_AFTER_QUOTED = re.compile(
    r"\\?[\"'\]`]{0,3}(?:\[\w{0,8}\])?"
    r"(?:\s{0,4}:\s{0,2}&?(?:'static )?[A-Za-z][\w<>?|.\[\] ]{0,30}(?==|\s=))?"
    r"(?:(?:\s{0,20}(?:=>|:=|<-|\+=|[:=])|\)?\s{1,4}(?:\|\||\?\?|or\b))\s{0,20}\(?\s{0,20}"
    + _WRAPPED
    + r"|(?<![Pp]ass)[ \t]{1,8}(?=[\"'])(?<=[\w] |\w\t|  ))"
    r"(?:[bBrRuUfFLN@$]{0,2})" + _QUOTED
)
_AFTER_SIGN = re.compile(r"[*_]{0,2}\\?[\"'\]]{0,2}\s{0,4}[:=]\s{0,4}[*_]{0,2}[ ]?" + _QUOTED)
_SETTER = re.compile(
    r"(?:set|with|add|put|define|env|getenv|default|Property|config|Field|login)\w{0,40}\s{0,2}[(\[]\s{0,2}(?:\w{1,60}\s{0,2},\s{0,2})?\\?[\"']?\w{0,99}\Z|set\w{0,99}\Z",
    re.IGNORECASE,
)
_AFTER_SETTER = re.compile(r"\\?[\"']?\s{0,4}[,(]\s{0,4}[bBrRuUfFLN@$]{0,2}" + _QUOTED)
_AFTER_LINE = re.compile(r"[\"']?[ \t]{0,40}(?:=>|:=|[:=])[ \t]{0,40}(?P<value>[^\s\"'\[{|>#;,][^\n]{2,1000})")
_AFTER_BLANK = re.compile(r"[ \t]{1,8}(?P<value>[^\s\"'=:;{(][^\s;]{2,200})[ \t]{0,99}(?:;[ \t]{0,99})?$", re.MULTILINE)
_AFTER_WORD = re.compile(r"[\"']?(?:=|:[ \t]?)(?P<value>[^\s\"'=;,|&<>()\\`][^\s\"';|&<>()`]{2,400})")
_AFTER_BLOCK = re.compile(  # the value stands in the next line, deeper
    r"[\"']?[ \t]{0,8}[:=][ \t]{0,8}(?:[|>][+-]?\d?[ \t]{0,8})?\r?\n(?:[ \t]{1,40})(?![\w.-]{1,60}[\"']?:(?:\s|\Z))[\"']?"
    r"(?P<value>[^\s\"'#\[{-][^\n\"']{2,1000})"
)
_AFTER_EXACT = re.compile(r"=(?=(?P<value>[^\s\"'=;,|&<>()\\`*][^\s\"';|&<>()`,*]{2,400}))(?P=value)(?=[\s&\"';]|\Z)")
_AFTER_ARGUMENT = re.compile(r"[ =][\"']?(?P<value>[^\s\"'=;|&<>()\-][^\s\"';|&<>()]{2,200})")
_AFTER_CONNECTION = re.compile(
    r"[ ]?=[ ]?(?P<value>[^\s;&\"'<>{}=$%\\+][^;&\"'<>{}\n]{2,100})(?=[;&\"'<]|\\\"|$)", re.MULTILINE
)
_CONNECTION = re.compile(r"[;&?\"'][^;&?\"'=\n]{0,30}\Z")
_AFTER_TAG = re.compile(  # (?=(...))\1 takes all that it can, and gives nothing back
    r"(?=(?P<rest>[\w.-]{0,200}))(?P=rest)[\"']?[^<>\n]{0,80}>(?:<!\[CDATA\[)?\s{0,20}"
    r"(?=(?P<value>[^<>\s](?:(?!\]\]>)[^<>\n]){2,400}(?<!\s)))(?P=value)\s{0,20}(?:\]\]>)?</"
)
_AFTER_ATTRIBUTE = re.compile(
    r"[\"'][^<>\n]{0,80}?\bvalue\s{0,4}=\s{0,4}[\"'](?P<value>[^\"'<>\n]{3,400})[\"']", re.IGNORECASE
)
_AFTER_NAME = re.compile(
    r"[\"']?(?:\s{1,44}|\s{0,4},\s{1,40})[\"']?(?:default|value|content)[\"']?\s{0,4}[:=]\s{0,4}[\"']?(?P<value>[^\s\"'{}][^\"'\n{}]{2,400})"
)
_AFTER_VARIABLE = re.compile(r"[\"']?\s{0,4}\{[^{}]{0,400}?\bdefault\s{0,20}=\s{0,4}\"(?P<value>[^\"\n]{3,400})\"")

_MANIFEST_KIND = re.compile(r"^kind:[ \t]*(\w*)", re.MULTILINE)
_ENTRY = re.compile(r"^[ \t]{1,8}[\w.-]+:[ \t]*[\"']?(?P<value>[^\s\"'|>{][^\n\"']{3,4000})", re.MULTILINE)


@private_when_spent
def holds_value(path: str, text: str) -> bool:
    """Whether a text seems to hold a password, a secret token or a key; ``path`` tells its language."""
    kind = kind_of(path, text)
    return (
        any(is_secret_value(value, name) for name, value in _assigned(text, kind))
        or holds_placed(path, text)
        or holds_row(text)
        or holds_manifest(path, text)
        or holds_key(text)
        or (kind is not FileKind.PROSE and holds_random(text))
    )


def _assigned(text: str, kind: FileKind) -> Iterator[tuple[NameKind, str]]:
    """What is assigned to names that tell a secret."""
    seen = set()
    for stem in _STEMS:
        at = text.find(stem)
        while at >= 0:
            spend()
            rest = _REST.match(text, at)
            end = rest.end() if rest else at
            if end not in seen:
                seen.add(end)
                before = _BEFORE.search(text, max(0, at - 48), at)
                start = before.start() if before else at
                name = name_kind(text[start:end])
                if name is not None and not (
                    kind is FileKind.PROSE and (name is NameKind.KEY or text[at:end] == "pass")
                ):
                    for value in _values(text, start, end, kind):
                        yield name, value
            at = text.find(stem, at + len(stem))


def _values(text: str, start: int, end: int, kind: FileKind) -> Iterator[str]:
    """What may be the value of the name at ``text[start:end]``."""
    for pattern in _PATTERNS[kind]:
        found = pattern.match(text, end)
        if found:
            yield found["value"]
    if _SETTER.search(text, max(0, start - 60), end):
        found = _AFTER_SETTER.match(text, end)
        if found:
            yield found["value"]
    if _CONNECTION.search(text, max(0, start - 60), start):
        found = _AFTER_CONNECTION.match(text, end)
        if found:
            yield found["value"]
    if kind is not FileKind.CODE and kind is not FileKind.MARKUP:
        near = max(0, start - 60)
        lead = text[max(near, text.rfind("\n", near, start) + 1) : start]
        if kind in (FileKind.CONFIG, FileKind.PROSE) or not lead.strip():
            found = _AFTER_LINE.match(text, end)
            if found and (value := _ended(found["value"], kind)):
                yield value
        if lead.endswith("--") and not lead.endswith("<!--"):
            found = _AFTER_ARGUMENT.match(text, end)
            if found:
                yield found["value"]
        if (kind is FileKind.CONFIG and not lead.strip()) or _COMMAND.match(lead):
            found = _AFTER_BLANK.match(text, end)
            if found:
                yield found["value"]


_COMMAND = re.compile(r"\s{0,20}(?:ENV|ARG|set(?:env| -\w+)?|export|-x)\s{1,8}\Z")
_PROSE_VALUE = re.compile(r"(?=[^\n]*\d)(?=[^\n]*[A-Za-z])\S{6,}")


def _ended(line: str, kind: FileKind) -> str:
    """The value that the rest of a line is, without a comment after it; empty for none."""
    value = re.split(r"\s[#;]|\s//", line.strip(), maxsplit=1)[0].rstrip(" \t\r,;")
    if "{" not in value:
        value = value.rstrip("}] ")
    if kind is FileKind.PROSE:
        value = value.strip("`*\"'")
        return value if _PROSE_VALUE.fullmatch(value) else ""
    if kind is FileKind.SHELL:
        return value.split()[0].rstrip(",") if value else ""
    return value


@private_when_spent
def holds_manifest(path: str, text: str) -> bool:
    """Whether a text has a Secret of Kubernetes with data, which may stand far from the line that says so, or something
    that may become one: its kind may be typed last."""
    if "ata:" not in text or kind_of(path, text) is not FileKind.CONFIG:
        return False
    for document in text.split("\n---"):
        if _may_be_secret(document):
            for block in _DATA.finditer(document):
                for each in _ENTRY.finditer(block[0]):
                    spend()
                    if is_drawn(each["value"]) or is_chosen(each["value"]):
                        return True
    return False


def _may_be_secret(document: str) -> bool:
    kinds = _MANIFEST_KIND.findall(document)
    return any("Secret".startswith(kind) for kind in kinds) or (not kinds and "apiVersion:" in document)


_DATA = re.compile(r"^(?:string)?[dD]ata:[ \t]*\n(?:[ \t]+[^\n]*\n?|\n)+", re.MULTILINE)


_PATTERNS = {
    FileKind.CODE: (_AFTER_QUOTED, _AFTER_NAME),
    FileKind.CONFIG: (_AFTER_QUOTED, _AFTER_NAME, _AFTER_VARIABLE, _AFTER_WORD, _AFTER_BLOCK),
    FileKind.SHELL: (_AFTER_QUOTED, _AFTER_WORD),
    FileKind.MARKUP: (_AFTER_QUOTED, _AFTER_TAG, _AFTER_ATTRIBUTE),
    FileKind.PROSE: (_AFTER_SIGN, _AFTER_EXACT),
}
