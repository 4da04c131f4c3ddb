"""Names that tell a password, a token or a key, and values that may be one: heuristics, all of them."""
# ruff: noqa: SIM905  # a list with a word on each line is read by nobody

from __future__ import annotations

import base64
import math
import re
from collections import Counter
from enum import Enum

from codespec.privacy.budget import spend
from codespec.privacy.placeholders import PLACEHOLDER, PUBLISHED

_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_NEUTRAL = frozenset(
    """
    default value prod production dev development staging test testing live base raw plain text string str clear
    new old root admin master main primary secondary current hex b data const var env
    """.split()
)
_PASSWORDS = frozenset(
    "pass pwd pw psk passphrase passcode passwd password passwort kennwort requirepass masterauth".split()
)
_OWNERS = frozenset(
    """
    db user usr smtp mail email ftp sftp ssh wifi wlan redis mysql postgres pg mongo sql my root admin ansible
    proxy store key keystore truststore become login auth http basic bind ldap imap app api database rabbitmq
    default pgsql net vault remote local pop sasl irc server rpc svn git web cert p12 jks radius vpn wpa sa sys
    oracle mssql
    couch elastic es kafka nats mqtt zabbix grafana jenkins nexus sonar deploy backup router admin rcon wallet http ntp
    """.split()
)
_OWNED = re.compile(rf"(?:{'|'.join(sorted(_OWNERS))})(?:pass|pw|pwd)")
_KEYS = frozenset(
    """
    api access secret private auth account encryption encrypt signing sign service client master license licence
    app application server storage shared jwt hmac aes crypto subscription consumer deploy session cookie admin
    db database mailgun stripe sendgrid
    """.split()
)

_NO_SECRET_TOKENS = frozenset("next page paging continuation change action starting resume".split())
"""Of lists and of requests, which are told to everybody who asks for the next part."""


class NameKind(Enum):
    """The kind of value that a name tells: a password, a secret, a token, or any key."""

    PASSWORD = "password"
    SECRET = "secret"
    TOKEN = "token"
    KEY = "key"


def name_kind(name: str) -> NameKind | None:
    """The kind of value that a name like ``datasource.password``, ``DB_PASS`` or ``clientSecret`` tells; None: none."""
    parts = [part.lower() for part in _PARTS.findall(name)]
    while len(parts) > 1 and (parts[-1] in _NEUTRAL or parts[-1].isdigit()):
        del parts[-1]
    if not parts:
        return None
    last, before = parts[-1], parts[-2] if len(parts) > 1 else ""
    if name == "PW":  # a country
        return None
    if last in ("pass", "pw", "pwd"):
        return NameKind.PASSWORD if len(parts) == 1 or before in _OWNERS else None
    if last in _PASSWORDS or last.endswith(("password", "passwd", "passphrase")) or _OWNED.fullmatch(last):
        return NameKind.PASSWORD
    if last.endswith("secret"):
        return NameKind.SECRET
    if "public" in parts:
        return None
    if last == "token" and (before in _NO_SECRET_TOKENS or parts[-3:-1] == ["client", "request"]):
        return None
    if last == "key" and before == "secret":
        return NameKind.SECRET
    if last.endswith(("token", "apikey", "secretkey", "accesskey", "privatekey", "authkey")) or (
        last == "key" and before in _KEYS
    ):
        return NameKind.TOKEN
    if last in ("auth", "authorization", "credential", "credentials") or (last == "salt" and before):
        return NameKind.TOKEN
    return NameKind.KEY if last in ("key", "login") else None


# --- the shapes of values -------------------------------------------------------------------------------------------

_REFERENCE = re.compile(
    r"\$\{|\{\{|\$\(|<%|%\(|#\{|\{[\w.!:\[\]'\"()]*\}|%[sdrv]\b|%s|\\?\$(?:[A-Z_][A-Z0-9_]*|[a-z_][a-z0-9_]*|[a-z]+(?:[A-Z][a-z]+)+)\Z|\A\$[A-Za-z_]\w*|\A[%@!&*]\w+%?\Z|\A<.*>\Z|\A\[.*\]\Z|\[-?\d*\]|\A__\w+__\Z"
    r"|://|\A\.{0,2}/|\A~/|\A[A-Za-z]:\\|\A\w+\.\w+(\.\w+)*\Z(?<!\d)|\w\(|\A[({\[|>]|[\])}>]:?\Z|[=!]=|\A[\^~]\d|\A\d{1,4}(?:\.\d{1,6}){1,3}\Z|\A[-,]|\Astring\?\Z|\\[xu]|\w\[\d|\A[a-z]PSK\Z|&&|\|\||->|::|\A`|\A[\w\s]+:\Z|--\Z|\A[A-Z][A-Z0-9]*(_[A-Z0-9]+)+\Z"
)
_NO_VALUE = frozenset(
    """
    test tests testing foo bar baz foobar admin administrator root user username guest hello world text input
    value field label string none null nil true false undefined optional required hidden masked secret token
    passphrase abc abcd abcde xyz qwerty letmein changeit change default empty blank unknown invalid wrong bad
    good correct valid name email mail login logout auth basic bearer digest plain env file vault keyring prompt
    ask auto always never disabled enabled yes off done error missing type object number boolean char varchar
    bytes data key keys openssl sha256 sha512 md5 bcrypt ldap kerberos oauth oauth2 jwt saml scram-sha-256 trust
    peer ident pam aaaa bbbb cccc aaaaa aaaaaa todo fixme whatever anything something nothing pwd pass passwd
    supersecret topsecret mock stub postgres mysql mongo redis rabbitmq minio docker pass fail failed skip skipped
    warn passed prefix reserved unreserved anonymous anonymous@ files compat systemd mostly getset_descriptor
    """.split()
)
_NAMES_ITSELF = re.compile(
    r"pass_?w|passwd|passphrase|passcode|passwor|secret|token|credential|api_?key|passw|keyword|cookie|kennwort|contrase|senha"
    r"|mot de passe|парол|密|비밀"
    r"|\A(?:pasahitza|salasana|passord|wachtwoord|palavra.passe|parol[aeă]?|l(?:ö|o)senord|adgangskode|kodeord|heslo|has(?:ł|l)o"
    r"|jelsz(?:ó|o)|clave|lozinka|geslo|slapta(?:ž|z)odis|(?:kata.)?sandi|m(?:ậ|a)t.kh(?:ẩ|a)u|parool|şifre|sifre|zaporka|sarbide)\Z",
    re.IGNORECASE,
)
_LANGUAGE = re.compile(
    r"\b(the|a|an|is|are|was|to|of|for|your|you|and|or|in|on|with|not|no|must|be|if|this|that|enter|please|from|by|it|at"
    r"|new|old|show|hide|confirm|reset|forgot|change|can|will|has|have|expected|type|der|die|das|und|ihr|de|la|le|el)\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[A-Za-z]?[a-z]{3,}|[A-Z]{4,}")
_HEX = re.compile(r"(?:0x)?[0-9a-fA-F]{16,}")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")  # of a contract or an account, which is public
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_DRAWN_BITS = 2.9
_KEY_TEXT = re.compile(r"[A-Za-z0-9+/=_-]+")


def entropy(text: str) -> float:
    """Shannon's entropy of the characters of ``text``, in bits a character."""
    counts = Counter(text).values()
    return math.log2(len(text)) - sum(n * math.log2(n) for n in counts) / len(text)


def has_digit(text: str) -> bool:
    return any(c.isdigit() for c in text)


def is_drawn(value: str) -> bool:
    """Whether a value looks drawn at random: hexadecimal digits, a UUID, or a mixture that holds few words."""
    if value in PUBLISHED or len(value) < 12 or " " in value or _REFERENCE.search(value) or _ADDRESS.fullmatch(value):
        return False
    if _HEX.fullmatch(value):
        return len(set(value)) >= 8 and has_digit(value) and not value.isdigit()
    if PLACEHOLDER.search(value):
        return False
    if _UUID.fullmatch(value):
        return len(set(value)) >= 8
    words = sum(len(word) for word in _WORD.findall(value) if re.search("[aeiouyAEIOUY]", word))
    return has_digit(value) and entropy(value) > _DRAWN_BITS and words < len(value) / 2 and value.isascii()


def _is_long_key(value: str) -> bool:
    """Whether a value is one of the keys that programs draw: 128 bits at least, and no path and no code."""
    return len(value) >= 32 and bool(_KEY_TEXT.fullmatch(value)) and is_drawn(value)


def is_chosen(value: str) -> bool:
    """Whether a value may be a password that a person chose, and is no reference, example or label."""
    if not 4 <= len(value) <= 128 or not value.isascii() or value.lower() in _NO_VALUE or len(set(value)) < 4:
        return False
    if value in PUBLISHED or PLACEHOLDER.search(_decoded(value)):
        return False
    if _REFERENCE.search(value) or PLACEHOLDER.search(value) or _NAMES_ITSELF.search(value):
        return False
    if " " in value:
        return (
            not _LANGUAGE.search(value)
            and sum(len(word) > 2 for word in value.split()) > 2
            and value[-1] not in ".:!?"
            and value == value.lower()
        )
    return True


def is_mixed(value: str) -> bool:
    """Whether a value may be a password, and has letters and digits as one of a generator has: where other words stand,
    too."""
    return len(value) >= 6 and has_digit(value) and any(map(str.isalpha, value)) and is_chosen(value)


def _decoded(value: str) -> str:
    """What a value is in base64; empty where it is none."""
    try:
        return base64.b64decode(value, validate=True).decode("ascii")
    except ValueError:
        return ""


def is_login(value: str) -> bool:
    """Whether a value is ``user:password`` in base64."""
    user, _, password = _decoded(value).partition(":")
    return bool(user) and value not in PUBLISHED and is_chosen(password)


def is_secret_value(value: str, name: NameKind) -> bool:
    if name is NameKind.PASSWORD:
        return is_chosen(value)
    if name is NameKind.KEY:
        return _is_long_key(value)
    if name is NameKind.SECRET and " " in value:
        return is_chosen(value)
    return is_drawn(value) or (name is NameKind.TOKEN and is_login(value))


RANDOM_BITS = 4.3
"""Entropy of one character from which on a long word with digits and both cases counts as drawn at random.

A hash in hexadecimal digits has at most 4, a path or a long name about 3.8; 40 characters of base64 have about 4.8.
"""
RANDOM_RUN = 12
"""Characters that such a word has at least between two dashes: names of models, packages and branches have fewer."""
_LONG = re.compile(r"""(?<=["'`])([A-Za-z0-9+/_-]{32,100})={0,2}(?=["'`])""")
_PUBLIC = re.compile(
    r"(?i)sha\d|hash|digest|integrity|checksum|public|pub_?key|cert|signature|nonce|fingerprint|alphabet|address|challenge|continuation|marker|id\b"
)


_PUBLISHED_WORDS = frozenset(each.rstrip("=") for each in PUBLISHED)


def holds_random(text: str) -> bool:
    """Whether a text holds a long word of both cases and digits that looks drawn at random."""
    spend()
    for match in _LONG.finditer(text):
        spend()
        word = match[1]
        if (
            is_drawn(word)
            and word not in _PUBLISHED_WORDS
            and word.lower() != word != word.upper()
            and entropy(word) > RANDOM_BITS
            and sum(map(str.isdigit, word)) > 2
            and not word.startswith("0x")
            and max(map(len, re.split("[-_]", word))) >= RANDOM_RUN
            and not _PUBLIC.search(text, max(0, match.start() - 200), match.start())
            and not _is_no_token(text, match)
        ):
            return True
    return False


_MANGLED = re.compile(r"(?:_{0,3}Z|_?R|V)?N.*\d[a-z]{3}.*\d[a-z]{3}")
_DATA = re.compile(r"eJ[x-z0-9]|H4sI|iVBORw|R0lGOD|/9j/|UklGR|d09G|AAEAAA|UEsDB|JVBER")  # zlib, gzip, pictures, fonts
_FILE = re.compile(r"\.\w{1,5}[\"'`]\s{0,4}[:=]\s{0,4}[\"'`]\Z")
LONGEST_LINE = 2_000
"""Characters; a longer line was written by a program."""
_READABLE = frozenset(range(32, 127)) | {9, 10, 13}


def _is_no_token(text: str, match: re.Match[str]) -> bool:
    """Whether a long word is the name of a compiled function, a text in base64, or a table in what a program wrote."""
    word = match[1]
    begin, stop = max(0, match.start() - LONGEST_LINE), min(len(text), match.end() + LONGEST_LINE)
    line = text.rfind("\n", begin, match.start()), text.find("\n", match.end(), stop)
    if (line[1] if line[1] >= 0 else stop) - (line[0] if line[0] >= 0 else begin - 1) > LONGEST_LINE:
        return True
    if _FILE.search(text, max(0, match.start() - 24), match.start()):  # a list of files with their hashes
        return True
    if _MANGLED.match(word) or _DATA.match(word) or "///" in word or "AAAAA" in word:
        return True
    try:
        content = base64.b64decode(word + "=" * (-len(word) % 4))
    except ValueError:
        return False
    return sum(byte in _READABLE for byte in content) > 0.7 * len(content)
