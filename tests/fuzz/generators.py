"""Random sources of grammars: written by rule, mutated from real ones, and shaped after what has killed engines."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
NAMES = ["root", "a", "b", "c", "item", "x-1", "ws", "value"]
LITERALS = [
    "",
    "a",
    "ab",
    "b",
    " ",
    "\\n",
    "\\x41",
    "\\u00e9",
    "\\U0001F600",
    '\\"',
    "\\\\",
    "{",
    "é",
    "null",
    "abcabc",
]
CLASSES = [
    "a-z",
    "^a",
    "0-9",
    "^\\n",
    "\\x00-\\x1F",
    '^\\"\\\\',
    "a-zA-Z_",
    "é-ü",
    "\\uD800-\\uDFFF",
    "z-a",
    "",
    "^",
    "a-",
]
COUNTS = [0, 1, 1, 2, 2, 3, 5, 10, 40, 200, 2000, 2001, 100_000]

Source = tuple[str, str, dict[str, Any]]
"""Kind of grammar (as ``codespec.grammar.sandbox`` names it), text, options."""


def any_source(rng: Random) -> Source:
    """One grammar of any kind."""
    makers: list[tuple[int, Callable[[Random], Source]]] = [
        (30, gbnf),
        (20, mutated_gbnf),
        (12, shaped),
        (15, schema),
        (5, mutated_schema),
        (8, lark),
        (4, mutated_lark),
        (5, regex),
        (1, noise),
    ]
    maker = rng.choices([make for _, make in makers], [weight for weight, _ in makers])[0]
    return maker(rng)


# --- GBNF ---------------------------------------------------------------------------------------------


def gbnf(rng: Random) -> Source:
    """Rules from a grammar of GBNF; most of them are well-formed."""
    extensions = rng.random() < 0.3
    names = NAMES[: rng.randint(1, len(NAMES))]
    lines = [f"{name} ::= {_alternatives(rng, names, rng.choice([1, 2, 2, 3, 4]), extensions)}" for name in names]
    if extensions and rng.random() < 0.4:
        lines.append("list<x, sep> ::= x (sep x)*")
        lines.append(f"more ::= list<{rng.choice(names)}, {rng.choice(names)}>")
        lines[0] += " | more"
    return "gbnf", "\n".join(lines) + "\n", {"extensions": True} if extensions else {}


def _alternatives(rng: Random, names: list[str], depth: int, extensions: bool) -> str:
    sequences = []
    for _ in range(rng.choice([1, 1, 2, 3])):
        sequences.append(
            " ".join(_item(rng, names, depth, extensions) for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 4])))
        )
    return " | ".join(sequences)


def _item(rng: Random, names: list[str], depth: int, extensions: bool) -> str:
    kind = rng.random()
    if kind < 0.3:
        text = f'"{rng.choice(LITERALS)}"'
    elif kind < 0.55:
        text = rng.choice([f"[{rng.choice(CLASSES)}]", "."])
    elif kind < 0.8 or depth == 0:
        text = rng.choice(names)
    else:
        text = f"({_alternatives(rng, names, depth - 1, extensions)})"
    if rng.random() < 0.02:
        text = rng.choice(["<[65]>", "!<[66]>", "<think>", "<[999999]>"])
    if rng.random() < 0.35:
        text += repetition(rng)
    if extensions and rng.random() < 0.1:
        text += rng.choice([" \\b", f" - {rng.choice(names)}", f' - "{rng.choice(LITERALS)}"', " - [a-c]+"])
    return text


def repetition(rng: Random) -> str:
    """One suffix, now and then an illegal one."""
    low, high = rng.choice(COUNTS), rng.choice(COUNTS)
    if rng.random() < 0.9:
        low, high = min(low, high), max(low, high)
    return rng.choice(["*", "+", "?", "*", "+", "?", f"{{{low}}}", f"{{{low},}}", f"{{{low},{high}}}"])


@functools.cache
def real_gbnf() -> tuple[str, ...]:
    """The shipped grammars and upstream's."""
    shipped = [path.read_text("utf-8") for path in sorted((ROOT / "grammars").glob("*.gbnf"))]
    return (*shipped, *(case["source"] for case in _upstream() if case["kind"] == "grammar"))


@functools.cache
def _upstream() -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = json.loads((ROOT / "tests/data/gbnf_upstream.json").read_text("utf-8"))
    return cases


def mutated_gbnf(rng: Random) -> Source:
    """A real grammar with some edits."""
    text = mutate(rng, rng.choice(real_gbnf()), real_gbnf(), '()[]{}*+?|"\\<>!:=#-. \n')
    return "gbnf", text, {"extensions": True} if rng.random() < 0.5 else {}


def mutate(rng: Random, text: str, others: tuple[str, ...], special: str) -> str:
    """``text`` after one to twelve random edits."""
    for _ in range(rng.choice([1, 1, 2, 3, 5, 12])):
        at = rng.randint(0, len(text))
        end = min(len(text), at + rng.choice([1, 1, 2, 5, 20, 100]))
        kind = rng.randrange(6)
        if kind == 0:
            text = text[:at] + text[end:]
        elif kind == 1:
            text = text[:at] + text[at:end] * rng.choice([2, 3, 20]) + text[end:]
        elif kind == 2:
            text = text[:at] + rng.choice(special) + text[at:]
        elif kind == 3:
            other = rng.choice(others)
            start = rng.randint(0, len(other))
            text = text[:at] + other[start : start + rng.choice([5, 40, 400])] + text[end:]
        elif kind == 4:
            text = text[:at] + repetition(rng) + text[at:]
        else:
            words = text.split(" ")
            if len(words) > 2:
                i, j = rng.randrange(len(words)), rng.randrange(len(words))
                words[i] = words[j]
                text = " ".join(words)
    return text[:200_000]


# --- shapes that have killed engines ------------------------------------------------------------------


def shaped(rng: Random) -> Source:
    """A known hostile shape at a random size."""
    n = rng.choice([2, 5, 20, 100, 500, 1990, 2500, 10_000])
    m, k = rng.choice([2, 3, 40, 300, 2000]), rng.choice([2, 3, 40, 300, 2000])
    x = rng.choice(["[a-z]", '"a"', '"ab"', ".", "[^a]", '"a"?', '("a" | "")'])
    y = rng.choice(["[a-z]*", '"b"?', "[a-c]{0,3}", '("a" | "b")+', '""', "[b-z]"])
    last = rng.choice(['"c"', "root", '"x" root', '""'])
    texts = [
        "\n".join(f'{f"r{i}" if i else "root"} ::= {x} r{i + 1} | "b"' for i in range(n)) + f"\nr{n} ::= {last}",
        "\n".join(f"{f'r{i}' if i else 'root'} ::= r{i + 1} r{i + 1}" for i in range(min(n, 60)))
        + f"\nr{min(n, 60)} ::= {x}",
        "\n".join(f"{f'r{i}' if i else 'root'} ::= r{i + 1} | r{i + 2} | {y}" for i in range(n))
        + f"\nr{n} ::= {x}\nr{n + 1} ::= {y}",
        "root ::= " + "(" * n + x + ")" * n,
        "root ::= " + "(" * min(n, 60) + x + rng.choice([")*", ")?", ")+", "){0,3}", ") root?"]) * min(n, 60),
        f"root ::= ({x}{{0,{m}}}){{0,{k}}}",
        f"root ::= (({x} {y}){{0,{m}}} {x}){{{k}}}",
        f"root ::= ({x} {y})*",
        f"root ::= (x y)*\nx ::= {x}*\ny ::= {y}*",
        f"root ::= root root | {x} | {y}",
        f'root ::= root root root | {x} | root {y} root | ""',
        f"root ::= x root y | {x}\nx ::= {y} | x x\ny ::= root? {y}",
        "root ::= " + " | ".join(f'"{i:0{rng.choice([1, 5])}}" {y}' for i in range(min(n, 2000))),
        "root ::= (" + " | ".join(f'"{"ab" * (i % 50)}{i}"' for i in range(min(n, 2000))) + f")* {y}",
        "root ::= " + " ".join(f'("{chr(97 + i % 26)}" | {x})?' for i in range(min(n, 4000))),
        'root ::= "' + rng.choice(["a", "é", "\\n", "ab"]) * n + f'"{rng.choice(["", "*", "{2}", "{0,2000}"])}',
        "root ::= [" + "".join(chr(0x4E00 + 2 * i) for i in range(n)) + f"]{rng.choice(['', '*', '{2000}'])}",
        f"root ::= {x}{{{max(m, k)},{min(m, k)}}}",
        'root ::= a\na ::= b a "x" | "x"\nb ::= "" | b b',
        f"root ::= ({x} | {y} | {x} {x})* ({x}? {x}?){{0,{m}}} {x}{{{k}}}",
        f"root ::= {x}* [ab] {x}{{{min(m, 300)}}}",
        f"root ::= ({x}* {y}){{{m}}} ({y} {x}*){{{k}}}",
        "root ::= " + "({x} ".replace("{x}", x) * min(n, 60) + x + "){0,2000}" * min(n, 60),
    ]
    return "gbnf", rng.choice(texts), {}


# --- JSON Schema --------------------------------------------------------------------------------------


def schema(rng: Random) -> Source:
    """A random JSON Schema with definitions that refer to each other."""
    definitions = {name: _schema(rng, 2) for name in "AB"[: rng.randint(0, 2)]}
    root = _schema(rng, rng.choice([1, 2, 3, 4]))
    if definitions and isinstance(root, dict):
        root["$defs"] = definitions
    return "json", json.dumps(root, ensure_ascii=rng.random() < 0.5), {}


def _schema(rng: Random, depth: int) -> Any:
    if rng.random() < 0.05:
        return rng.choice([True, False, {}, None, 3, "string", []])
    kinds = ["string", "number", "integer", "enum", "const", "ref", "boolean", "null"]
    kind = rng.choice(kinds + ["object", "array", "combined"] * 3 if depth else kinds)
    count = rng.choice(COUNTS)
    if kind == "object":
        names = ["a", "b", "name", "é", "", "x y", '"'][: rng.randint(0, 7)]
        body: dict[str, Any] = {"type": "object", "properties": {name: _schema(rng, depth - 1) for name in names}}
        body["required"] = [name for name in names if rng.random() < 0.5]
        if rng.random() < 0.5:
            body["additionalProperties"] = _schema(rng, depth - 1) if rng.random() < 0.5 else False
        extras: dict[str, Any] = {
            "minProperties": count,
            "maxProperties": rng.choice(COUNTS),
            "propertyNames": {"pattern": _regex(rng, 1)},
            "patternProperties": {_regex(rng, 1): _schema(rng, depth - 1)},
            "dependentRequired": {"a": ["b"]},
            "unevaluatedProperties": False,
        }
        return body | _some(rng, extras)
    if kind == "array":
        extras = {
            "minItems": count,
            "maxItems": rng.choice(COUNTS),
            "prefixItems": [_schema(rng, depth - 1)] * rng.choice([1, 3, 50]),
            "uniqueItems": True,
            "contains": _schema(rng, depth - 1),
        }
        return {"type": "array", "items": _schema(rng, depth - 1)} | _some(rng, extras)
    if kind == "combined":
        key = rng.choice(["anyOf", "oneOf", "allOf", "not", "if"])
        parts = [_schema(rng, depth - 1) for _ in range(rng.choice([0, 1, 2, 3, 30]))]
        return {key: parts if key.endswith("Of") else _schema(rng, depth - 1)}
    if kind == "ref":
        targets = ["#", "#/$defs/A", "#/$defs/B", "#/$defs/C", "http://example.com/x", "#/properties/a"]
        return {"$ref": rng.choice(targets)}
    if kind == "enum":
        values = [1, 1.5, "a", None, True, {"a": [1]}, "é" * 50]
        return {"enum": [rng.choice(values) for _ in range(rng.choice([0, 1, 3, 500]))]}
    if kind == "const":
        return {"const": rng.choice([1, "x" * 1000, {"a": {"b": []}}, None])}
    if kind == "string":
        formats = ["date", "date-time", "email", "uuid", "ipv6", "uri", "hostname", "nonsense"]
        extras = {"pattern": _regex(rng, 3), "minLength": count, "maxLength": rng.choice(COUNTS)}
        return {"type": "string"} | _some(rng, {**extras, "format": rng.choice(formats)})
    if kind in ("number", "integer"):
        bounds = [-(10**20), -5, 0, 0.1, 3, 1e300, 7.25, 10**15]
        extras = {name: rng.choice(bounds) for name in ("minimum", "maximum", "exclusiveMinimum")}
        steps = [0, 0.1, 3, 1e-9, 10**9, 999_983]
        return {"type": kind} | _some(rng, {**extras, "multipleOf": rng.choice(steps)})
    return {"type": rng.choice([kind, ["string", "null"], "nonsense"]) if rng.random() < 0.2 else kind}


def _some(rng: Random, extras: dict[str, Any]) -> dict[str, Any]:
    return dict(rng.sample(list(extras.items()), rng.choice([0, 0, 1, 1, 2])))


def mutated_schema(rng: Random) -> Source:
    """One of upstream's schemas with some edits."""
    schemas = tuple(
        case["source"] if isinstance(case["source"], str) else json.dumps(case["source"])
        for case in _upstream()
        if case["kind"] != "grammar"
    )
    return "json", mutate(rng, rng.choice(schemas), schemas, '{}[],:"0123456789eE-.truefalsn\\'), {}


# --- Lark and regular expressions ---------------------------------------------------------------------


def lark(rng: Random) -> Source:
    """Rules and terminals in llguidance's dialect."""
    rules, terminals = ["start", "a", "b"][: rng.randint(1, 3)], ["A", "B", "C"]
    lines = []
    for name in rules:
        options = []
        for _ in range(rng.choice([1, 2, 3])):
            items = [rng.choice([*rules, *terminals, '"x"', "/[a-z]+/", "(a | B)?", "[A B]"]) + rng.choice(["", "", "*", "+", "?", "~3", "{2,5}", "{0,2000}"]) for _ in range(rng.choice([0, 1, 2, 4]))]  # fmt: skip # noqa: E501
            options.append(" ".join(items))
        lines.append(
            f"{rng.choice(['', '', '?', '!'])}{name}{rng.choice(['', '', '', '.2', '[capture]', '[max_tokens=3]'])}: "
            + " | ".join(options)
        )
    for name in terminals:
        lines.append(
            f"{name}{rng.choice(['', '.5'])}: "
            + rng.choice([f"/{_regex(rng, 2)}/", '"lit"', '"a".."z"', "A B", "/x/ & ~/y/", '"k"i', "~/a.*b/"])
        )
    lines += rng.sample(
        ["%ignore /[ \\t]+/", "%import common.WS", "%declare X", "%llguidance {}", "%ignore A", "_t{x}: x x"],
        rng.choice([0, 0, 1, 2]),
    )
    return "lark", "\n".join(lines) + "\n", {}


def mutated_lark(rng: Random) -> Source:
    """A Lark grammar with some edits."""
    texts = tuple(lark(rng)[1] for _ in range(3))
    return "lark", mutate(rng, texts[0], texts, '()[]{}*+?|"/\\:~&%.<>_ \n'), {}


def regex(rng: Random) -> Source:
    """A regular expression."""
    return "regex", _regex(rng, rng.choice([1, 2, 3, 4])), {}


def _regex(rng: Random, depth: int) -> str:
    if depth == 0 or rng.random() < 0.3:
        return rng.choice(
            [
                "a",
                "b",
                ".",
                "\\d",
                "\\w",
                "\\s",
                "[a-z]",
                "[^a]",
                "é",
                "\\p{L}",
                "\\x41",
                "\\/",
                "^",
                "$",
                "\\b",
                "\\",
                "[",
            ]
        )
    kind = rng.random()
    if kind < 0.35:
        return "".join(_regex(rng, depth - 1) for _ in range(rng.choice([1, 2, 3, 5])))
    if kind < 0.6:
        return "(" + "|".join(_regex(rng, depth - 1) for _ in range(rng.choice([1, 2, 3]))) + ")"
    low, high = rng.choice(COUNTS), rng.choice(COUNTS)
    tail = rng.choice(["*", "+", "?", "*?", f"{{{low}}}", f"{{{min(low, high)},{max(low, high)}}}", f"{{{low},}}"])
    return f"{rng.choice(['(', '(?:', '(?i:', '(?='] if rng.random() < 0.1 else ['('])}{_regex(rng, depth - 1)}){tail}"


def noise(rng: Random) -> Source:
    """Characters at random, surrogates and NUL among them."""
    alphabet = "abr:=\"'()[]{}*+?|\\/<>!#%~&-.,0123456789 \n\r\t\0é\U0001f600\ud800\ufeff"
    text = "".join(rng.choice(alphabet) for _ in range(rng.choice([0, 1, 5, 50, 5000])))
    return rng.choice(["gbnf", "json", "lark", "regex"]), rng.choice(["", "root ::= ", "start: "]) + text, {}
