"""Keys that nothing is assigned: arguments of calls, literals behind a word that tells a key, rows of tables."""
# forms that are cut in two are read by nobody

from __future__ import annotations

import re

from codespec.privacy.budget import spend
from codespec.privacy.secret_values import is_drawn, is_secret_value, name_kind

_KEY_LIKE = re.compile(r"[\"'`]([0-9a-fA-F]{32,256}|[\w+/=.~!@#$%^&*-]{20,300})[\"'`]")
_KEY_WORD = re.compile(r"(?i:key|secret|token|hmac|aes|cipher|crypt|fernet)[^\n]{0,80}\Z")
_CALL = re.compile(
    r"(?:[Cc]lient|[Aa][Pp][Ii]|[Aa]uth|[Ll]ogin|[Cc]onnect|[Cc]redential|[Ss]ession|Bot|[Tt]oken|[Ss]ign|[Hh]mac|HMAC"
    r"|[Jj]wt|JWT|[Ss]ecret|[Kk]ey|[Cc]ipher|AES|[Ee]ncrypt|[Dd]ecrypt|[Ff]ernet)\w{0,24}\((?:[^()\n]{0,160}\n){0,3}[^()\n]{0,160}\Z"
)
_BEFORE_KEY = 240
"""Characters before a key in which the call or the word stands that tells it."""
_HASH = re.compile(
    r"sha\d|md5|hash|digest|checksum|integrity|fingerprint|commit|public|pub_?key|revision|etag|thumbprint|test|key_?id"
    r"|address|next|continuation|marker",
    re.IGNORECASE,
)
_INSERT = re.compile(
    r"(?i:\binsert\s{1,4}(?:into\s{1,4})?[\w.`\"\[\]]{1,80}\s{0,4}\(([^()]{1,400})\)\s{0,8}values\s{0,8}\(([^()]{1,800})\))"
)
_CELL = re.compile(r"'([^'\n]{0,400})'|,")


def holds_key(text: str) -> bool:
    """Whether a key is an argument of a call that makes a client, signs or encrypts, or stands behind a word that tells
    one."""
    for found in _KEY_LIKE.finditer(text):
        spend()
        value, start = found[1], found.start()
        hexadecimal = _is_hex(value)
        if not (hexadecimal or _is_mixed(value)) or not is_drawn(value):
            continue
        near = max(0, start - _BEFORE_KEY)
        lead = text[near:start]
        if _HASH.search(lead[lead.rfind("\n") + 1 :]) or _HASH.search(value):
            continue
        if _CALL.search(lead) or ((hexadecimal or len(value) >= 40) and _KEY_WORD.search(lead)):
            return True
    return False


def _is_hex(value: str) -> bool:
    return len(value) >= 32 and all(each in "0123456789abcdefABCDEF" for each in value)


def _is_mixed(value: str) -> bool:
    return value.lower() != value != value.upper() and sum(map(str.isdigit, value)) > 1


def holds_row(text: str) -> bool:
    """Whether a statement inserts a password or a key in a table."""
    if "nsert" not in text and "NSERT" not in text:
        return False
    for found in _INSERT.finditer(text):
        spend()
        columns = [name_kind(each.strip(' `"[]\n\t')) for each in found[1].split(",")]
        cells = [""]
        for cell in _CELL.finditer(found[2]):
            if cell[0] == ",":
                cells.append("")
            else:
                cells[-1] = cell[1]
        if any(name and is_secret_value(cell, name) for name, cell in zip(columns, cells, strict=False)):
            return True
    return False


def is_named_secret(name: str, value: str) -> bool:
    """Whether a value that a field of some data has is a secret by the field's name."""
    kind = name_kind(name) if name else None
    return kind is not None and is_secret_value(value, kind)
