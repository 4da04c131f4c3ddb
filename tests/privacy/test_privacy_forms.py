"""How many forms of secrets are found, of those that the detector was tuned on and of those that it was not."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from codespec.privacy.secrets import has_secret_name, is_secret
from tests.privacy_forms import common, held_out, tuned
from tests.privacy_forms.values import Form

SEEDS = range(5)


def found(forms: Sequence[Form]) -> float:
    """The share that is found, over values of all seeds."""
    return sum(is_secret(form.path, form.filled(seed)) for form in forms for seed in SEEDS) / len(forms) / len(SEEDS)


def test_forms_are_many_and_told_by_their_text() -> None:
    assert len(tuned.FORMS) >= 200
    assert len({form.kind for form in tuned.FORMS}) >= 25
    assert not {form.text for form in tuned.FORMS if form.text} & {form.text for form in held_out.FORMS}
    assert [form.path for form in tuned.FORMS if has_secret_name(form.path) != (form.kind == "name")] == []


def test_known_forms_are_found() -> None:
    assert found(tuned.FORMS) >= 0.98


def test_forms_of_commands_and_statements_are_found() -> None:
    assert found(common.FORMS) >= 0.98


def test_other_forms_are_found() -> None:
    assert found(held_out.FORMS) >= 0.95


@pytest.mark.parametrize(
    "name",
    ["credentials.rb", "CredentialsForm.vue", "secrets.md", "README.asc", "Translations.key", "secret_santa.txt"],
)
def test_names_that_tell_no_secret(name: str) -> None:
    assert not has_secret_name(name)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.yml", "password: ${DB_PASSWORD}\ntoken: {{ token }}\nsecret: !vault x\n"),
        ("a.yml", "spec:\n  secretName: tls-of-the-shop\n  passwordSecretRef: shop-db\n"),
        ("a.py", "password = getpass('Password: ')\nif token == 'identifier': pass\n"),
        ("a.py", 'fields = ("username", "password", "email")\n'),
        ("de.json", '{"password": "Passwort", "forgot_password": "Do you not know your password?"}'),
        ("a.tf", 'variable "db_password" {\n  type = string\n  description = "of the database"\n}\n'),
        ("a.sh", 'PASSWORD="$1"\nTOKEN=$(cat /run/token)\ncurl -u "$USER:$PASSWORD" https://a\n'),
        ("pom.xml", "<password>${env.PASSWORD}</password>\n"),
        ("a.properties", "spring.datasource.password=${DB_PASSWORD}\npassword.file=/run/secrets/db\n"),
        ("package.json", '{"minipass": "^7.0.2", "integrity": "sha512-abc"}'),
        # Markers without a key, examples that everybody knows, forms of URLs.
        ("ssh.py", '_START = b"-----BEGIN OPENSSH PRIVATE KEY-----"\n_END = b"-----END OPENSSH PRIVATE KEY-----"\n'),
        ("a.json", '{"client_key_data": "-----BEGIN RSA PRIVATE KEY-----...-----END RSA PRIVATE KEY-----"}'),
        ("a.py", '"""Authorization: Basic czZCaGRSa3F0MzpnWDFmQmF0M2JW"""\naccess_token = "mF_9.B5f-4.1JqM"\n'),
        ("a.py", 'urls = "amqp://guest:guest@localhost", "sb://POLICY_NAME:SAS_KEY@BUS", "proto://[user[:pw]]@host"\n'),
        # Names of values, labels, branches and commands.
        ("nl.js", "var a={username:`Gebruikersnaam`,password:`Wachtwoord`,login:`Inloggen`};"),
        ("a.py", 'password = "APP_HTTP_PWD"\n'),
        ("a.js", 'const state = done ? "PASS" : "FAIL";\n'),
        ("env.js", "exports.env = {\n  dirname: null,\n  pwd: null,\n};\n"),
        ("a.sh", "pass=`expr $pass + 1`\n"),
        ("a.html", "<!--Password Input-->\n"),
        ("a.h", '/* the columns identified by "aOrderBy" */\n'),
        # Tokens of lists and of assemblies, keys that are paths, names in machine code, data.
        ("a.json", '{"NextToken": "b7f1a4d2c9e84f60a1b2c3d4e5f60718", "S3Key": "app/5026-stage-150723_224258-x.war"}'),
        ("a.xml", '<dependentAssembly publicKeyToken="1fc8b3b9a1e18e3b"/>'),
        ("a.rs", 'let name = "VNtC3foo3BarS1sRe616263_2chc78_5sliceRAh1_h2_h3_EE";\n'),
        ("a.json", '{"data": "eJxjYBgFo2DoghUD7YBRMGzBaNqiHRgN2+EDRuNyFNAKAAAbowKh"}'),
        ("a.go", '// {"body": "c29tZSBkYXRhIHdpdGggACBhbmQg77u/"}\n'),
        ("readme.md", "The password: a word that only you know. Tokens pass `event` on.\n"),
    ],
)
def test_what_tells_no_secret(path: str, text: str) -> None:
    assert not is_secret(path, text)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("deploy.sh", "openssl enc -aes-256-cbc -k xysohullo "),
        (
            "key.ts",
            "-----BEGIN PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-"
            + "Info: AES-256-CBC,3ee952b033b23216c80daa98ad6f",
        ),
        ("Dockerfile", "RUN echo 'root:dradetuxy"),
        ("App.java", 'DriverManager.getConnection(url, "root", "Lotu2386#"'),
        ("shop.yaml", "apiVersion: v1\ndata:\n  .dockerconfigjson: zZ51DbaBQnerlk9NV2EHIAEfk73uyLOqz+Bdgxc1v503\n"),
    ],
)
def test_a_part_tells_before_the_rest_is_typed(path: str, text: str) -> None:
    assert is_secret(path, text)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("deploy.sh", "openssl enc -aes-256-cbc -k $KEY -in a\nopenssl enc -kfile key.txt -in a\n"),
        ("Dockerfile", "RUN echo 'root:$PASSWORD' | chpasswd\nRUN echo root:x:0:0\n"),
        (
            "App.java",
            'DriverManager.getConnection(url, "root", "password");\nDriverManager.getConnection(url, user, word);',
        ),
    ],
)
def test_a_part_without_a_value_tells_nothing(path: str, text: str) -> None:
    assert not is_secret(path, text)
