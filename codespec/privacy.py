"""What must stay where it is: files that hold secrets, by their names and by their texts; see ``docs/privacy.md``."""

from __future__ import annotations

import math
import re
from collections import Counter
from pathlib import PurePosixPath

SECRET = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----|\bAKIA[0-9A-Z]{16}\b|\bghp_[A-Za-z0-9]{36}\b|\bxox[bp]-[0-9A-Za-z-]{20,}"
)
"""What no text that models are trained on may hold: fixed, so that the same texts are chosen again."""

_MARKS = ("PRIVATE KEY-----", "AKIA", "ghp_", "xox")
"""One of which is in all that ``SECRET`` finds; looking for them first is twenty times as fast."""

_NAME = re.compile(
    r"\.env.*|.*\.env|\.envrc|.*\.(pem|key|p12|pfx|pkcs12|jks|bks|keystore|kdbx?|ppk|asc|gpg|pgp|keychain|ovpn|tfvars"
    r"|tfstate(\.backup)?|agekey|age|jceks|mobileprovision)"
    r"|id_(rsa|dsa|ecdsa|ed25519)(_sk)?(\..*)?"
    r"|\.?credentials.*|secrets?(\..*)?|(secrets|credentials)[-_.].*\.(json|ya?ml|toml|ini|env)"
    r"|(client_secret|service[-_]account).*\.json|application_default_credentials\.json"
    r"|\.npmrc|\.yarnrc|\.pypirc|\.netrc|_netrc|\.htpasswd|htpasswd|\.pgpass|pgpass\.conf|\.my\.cnf|\.mylogin\.cnf"
    r"|\.git-credentials|\.dockercfg|\.docker/config\.json|\.boto|\.s3cfg|\.vault-token|\.terraformrc|terraform\.rc|\.esmtprc"
    r"|kubeconfig|.*\.kubeconfig|master\.key|shadow|\.(bash|zsh|sh|psql|mysql|python)_history",
    re.IGNORECASE,
)
_FOLDER = re.compile(r"(.*/)?(\.ssh|\.gnupg|\.aws|\.azure|\.kube|\.password-store)/.*", re.IGNORECASE)
_SOURCE = re.compile(
    r".*\.(py|pyi|js|mjs|cjs|ts|mts|cts|jsx|tsx|go|c|h|cc|cpp|cxx|hpp|rs|java|kt|cs|swift|scala)",
    re.IGNORECASE,
)
_SAMPLE = re.compile(r"\.env[-_.](example|sample|template|dist|defaults?)", re.IGNORECASE)

_FORMS = {
    # What every secret of a form holds, and the form; what is drawn at random in it is its last group, if it has one.
    "PRIVATE KEY": (
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:\\[nr]|[\s\"'`+]){1,100}(?:[\w-]{1,40}: [^\n]{0,200}\n\s{0,8}){0,5}[A-Za-z0-9+/=]{16,80}"
    ),
    "PuTTY-User-Key-File-": r"PuTTY-User-Key-File-\d: \S+",
    "AGE-SECRET-KEY-1": r"\bAGE-SECRET-KEY-1([0-9A-Z]{58})\b",
    "AKIA": r"\bAKIA([A-Z2-7]{16})\b",
    "ASIA": r"\bASIA([A-Z2-7]{16})\b",
    "ghp_": r"\bghp_([A-Za-z0-9]{36})\b",
    "gho_": r"\bgho_([A-Za-z0-9]{36})\b",
    "ghu_": r"\bghu_([A-Za-z0-9]{36})\b",
    "ghs_": r"\bghs_([A-Za-z0-9]{36})\b",
    "ghr_": r"\bghr_([A-Za-z0-9]{36,76})\b",
    "github_pat_": r"\bgithub_pat_([A-Za-z0-9_]{60,})\b",
    "glpat-": r"\bglpat-([\w-]{20,})",
    "gldt-": r"\bgldt-([\w-]{20,})",
    "glrt-": r"\bglrt-([\w-]{20,})",
    "xox": r"\bxox[abeoprs]-(?:\d-)?([0-9A-Za-z-]{20,})",
    "xapp-": r"\bxapp-\d-[A-Z0-9]+-\d+-([a-z0-9]{20,})",
    "hooks.slack.com": r"hooks\.slack\.com/(?:services|workflows|triggers)/T\w{6,}/\w{6,}/(\w{16,})",
    "_live_": r"\b(?:sk|rk|pk_secret)_live_([0-9a-zA-Z]{20,})",
    "whsec_": r"\bwhsec_([0-9A-Za-z+/]{24,})",
    "AIza": r"\bAIza([\w-]{35})(?![\w-])",
    "GOCSPX-": r"\bGOCSPX-([\w-]{28})",
    "ya29.": r"\bya29\.([\w-]{40,})",
    "npm_": r"\bnpm_([A-Za-z0-9]{36})\b",
    "pypi-": r"\bpypi-(?:AgEIcHlwaS5vcmc|AgENdGVzdC5weXBpLm9yZw)([\w-]{50,})",
    "rubygems_": r"\brubygems_([0-9a-f]{48})\b",
    "dckr_pat_": r"\bdckr_pat_([\w-]{27})",
    "hf_": r"\bhf_([A-Za-z]{34})\b",
    "T3BlbkFJ": r"(?<![\w-])sk-([\w-]{20,120}T3BlbkFJ[\w-]{20,120})",
    "sk-proj-": r"\bsk-proj-([\w-]{40,})",
    "sk-ant-": r"\bsk-ant-(?:api|admin|oat)\d\d-([\w-]{40,})",
    "sk-or-v1-": r"\bsk-or-v1-([0-9a-f]{64})\b",
    "gsk_": r"\bgsk_([A-Za-z0-9]{52})\b",
    "SG.": r"\bSG\.[\w-]{22}\.([\w-]{43})\b",
    "shpat_": r"\bshpat_([0-9a-fA-F]{32})\b",
    "dop_v1_": r"\bdop_v1_([0-9a-f]{64})\b",
    "hvs.": r"\bhvs\.([\w-]{80,})",
    "dapi": r"\bdapi([0-9a-f]{32})\b",
    "AccountKey=": r"\bAccountKey=([A-Za-z0-9+/]{86}==)",
    "SharedAccessKey=": r"\bSharedAccessKey=([A-Za-z0-9+/]{43}=)",
    "8Q~": r"\b([A-Za-z0-9~._-]{3}8Q~[A-Za-z0-9~._-]{31,34})",
    "eyJ": r"(?<![\w-])eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.([\w-]{20,})",
    "://": r"\b[a-z][a-z0-9+.-]{2,20}://[^\s:/@\"'`<>{}$%]{1,64}:((?:[^\s:/@\"'`<>{}$%*]|%[0-9A-Fa-f]{2}){6,256})@[\w.-]+",
}
_COMPILED = {part: re.compile(form) for part, form in _FORMS.items()}
_PLACEHOLDER = re.compile(
    r"example|sample|dummy|fake|placeholder|redacted|changeme|your[-_]|xxxx|\.\.\.|abcdef|123456"
    r"|^(?:my|the|some|test|user)?[-_]?(?:pass|passwd|passwo?r?d|secret|token)$",
    re.IGNORECASE,
)

_ASSIGNED = re.compile(
    r"(?:password|passwd|secret|token|api_?key|private_?key|access_?key)[\w-]{0,40}[\"']?\s*[:=]\s*"
    r"[\"']([^\"'\s]{12,})[\"']",
    re.IGNORECASE,
)
_LONG = re.compile(r"[A-Za-z0-9+/_-]{32,}")

RANDOM_BITS = 4.3
"""Entropy of one character from which on a long word with digits and both cases counts as drawn at random.

A hash in hexadecimal digits has at most 4, a path or a long name about 3.8; 40 characters of base64 have about 4.8.
"""
RANDOM_RUN = 12
"""Characters that such a word has at least between two dashes: names of models, packages and branches have fewer."""
_ASSIGNED_BITS = 2.9


def is_secret(path: str, text: str) -> bool:
    """Whether a file may hold secrets, as far as its name (or URI) and its text tell: good enough a reason to keep its
    text off the disk and out of what is shown for another file."""
    return has_secret_name(path) or holds_key(text) or holds_token(text) or _holds_random(text)


def has_secret_name(path: str) -> bool:
    """Whether files of this name (or URI) hold secrets: keys, credentials, environments, the like."""
    path = path.replace("\\", "/")
    name = PurePosixPath(path).name
    if _SOURCE.fullmatch(name) or _SAMPLE.fullmatch(name):
        return False
    return bool(_NAME.fullmatch(name) or _FOLDER.fullmatch(path))


def holds_token(text: str) -> bool:
    """Whether a text holds a private key, an access token of a known form, or a URL with a password, and not just an
    example of one. Takes a few milliseconds for 100 KB."""
    return any(part in text and any(map(_is_drawn, form.finditer(text))) for part, form in _COMPILED.items())


def _is_drawn(match: re.Match[str]) -> bool:
    drawn = match[match.lastindex or 0]
    return not _PLACEHOLDER.search(drawn) and len(set(drawn)) > min(5, len(drawn) // 2)


def _holds_random(text: str) -> bool:
    if any(_entropy(match[1]) > _ASSIGNED_BITS and _has_digit(match[1]) for match in _ASSIGNED.finditer(text)):
        return True
    words = (match[0] for match in _LONG.finditer(text))
    return any(
        _has_digit(word)
        and word.lower() != word != word.upper()
        and _entropy(word) > RANDOM_BITS
        and max(map(len, re.split("[-_]", word))) >= RANDOM_RUN
        for word in words
    )


def _has_digit(text: str) -> bool:
    return any(c.isdigit() for c in text)


def _entropy(text: str) -> float:
    """Bits for each character."""
    counts = Counter(text).values()
    return math.log2(len(text)) - sum(n * math.log2(n) for n in counts) / len(text)


def holds_key(text: str) -> bool:
    """Whether ``SECRET`` is in it."""
    return any(mark in text for mark in _MARKS) and bool(SECRET.search(text))
