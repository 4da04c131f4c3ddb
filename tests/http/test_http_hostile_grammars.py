"""Grammars that nobody should have to compile: refused or followed in time, and the next request is answered."""

import json
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

WITHIN_S = 60.0
"""Of which the child process that compiles takes 1.5 s of processor time."""
CANARY = "ZqxCanary"


def chain(rule, count, last):
    """Rules each of which stands twice in the one before: ``2 ** count`` letters."""
    return "\n".join(rule.format(number, number + 1) for number in range(count)) + f"\na{count}{last}"


def nested(opening, middle, closing, depth):
    return opening * depth + middle + closing * depth


EXPONENTIAL = "root ::= a0\n" + chain("a{0} ::= a{1} a{1}", 40, ' ::= "x"')
GRAMMARS = {
    "ambiguous": 'root ::= s\ns ::= s s | s s s | "a" | ""',
    "left-recursive": 'root ::= root "a" | "a"',
    "without an end": "root ::= root",
    "deep": "root ::= " + nested("(", '"a"', ")", 5000),
    "repeated": 'root ::= ("a"{1,100000}){1,100000}',
    "repeated nothing": 'root ::= (("a"?){0,2000}){0,2000}',
    "a megabyte": 'root ::= "' + "a" * 1_000_000 + '"',
    "more than a megabyte": 'root ::= "' + "a" * (1 << 20) + '"',
    "deep in Lark": "start: " + nested("(", '"a"', ")", 5000),
    "exponential in Lark": "start: a0\n" + chain("a{0}: a{1} a{1}", 40, ': "x"'),
    "a regular expression in Lark": "start: /(((a{1000}){1000}){1000})/",
    "backtracking in Lark": "start: /(a|a)*b/",
    "a schema in Lark": 'start: %json {"$ref": "file:///etc/passwd"}',
}
REGEXES = {
    "backtracking": "(a|a)*b",
    "repeated": "((a{1,1000}){1,1000}){1,1000}",
    "exponential states": ".*a.{20}",
    "deep": nested("(", "a", ")", 3000),
}
SCHEMAS = {
    "to itself": {"$ref": "#"},
    "in a circle": {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
    "exponential": {
        "$defs": {
            **{f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}, {"$ref": f"#/$defs/a{n + 1}"}]} for n in range(30)},
            "a30": {"type": "string"},
        },
        "$ref": "#/$defs/a0",
    },
    "a product": {
        "allOf": [
            {"anyOf": [{"properties": {f"p{a}{b}": {"const": b}}, "required": [f"p{a}{b}"]} for b in range(10)]}
            for a in range(12)
        ]
    },
    "deep": json.loads(nested('{"items":', "{}", "}", 90)),
    "backtracking": {"type": "string", "pattern": "^(a+)+$"},
    "a large pattern": {"type": "string", "pattern": "(x{1000}){1000}"},
    "endless": {"type": "array", "minItems": 10**9},
    "large": {"type": "object", "properties": {f"p{number}": {"type": "integer"} for number in range(20_000)}},
}
OUTSIDE = [
    "file:///etc/passwd",
    "http://127.0.0.1:1/x.json",
    "https://evil.example/x",
    "canary.json",
    "//evil.example/x",
]
FORMS = {
    "json_schema": lambda schema: {"json_schema": schema},
    "response_format": lambda schema: {
        "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema, "strict": True}}
    },
    "structured_outputs": lambda schema: {"structured_outputs": {"json": schema}},
}


def asked(client, fields):
    """What is said to a constraint; it is answered in time, and so is a request without any."""
    began = time.monotonic()
    answer = client.post("/v1/completions", json={"prompt": "a", "max_tokens": 6, **fields})
    assert time.monotonic() - began < WITHIN_S
    assert answer.status_code in (200, 400), answer.text
    began = time.monotonic()
    assert client.post("/v1/completions", json={"prompt": "a", "max_tokens": 2}).status_code == 200
    assert time.monotonic() - began < WITHIN_S
    return answer


@pytest.mark.parametrize("grammar", GRAMMARS.values(), ids=GRAMMARS)
def test_grammars(client, grammar):
    asked(client, {"grammar": grammar})


@pytest.mark.parametrize("regex", REGEXES.values(), ids=REGEXES)
def test_regular_expressions(client, regex):
    asked(client, {"structured_outputs": {"regex": regex}})


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas(client, name):
    form = list(FORMS.values())[list(SCHEMAS).index(name) % len(FORMS)]
    asked(client, form(SCHEMAS[name]))


def test_what_can_be_read_in_too_many_ways_is_the_clients_mistake(client):
    answer = asked(client, {"grammar": GRAMMARS["repeated nothing"], "max_tokens": 40, "temperature": 1, "seed": 1})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_grammar")


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("place", OUTSIDE)
def test_no_schema_is_fetched(client, form, place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "canary.json").write_text(json.dumps({"const": CANARY}))
    for schema in ({"$ref": place}, {"$id": place, "$ref": "other"}):
        answer = asked(client, form(schema))
        assert answer.status_code == 400
        assert CANARY not in answer.text


@pytest.mark.parametrize("field", ["grammar", "structured_outputs"])
@pytest.mark.parametrize(
    "text",
    [
        "%import .canary (X)\nstart: X",
        "%import canary (X)\nstart: X",
        "%import ..canary.X\nstart: X",
        "%import ...etc.passwd (X)\nstart: X",
        "%extend canary.X: /a/\nstart: X",
        "canary.lark",
        "./canary.gbnf",
        "file:///etc/passwd",
        "../../../../etc/passwd",
        "python:../canary",
        "@canary.lark",
    ],
)
def test_no_file_is_read(client, field, text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "canary.lark").write_text(f'X: "{CANARY}"\nstart: X\n')
    (tmp_path / "canary.gbnf").write_text(f'root ::= "{CANARY}"\n')
    answer = asked(client, {field: text if field == "grammar" else {"grammar": text}})
    assert answer.status_code == 400
    assert CANARY not in answer.text


def test_others_are_answered_while_they_are_compiled(server):
    """Each takes all the memory or time that it may."""
    grammars = [EXPONENTIAL.replace("x", letter) for letter in "bc"]
    with httpx.Client(base_url=server.url, timeout=120) as client, ThreadPoolExecutor(2) as threads:
        pending = [threads.submit(client.post, "/v1/completions", json={"grammar": each}) for each in grammars]
        waits = []
        while not all(each.done() for each in pending):
            began = time.monotonic()
            assert client.post("/v1/completions", json={"prompt": "a", "max_tokens": 1}).status_code == 200
            waits.append(time.monotonic() - began)
            time.sleep(0.1)
    assert {each.result().status_code for each in pending} == {400}
    assert len(waits) > 3, "who asks for a text waits until a grammar is compiled"
    assert max(waits) < WITHIN_S
