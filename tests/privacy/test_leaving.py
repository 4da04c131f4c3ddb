"""What a body of a request may hold that leaves the machine, and that there is no other way out of it."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import codespec
from codespec.privacy.leaving import Checked, Leaving, PrivateText
from tests.privacy_forms import common
from tests.privacy_forms.values import Form, values

PACKAGE = Path(codespec.__file__).parent
SECRET = values(3)["mixed"]
TOKEN = values(3)["github"]
HELD = f"user = 1\nPASSWORD = '{SECRET}'\nx = "
OPEN = 'user = 1\npassword = "'
PUBLIC = "def area(width, height):\n    return width * height\n"


def token_bytes(token: int) -> bytes:
    """A token is a byte; those above are special."""
    return bytes([token]) if token < 256 else b""


def ids(text: str) -> list[int]:
    return list(text.encode())


PRIVATE: dict[str, dict[str, Any]] = {
    "a prompt": {"prompt": HELD},
    "token ids": {"prompt": ids(HELD)},
    "several prompts of token ids": {"prompt": [ids(PUBLIC), ids(HELD)]},
    "a text between token ids": {"prompt": [*ids(PUBLIC), 300, HELD, *ids(PUBLIC)]},
    "a text that token ids begin": {"prompt": [*ids("PASSWORD = '"), f"{SECRET}'\n"]},
    "before and after the cursor": {"prompt": [301, *ids(OPEN), 302, *ids(f'{SECRET}"\n'), 303]},
    "after and before the cursor": {"prompt": [302, *ids(f'{SECRET}"\n'), 301, *ids(OPEN)]},
    "fields before and after the cursor": {"prompt": OPEN, "suffix": f'{SECRET}"\n'},
    "input ids": {"input_ids": ids(HELD), "sampling_params": {"max_new_tokens": 1}},
    "a file beside it": {"input_prefix": PUBLIC, "input_extra": [{"filename": "b.py", "text": HELD}]},
    "a choice": {"prompt": PUBLIC, "guided_choice": ["yes", TOKEN]},
    "a choice of what goes on": {"prompt": OPEN, "guided_choice": ["yes", SECRET]},
    "a choice by another name": {"prompt": PUBLIC, "structured_outputs": {"choice": [TOKEN]}},
    "a grammar": {"prompt": PUBLIC, "grammar": f'root ::= "password = \\"{SECRET}\\""'},
    "a grammar of a token": {"prompt": PUBLIC, "structured_outputs": {"grammar": f'root ::= "{TOKEN}"'}},
    "a value of a schema": {"prompt": PUBLIC, "json_schema": {"properties": {"password": {"const": SECRET}}}},
    "values of a schema": {"prompt": PUBLIC, "format": {"properties": {"token": {"enum": [values(3)["key40"]]}}}},
    "a name in a schema": {"prompt": PUBLIC, "json_schema": {"properties": {TOKEN: {"type": "string"}}}},
    "a schema in another": {"response_format": {"schema": {"anyOf": [{"properties": {"pwd": {"default": SECRET}}}]}}},
    "a pattern": {"prompt": PUBLIC, "regex": f"password = '{SECRET}'"},
    "a message": {"messages": [{"role": "user", "content": HELD}]},
    "a part of a message": {"messages": [{"role": "user", "content": [{"type": "text", "text": HELD}]}]},
    "arguments of a tool": {"messages": [{"tool_calls": [{"function": {"arguments": f'{{"password":"{SECRET}"}}'}}]}]},
    "a stop text": {"prompt": PUBLIC, "stop": [TOKEN]},
    "a stop text that goes on": {"prompt": OPEN, "stop": [f'{SECRET}"']},
    "pairs of tokens and biases": {"prompt": PUBLIC, "logit_bias": [[each, 5.0] for each in ids(TOKEN)]},
    "what is being typed": {"prompt": f'{PUBLIC}Key key = Keys.hmacShaKeyFor("{values(3)["key40"]}'},
    "what is being typed, as ids": {"prompt": ids(f'{PUBLIC}password = "{SECRET}')},
    "a host that is still to come": {"prompt": f'{PUBLIC}url = "postgres://shop:{SECRET}'},
}  # fmt: skip


@pytest.mark.parametrize("what", PRIVATE)
def test_what_stays(what: str) -> None:
    with pytest.raises(PrivateText):
        Leaving(token_bytes).checked(PRIVATE[what])


@pytest.mark.parametrize(
    "body",
    [
        {"prompt": PUBLIC, "suffix": "\n\n", "stop": ["\n\n"], "model": "qwen2.5-coder-1.5b-base.gguf"},
        {"prompt": [301, *ids(PUBLIC), 302, *ids("\nprint(area(2, 3))\n"), 303], "logit_bias": {"7": -1.0}},
        {"prompt": 'mode = "', "guided_choice": ["exclusive", "shared"], "max_tokens": 4, "temperature": 0.0},
        {"messages": [{"role": "user", "content": "Why does a password have to be long?"}], "stream": True},
        {"json_schema": {"properties": {"password": {"type": "string"}, "token": {"enum": ["access", "refresh"]}}}},
    ],
)
def test_what_leaves_is_what_was_given(body: dict[str, Any]) -> None:
    checked = Leaving(token_bytes).checked(body)
    assert isinstance(checked, Checked)
    assert json.loads(checked.content) == body


def test_ids_of_unknown_tokens_stay() -> None:
    with pytest.raises(PrivateText):
        Leaving().checked({"prompt": ids(PUBLIC)})


@pytest.mark.parametrize("form", common.FORMS, ids=lambda form: f"{form.kind} {form.path}")
def test_forms_that_code_and_prose_are_known_by_stay(form: Form) -> None:
    if form.path.endswith((".py", ".go", ".rs", ".js", ".ts", ".java")):
        with pytest.raises(PrivateText):
            Leaving(token_bytes).checked({"prompt": ids(form.filled(4))})


def test_a_text_that_grows_is_read_at_each_step() -> None:
    leaving, text = Leaving(token_bytes), PUBLIC * 200 + HELD
    sent = []
    for end in range(len(PUBLIC) * 200, len(text)):
        try:
            sent.append(leaving.checked({"prompt": ids(text[:end])}))
        except PrivateText:
            break
    assert sent
    assert SECRET[:6] not in bytes(json.loads(sent[-1].content)["prompt"]).decode()


# --- no other way ---------------------------------------------------------------------------------------------------


def _calls(path: Path) -> Iterator[tuple[str, ast.Call]]:
    """Calls of a file, with the names of the functions around each."""

    def walk(node: ast.AST, inside: str) -> Iterator[tuple[str, ast.Call]]:
        for child in ast.iter_child_nodes(node):
            name = child.name if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)) else inside
            if isinstance(child, ast.Call):
                yield name, child
            yield from walk(child, name)

    yield from walk(ast.parse(path.read_text("utf-8")), "")


CONNECTING = {
    "create_connection", "open_connection", "create_server", "start_server", "AsyncClient", "urlopen", "HTTPConnection",
    "HTTPSConnection", "connect", "connect_ex", "sendto", "unix_connect", "open_unix_connection", "Client",
}  # fmt: skip
"""Names of functions that open a way to another process or machine."""
WAYS = {
    "remote/connection.py": "engines elsewhere: what is sent has been read by ``Leaving``",
    "draft/storage/token_log.py": "a file of SQLite, on this machine",
    "llama/rpc.py": "whether a server of llama.cpp answers: a greeting without a text",
    "cli/serve.py": "whether an address of this machine is free: nothing is sent",
    "daemon/wire.py": "the model process, on this machine",
    "daemon/start.py": "the model process, on this machine",
    "daemon/watchdog.py": "whether the model process, on this machine, takes connections",
    "remote/load.py": "makes a ``Connection``",
    "completion/load.py": "makes a completer of an engine elsewhere",
    "lsp/connection/transport.py": "listens",
    "http/server.py": "listens",
}


def test_few_modules_connect_to_anything() -> None:
    found = {}
    for path in PACKAGE.rglob("*.py"):
        for _, call in _calls(path):
            name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            if name in CONNECTING:
                found[path.relative_to(PACKAGE).as_posix()] = name
    assert set(found) <= set(WAYS), found
    assert "remote/connection.py" in found


def test_only_bodies_that_were_read_are_sent() -> None:
    path = PACKAGE / "remote" / "connection.py"
    uses = {
        (inside, call.func.attr)
        for inside, call in _calls(path)
        if isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "self._client"
    }
    assert uses == {
        ("_seen", "get"),
        ("_look", "get"),
        ("_open", "build_request"),
        ("_open", "send"),
        ("_end", "aclose"),
    }
    requests = [
        call for inside, call in _calls(path) if inside == "_open" and "build_request" in ast.unparse(call.func)
    ]
    assert {each.arg for each in requests[0].keywords} == {"content", "headers"}
    tree = ast.parse(path.read_text("utf-8"))
    sending = [each for each in ast.walk(tree) if isinstance(each, ast.AsyncFunctionDef) and each.name == "_open"]
    assert [ast.unparse(each.annotation or each) for each in sending[0].args.args[3:]] == ["Checked | None"]


def test_only_leaving_makes_what_may_be_sent() -> None:
    made = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        for _, call in _calls(path)
        if isinstance(call.func, ast.Name) and call.func.id == "Checked"
    }
    assert made == {"privacy/leaving.py"}
