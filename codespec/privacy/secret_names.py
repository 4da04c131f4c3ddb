"""Names of files that hold secrets."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from urllib.parse import unquote

_CODE = (
    "py|pyi|js|mjs|cjs|ts|mts|cts|jsx|tsx|vue|svelte|go|c|h|cc|cpp|cxx|hpp|rs|java|kt|kts|cs|swift|scala|rb|php|pl|pm"
    "|ex|exs|erl|clj|dart|lua|r|jl|hs|ml|fs|vb|m|mm|sql|css|scss|html|graphql|proto"
)
_PROSE = "md|mdx|rst|adoc|tex"
_NAME = re.compile(
    r"\.env(\..*)?|.*\.env|env\.(prod|stag|dev|test|local|live)\w*|\.envrc"
    r"|.*\.(pem|p12|pfx|pkcs12|pk8|jks|bks|keystore|kdbx?|ppk|gpg|pgp|keychain|ovpn|tfvars(\.json)?"
    r"|tfstate(\.backup)?|agekey|age|jceks|mobileprovision)"
    r"|id_(rsa|dsa|ecdsa|ed25519)(_sk)?(\..*)?"
    r"|\.?credentials(\..*)?|rootkey\.csv|accesskeys?\.csv"
    r"|\.?secrets?(\..*)?|(secrets|credentials)[-_].*\.(json|ya?ml|toml|ini|env)"
    r"|.*[-_.](secrets|credentials)\.(json|ya?ml|toml|ini|env|properties)"
    r"|(client_secret|service[-_]account).*\.json|application_default_credentials\.json"
    r"|\.?vault[-_]?pass(word)?([-_.].*)?"
    r"|\.npmrc|\.yarnrc|\.pypirc|\.netrc|_netrc|\.htpasswd|htpasswd|\.pgpass|pgpass\.conf|\.my\.cnf|\.mylogin\.cnf"
    r"|\.git-credentials|\.dockercfg|\.dockerconfigjson|\.boto|\.s3cfg|\.vault-token|\.terraformrc|terraform\.rc|\.esmtprc"
    r"|\.msmtprc|\.fetchmailrc|\.rclone\.conf|\.cloudflared|kubeconfig|.*\.kubeconfig|master\.key|g?shadow-?"
    r"|\.(bash|zsh|sh|fish|psql|mysql|python|node_repl|rediscli|irb)_history"
)
_PLACE = re.compile(
    r"(?:\A|/)(?:(?:\.ssh|\.gnupg|\.aws|\.azure|\.kube|\.password-store|\.config/(?:gcloud|gh|hub|rclone|doctl|op)|\.terraform\.d)/"
    r"|(?:\.docker/config\.json|\.m2/settings(?:-security)?\.xml|\.cargo/credentials(?:\.toml)?|\.gem/credentials"
    r"|\.config/(?:containers/auth|composer/auth)\.json|\.composer/auth\.json|rclone/rclone\.conf)\Z)",
    re.IGNORECASE,
)
_JUDGED_BY_TEXT = re.compile(rf".*\.({_CODE}|{_PROSE})", re.IGNORECASE)
_SAMPLE = re.compile(r"\.?env[-_.](.*[-_.])?(example|sample|template|tmpl|dist|defaults?)", re.IGNORECASE)


_KEY = re.compile(r"[^A-Z]*\.key|.*\.KEY")  # and not ``Translations.key``, slides


def is_code(name: str) -> bool:
    """Whether a file of this name is source code."""
    return bool(re.fullmatch(rf".*\.({_CODE})", name, re.IGNORECASE))


_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")  # of a URI; a drive of Windows has one letter
_COPY = re.compile(
    r"(?:~\d{0,20}|#|\.(?:bak|backup|orig|old|saved?|tmp|rej|copy|\d{1,8})|[-_](?:bak|backup|old|copy))\Z",
    re.IGNORECASE,
)
_LONGEST_COPY = 21  # characters that ``_COPY`` matches
_SWAP = re.compile(r"\.(.+)\.sw[a-p]")


def has_secret_name(path: str) -> bool:
    """Whether a file name or URI is that of a file of secrets: keys, credentials, environments and the like, or a copy
    of one that an editor or a person made."""
    if _SCHEME.match(path):
        path = unquote(path.partition("?")[0].partition("#")[0])
    path = path.replace("\\", "/")
    name = PurePosixPath(path).name
    copied, swapped = _copied(name), _SWAP.fullmatch(name)
    names = (copied,) if copied else (name, swapped[1]) if swapped else (name,)
    return any(_tells_secret(each, path[: len(path) - len(name)] + each) for each in names)


def _copied(name: str) -> str:
    """The name of what a file is a copy of; empty where it is none."""
    end = len(name)
    while (found := _COPY.search(name, max(1, end - _LONGEST_COPY), end)) is not None:
        end = found.start()
    if end == len(name):
        return ""
    return name[:end].removeprefix("#") or name[:end]


def _tells_secret(name: str, path: str) -> bool:
    if _JUDGED_BY_TEXT.fullmatch(name) or _SAMPLE.fullmatch(name):
        return False
    return bool(_NAME.fullmatch(name.lower()) or _KEY.fullmatch(name) or _PLACE.search(path))
