"""What must not be kept on the disk: files that hold secrets, by their names and by their texts."""

from __future__ import annotations

import math
import re
from collections import Counter
from pathlib import PurePosixPath

SECRET = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----|\bAKIA[0-9A-Z]{16}\b|\bghp_[A-Za-z0-9]{36}\b|\bxox[bp]-[0-9A-Za-z-]{20,}"
)
"""A private key or an access token of a known form."""

_NAME = re.compile(
    r"\.env.*|.*\.(env|pem|key|p12|pfx|jks|keystore|kdbx|ppk|asc|gpg)|id_(rsa|dsa|ecdsa|ed25519)(\..*)?"
    r"|\.?credentials.*|secrets?(\..*)?|\.npmrc|\.pypirc|\.netrc|_netrc|\.htpasswd|\.pgpass|\.git-credentials",
    re.IGNORECASE,
)
_SOURCE = re.compile(r".*\.(py|pyi|js|ts|jsx|tsx|go|c|h|cpp|rs|java)", re.IGNORECASE)
_ASSIGNED = re.compile(
    r"(?:password|passwd|secret|token|api_?key|private_?key|access_?key)[\w-]*[\"']?\s*[:=]\s*[\"']([^\"'\s]{12,})[\"']",
    re.IGNORECASE,
)
_LONG = re.compile(r"[A-Za-z0-9+/_-]{32,}")

RANDOM_BITS = 4.3
"""Entropy of one character from which on a long word with digits and both cases counts as drawn at random.

A hash in hexadecimal digits has at most 4, a path or a long name about 3.8; 40 characters of base64 have about 4.8.
"""
_ASSIGNED_BITS = 2.9


def is_secret(path: str, text: str) -> bool:
    """Whether a file obviously holds secrets, as far as its name (or URI) and its text tell."""
    name = PurePosixPath(path.replace("\\", "/")).name
    if _NAME.fullmatch(name) and not _SOURCE.fullmatch(name):
        return True
    return bool(SECRET.search(text)) or _holds_random(text)


def _holds_random(text: str) -> bool:
    if any(_entropy(match[1]) > _ASSIGNED_BITS and _has_digit(match[1]) for match in _ASSIGNED.finditer(text)):
        return True
    words = (match[0] for match in _LONG.finditer(text))
    return any(
        _has_digit(word) and word.lower() != word != word.upper() and _entropy(word) > RANDOM_BITS for word in words
    )


def _has_digit(text: str) -> bool:
    return any(c.isdigit() for c in text)


def _entropy(text: str) -> float:
    """Bits for each character."""
    counts = Counter(text).values()
    return math.log2(len(text)) - sum(n * math.log2(n) for n in counts) / len(text)
