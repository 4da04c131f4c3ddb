"""Secrets: the names of files and the known forms of keys and tokens, and what only looks like them."""

from __future__ import annotations

import random
import string
from pathlib import Path
from time import process_time

import pytest

import codespec
from codespec.privacy.secrets import has_secret_name, holds_token, is_secret

LETTERS = string.ascii_letters + string.digits


def drawn(count: int, letters: str = LETTERS, seed: int = 5) -> str:
    """What no person would write."""
    return "".join(random.Random(seed).choices(letters, k=count))


HEX = "0123456789abcdef"
BASE32 = string.ascii_uppercase + "234567"
# In parts, so that the file that tells secrets apart holds none.
TOKENS = {
    "AWS": "AKIA" + drawn(16, BASE32),
    "AWS, for a session": "ASIA" + drawn(16, BASE32),
    "GitHub": "ghp_" + drawn(36),
    "GitHub OAuth": "gho_" + drawn(36),
    "GitHub Actions": "ghs_" + drawn(36),
    "GitHub, fine-grained": "github_pat_" + drawn(22) + "_" + drawn(59),
    "GitLab": "glpat-" + drawn(20),
    "Slack bot": "xoxb-" + drawn(12, string.digits) + "-" + drawn(24),
    "Slack webhook": "https://hooks.slack.com/services/T"
    + drawn(8, BASE32)
    + "/B"
    + drawn(8, BASE32)
    + "/"
    + drawn(24),
    "Stripe": "sk_live_" + drawn(24),
    "Google": "AIza" + drawn(35),
    "Google OAuth": "GOCSPX-" + drawn(28),
    "npm": "npm_" + drawn(36),
    "PyPI": "pypi-AgEIcHlwaS5vcmc" + drawn(80),
    "OpenAI": "sk-" + drawn(20) + "T3BlbkFJ" + drawn(20, seed=6),
    "OpenAI, of a project": "sk-proj-" + drawn(60),
    "Anthropic": "sk-ant-api03-" + drawn(93) + "AA",
    "Hugging Face": "hf_" + drawn(34, string.ascii_letters),
    "SendGrid": "SG." + drawn(22) + "." + drawn(43),
    "Azure storage": "DefaultEndpointsProtocol=https;AccountKey=" + drawn(86) + "==",
    "Azure client secret": drawn(3) + "8Q~" + drawn(34),
    "JWT": "eyJ" + drawn(20) + ".eyJ" + drawn(40) + "." + drawn(43),
    "PostgreSQL": "postgres://" + "admin:" + drawn(14) + "@db.local:5432/shop",
    "MongoDB": "mongodb+srv://" + "app:p%40" + drawn(8) + "@cluster0.net",
    "a git remote": "https://" + "me:" + drawn(20) + "@git.local/me/x.git",
    "a private key": "-----BEGIN RSA PRIVATE" + " KEY-----\n" + drawn(64),
    "an encrypted key": "-----BEGIN RSA PRIVATE" + " KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES\n\n" + drawn(64),
    "a key in a string": '"-----BEGIN PRIVATE' + " KEY-----\\n" + drawn(64) + '"',
    "PGP": "-----BEGIN PGP PRIVATE" + " KEY BLOCK-----\nVersion: GnuPG v2\n\n" + drawn(64),
}


@pytest.mark.parametrize("token", TOKENS.values(), ids=TOKENS)
@pytest.mark.parametrize("around", ["key = '{}'\n", "{}", "KEY={}\nNEXT=1", '  "key": "{}",'])
def test_known_forms(token: str, around: str) -> None:
    assert holds_token("import os\n" + around.format(token))


@pytest.mark.parametrize(
    "text",
    [
        "AKIAIOSFODNN7" + "EXAMPLE",
        "ghp_" + "x" * 36,
        "ghp_" + "0123456" + drawn(29),
        "sk-ant-api03-your-key-here",
        "re.compile('-----BEGIN PRIVATE" + " KEY-----')",
        "-----BEGIN PUBLIC KEY-----\n" + drawn(64),
        "https://user:password@host.example/path",
        "postgres://user:${PASSWORD}@db/x",
        "postgres://user:%s@db/x",
        "f'https://{user}:{password}@{host}'",
        "https://host.example:8080/path?mail=a@b.example",
        "import eyJ; npm_config_registry; AIza; sk_live_; xoxb-",
        "sha512-" + drawn(86) + "==",
        "git@github.com:me/project.git",
    ],
)
def test_what_is_none(text: str) -> None:
    assert not holds_token(text)


@pytest.mark.parametrize(
    "start",
    ["-----BEGIN PRIVATE" + " KEY-----\n", "eyJaaaaaaaa-", "eyJaaaaaaaa.", "a://b:", "sk-", "xoxb-", "8Q~", "a: "],
)
def test_long_texts_that_begin_like_secrets_take_no_more_than_linear_time(start: str) -> None:
    key = "-----BEGIN PRIVATE" + " KEY-----\n"
    for text in (
        start * 30_000,
        start + "a" * 200_000,
        key + start * 30_000,
        key + " " * 200_000,
        start + "T3BlbkFJ" * 20_000,
    ):
        began = process_time()
        holds_token(text)
        assert process_time() - began < 5  # backtracking would take hours


@pytest.mark.parametrize("part", ["token", "api_key-", "password ", "secret=", "token='", "token: 'a"])
def test_long_texts_that_name_secrets_take_no_more_than_linear_time(part: str) -> None:
    began = process_time()
    is_secret("a.txt", part * (200_000 // len(part)))
    assert process_time() - began < 5  # it took minutes


@pytest.mark.parametrize(
    "path",
    [
        ".env", "a/.env.production", "prod.env", ".envrc", "id_rsa", "ID_ED25519", "id_ecdsa_sk", "server.key", "a.PEM",
        "C:\\x\\cert.pfx", "file:///w/.npmrc", "/home/me/.ssh/config", "/home/me/.aws/config", ".kube/config",
        "secrets.yaml", "secrets.prod.json", "credentials", "credentials.json", "client_secret_12.apps.json",
        "service-account.json", "vault.kdbx", "x.tfvars", "terraform.tfstate", ".git-credentials", ".bash_history",
        ".netrc", "application_default_credentials.json", "home.ovpn", ".htpasswd",
        # What editors and people make of them.
        ".env~", "#.env#", ".env.local.~1~", "..env.swp", "id_rsa.old~", "server.key.bak", "vault.kdbx.orig",
        ".npmrc-old", "/w/.docker/config.json~", "git:/w/.env?%7B%22ref%22%3A%22%22%7D", "file:///w/%2Eenv",
        "git:/w/a.pem#L1",
    ],
)  # fmt: skip
def test_names_of_secrets(path: str) -> None:
    assert has_secret_name(path)


@pytest.mark.parametrize(
    "path",
    [
        "", "environment.py", "env.py", ".env.example", ".env-sample", "credentials.py", "secrets.ts", "keys.go",
        "monkey", "public.crt", "ssh/config", "tokenizer.json", "package.json", "keyboard.c", "known_hosts", "a.envoy",
        "secretary.txt", "credentials.py~", ".env.example.bak", "git:/w/a.py?id_rsa", "file:///w/a.py#.env",
    ],
)  # fmt: skip
def test_names_of_other_files(path: str) -> None:
    assert not has_secret_name(path)


def test_own_files_hold_no_tokens() -> None:
    root = Path(codespec.__file__).parents[1]
    files = [*root.glob("codespec/**/*.py"), *root.glob("tests/**/*.py")]
    assert len(files) > 100
    assert [file.name for file in files if holds_token(file.read_text("utf-8")) or has_secret_name(file.name)] == []
