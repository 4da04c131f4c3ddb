"""``python -m tests.fuzz schemas``: random JSON Schemas of five drafts; ``jsonschema`` judges texts that nearly fit.

A text that the grammar takes must be valid for the validator of the schema's own draft, with and without its checks of
formats. Names that occur twice, escapes in names and other spellings of numbers are among the texts.
"""

from __future__ import annotations

import argparse
import collections
import json
import random
import time
from fractions import Fraction
from typing import Any

import jsonschema

from codespec.grammar import Grammar, GrammarError
from codespec.grammar.check import accepts_text

DRAFTS = {
    4: ("http://json-schema.org/draft-04/schema#", jsonschema.Draft4Validator),
    6: ("http://json-schema.org/draft-06/schema#", jsonschema.Draft6Validator),
    7: ("http://json-schema.org/draft-07/schema#", jsonschema.Draft7Validator),
    2019: ("https://json-schema.org/draft/2019-09/schema", jsonschema.Draft201909Validator),
    2020: ("https://json-schema.org/draft/2020-12/schema", jsonschema.Draft202012Validator),
}
NAMES = ["a", "b", "ab", "é", "😀", 'q"', "const", "default", "properties", "$ref", "type", "x-1", ""]
STRINGS = [
    "",
    "a",
    "b",
    "ab",
    "abc",
    "food",
    "bar",
    "é",
    "😀",
    "a b",
    "12",
    'a"',
    "a\\b",
    "a\nb",
    "2020-02-29",
    "1.2.3.4",
]
NUMBERS: list[Any] = [0, 1, 2, -1, 3, 7, 10, 100, 0.5, -0.5, 1.5, 0.1, 0.3, 99.99, -12.5, 1e3, 123456789]
VALUES: list[Any] = [None, True, False, [], {}, [1], [1, 2], ["a"], {"a": 1}, {"a": 1, "b": "a"}, [[]], [{"a": 1}]]
PATTERNS = [
    "^a", "b$", "^[a-c]+$", "a|^b$", "^(?!foo|bar$)[a-z]+$", "^(?=.*a)(?!ab)", "^((?!b).)*$", "[0-9]", "^.$", "^..$",
    "é",    "^(?:a|b$)", "(?<!a)b", "^\\S*$", "\\$|\\\\", "^[^a]*$", "^$",
]  # fmt: skip
FORMATS = ["date", "ipv4", "email", "uuid"]


class Maker:
    """Makes the schemas of one draft, mostly of keywords that go together."""

    def __init__(self, rng: random.Random, draft: int) -> None:
        self.rng, self.draft = rng, draft
        self.definitions: list[str] = []

    def document(self) -> dict[str, Any]:
        """A whole schema."""
        rng = self.rng
        word = "$defs" if self.draft > 2000 and rng.random() < 0.7 else "definitions"
        self.definitions = [f"#/{word}/{name}" for name in ("d", "const")]
        made = self.schema(rng.randint(1, 3))
        made = made if isinstance(made, dict) else {"not": {}}
        definitions = {name: self.schema(1) for name in ("d", "const")}
        return {"$schema": DRAFTS[self.draft][0], **made, word: definitions}

    def some(self, options: dict[str, Any], chance: float = 0.4) -> dict[str, Any]:
        """Some of the keywords."""
        return {key: value for key, value in options.items() if self.rng.random() < chance}

    def schema(self, depth: int) -> Any:
        """Any schema."""
        rng = self.rng
        if depth <= 0 or rng.random() < 0.05:
            plain: list[Any] = [{}, {"type": "string"}, {"type": "integer"}, {"enum": [rng.choice(NUMBERS)]}]
            return rng.choice([*plain, *([True, False] if self.draft > 4 else [])])
        makers = [
            self.string,
            self.number,
            self.array,
            self.object,
            self.object,
            self.value,
            self.combined,
            self.reference,
        ]
        made = rng.choice(makers)(depth)
        return {**made, **rng.choice(makers)(depth - 1)} if rng.random() < 0.35 else made

    def type(self, name: str) -> dict[str, Any]:
        """``type``, or none."""
        return self.some({"type": self.rng.choice([name, name, name, [name, "null"]])}, 0.75)

    def string(self, depth: int) -> dict[str, Any]:
        low = self.rng.randrange(4)
        options = {"minLength": low, "maxLength": low + self.rng.randrange(3), "pattern": self.rng.choice(PATTERNS)}
        return {**self.type("string"), **self.some(options), **self.some({"format": self.rng.choice(FORMATS)}, 0.08)}

    def number(self, depth: int) -> dict[str, Any]:
        rng = self.rng
        low, high = sorted(rng.sample(NUMBERS, 2))
        made = {**self.type(rng.choice(["integer", "number"])), **self.some({"minimum": low, "maximum": high})}
        if self.draft > 4:
            made |= self.some({"exclusiveMinimum": low, "exclusiveMaximum": high}, 0.3)
        else:
            made |= self.some({"exclusiveMinimum": rng.random() < 0.7, "exclusiveMaximum": True}, 0.3)
        return made | self.some({"multipleOf": rng.choice([1, 2, 3, 0.5, 0.1, 1.5, 0.25])}, 0.25)

    def array(self, depth: int) -> dict[str, Any]:
        rng, low = self.rng, self.rng.randrange(3)
        made = {**self.type("array"), **self.some({"minItems": low, "maxItems": low + rng.randrange(3)})}
        first = [self.schema(depth - 1) for _ in range(rng.randint(1, 2))]
        made |= self.some(
            {"items": rng.choice([self.schema(depth - 1), first] if self.draft < 2020 else [self.schema(0)])}
        )
        made |= self.some({"additionalItems": self.schema(0), "prefixItems": first}, 0.2)
        made |= self.some({"uniqueItems": True, "contains": self.schema(0), "minContains": rng.randrange(2)}, 0.12)
        return made | self.some({"unevaluatedItems": self.schema(0), "maxContains": 2}, 0.06)

    def object(self, depth: int) -> dict[str, Any]:
        rng = self.rng
        names = rng.sample(NAMES, 3)
        made = {
            **self.type("object"),
            **self.some({"properties": {name: self.schema(depth - 1) for name in names}}, 0.7),
        }
        made |= self.some({"required": rng.sample(NAMES[:5], rng.randint(1, 2))}, 0.4)
        made |= self.some({"additionalProperties": rng.choice([False, False, self.schema(depth - 1)])}, 0.5)
        made |= self.some({"patternProperties": {rng.choice(PATTERNS): self.schema(depth - 1)}}, 0.2)
        counts = {"minProperties": rng.randrange(4), "maxProperties": rng.randrange(4)}
        made |= self.some({**counts, "propertyNames": {"pattern": rng.choice(PATTERNS)}}, 0.12)
        depends = {"dependencies": {names[0]: rng.choice([[names[1]], self.schema(0)])}}
        depends |= {"dependentRequired": {names[0]: [names[1]]}, "dependentSchemas": {names[1]: self.schema(depth - 1)}}
        made |= self.some({**depends, "unevaluatedProperties": rng.choice([False, self.schema(0)])}, 0.1)
        if self.draft == 2019 and "unevaluatedProperties" in made:
            made.pop("additionalProperties", None)  # jsonschema's validator of this draft overlooks it
        return made

    def value(self, depth: int) -> dict[str, Any]:
        values = [*VALUES, *NUMBERS, *STRINGS]
        if self.rng.random() < 0.5:
            return {"const": self.rng.choice(values)}
        return {"enum": self.rng.sample(values, self.rng.randint(1, 4))}

    def combined(self, depth: int) -> dict[str, Any]:
        rng = self.rng
        if rng.random() < 0.3:
            return {"not": self.schema(depth - 1)}
        if rng.random() < 0.3:
            return {
                "if": self.schema(depth - 1),
                **self.some({"then": self.schema(depth - 1), "else": self.schema(0)}, 0.7),
            }
        return {
            rng.choice(["anyOf", "allOf", "oneOf", "oneOf"]): [self.schema(depth - 1) for _ in range(rng.randint(1, 3))]
        }

    def reference(self, depth: int) -> dict[str, Any]:
        return {"$ref": self.rng.choice(self.definitions)}


def value(rng: random.Random, depth: int = 2) -> Any:
    """Any value, over the same few names, strings and numbers."""
    kind = rng.random()
    if depth and kind < 0.4:
        return {name: value(rng, depth - 1) for name in rng.sample(NAMES, rng.randint(0, 3))}
    if depth and kind < 0.6:
        return [value(rng, depth - 1) for _ in range(rng.randint(0, 3))]
    return rng.choice([rng.choice(STRINGS), rng.choice(NUMBERS), rng.choice(VALUES)])


def fitting(rng: random.Random, made: Any, root: dict[str, Any], depth: int = 4) -> Any:
    """A value that tries to satisfy a schema."""
    if not isinstance(made, dict) or depth == 0 or rng.random() < 0.1:
        return value(rng, 1)
    if "$ref" in made:
        _, word, name = made["$ref"].split("/")
        return fitting(rng, root[word][name], root, depth - 1)
    if "const" in made or made.get("enum"):
        return rng.choice([made["const"]] if "const" in made else made["enum"])
    for keyword in ("anyOf", "oneOf", "allOf", "then", "else"):
        if made.get(keyword) and rng.random() < 0.6:
            parts = made[keyword] if isinstance(made[keyword], list) else [made[keyword]]
            part = rng.choice(parts)
            return fitting(rng, {**made, keyword: [], **(part if isinstance(part, dict) else {})}, root, depth - 1)
    guess = [
        ("object", {"properties", "required"}),
        ("array", {"items", "minItems", "contains"}),
        ("string", {"pattern"}),
    ]
    kind = made.get("type", next((name for name, words in guess if words & made.keys()), "number"))
    kind = rng.choice(kind) if isinstance(kind, list) else kind
    if kind == "object":
        members = made.get("properties", {})
        names = [*made.get("required", ()), *(name for name in members if rng.random() < 0.7), *rng.sample(NAMES, 1)]
        rest = made.get("additionalProperties", True)
        names = [name for name in names if rest is not False or name in members or rng.random() < 0.2]
        return {name: fitting(rng, members.get(name, rest), root, depth - 1) for name in names}
    if kind == "array":
        first: Any = made.get("prefixItems", made["items"] if isinstance(made.get("items"), list) else [])
        rest = made.get("items", True) if not isinstance(made.get("items"), list) else made.get("additionalItems", True)
        count = rng.randint(made.get("minItems", 0), made.get("minItems", 0) + 2)
        return [fitting(rng, first[i] if i < len(first) else rest, root, depth - 1) for i in range(count)]
    others = {"null": None, "boolean": rng.random() < 0.5}
    return others[kind] if kind in others else rng.choice(STRINGS if kind == "string" else NUMBERS)


def spelled(rng: random.Random, item: Any) -> str:
    """A JSON text of a value: now and then with a name twice, an escape, or a number in another form."""
    if isinstance(item, dict):
        members = [f"{spelled_name(rng, name)}:{spelled(rng, below)}" for name, below in item.items()]
        if members and rng.random() < 0.08:
            members.insert(0, f"{spelled_name(rng, rng.choice(list(item)))}:{spelled(rng, value(rng, 0))}")
        elif rng.random() < 0.1:
            rng.shuffle(members)
        return "{" + ",".join(members) + "}"
    if isinstance(item, list):
        return "[" + ",".join(spelled(rng, below) for below in item) + "]"
    if isinstance(item, int | float) and not isinstance(item, bool) and rng.random() < 0.1:
        return rng.choice([f"{item:.1f}", f"{item:e}", f"{float(item)!r}", f"-{item}" if item == 0 else str(item)])
    return json.dumps(item, ensure_ascii=rng.random() < 0.1)


def spelled_name(rng: random.Random, name: str) -> str:
    """A name in its quotes, now and then with an escape in it."""
    if name and rng.random() < 0.05:
        return f'"\\u{ord(name[0]):04x}{name[1:]}"' if ord(name[0]) < 0x10000 and '"' not in name else json.dumps(name)
    return json.dumps(name, ensure_ascii=rng.random() < 0.05)


def _multiple_of(validator: Any, factor: Any, instance: Any, schema: Any) -> Any:
    """Exactly: the package computes with floats."""
    number = isinstance(instance, int | float) and not isinstance(instance, bool)
    if number and Fraction(str(instance)) % Fraction(str(factor)):
        yield jsonschema.ValidationError(f"{instance} is no multiple of {factor}")


def try_schema(seed: int) -> tuple[str, list[str], collections.Counter[str]]:
    """What became of the schema of a seed, the texts wrongly taken, and counts of texts."""
    rng = random.Random(seed)
    draft = rng.choice(list(DRAFTS))
    schema = Maker(rng, draft).document()
    counts: collections.Counter[str] = collections.Counter()
    kind = jsonschema.validators.extend(DRAFTS[draft][1], {"multipleOf": _multiple_of})
    judges = [kind(schema), kind(schema, format_checker=kind.FORMAT_CHECKER)]
    try:
        judges[0].is_valid([None]), judges[0].is_valid({"a": None})
    except (RecursionError, TypeError):  # a reference to itself; additionalItems beside items that are true
        return "unjudged", [], counts
    try:
        grammar = Grammar.from_json_schema(json.dumps(schema))
    except GrammarError as error:
        return ("unsatisfiable" if "no value" in error.cause else "refused"), [], counts
    wrong = []
    for _ in range(24):
        text = spelled(rng, fitting(rng, schema, schema) if rng.random() < 0.75 else value(rng))
        item = json.loads(text)
        try:
            valid = [judge.is_valid(item) for judge in judges]
        except (RecursionError, TypeError):
            continue
        taken = accepts_text(grammar, text).accepted
        if taken and not all(valid):
            wrong.append(text)
        counts[f"{'valid' if all(valid) else 'invalid'}, {'taken' if taken else 'refused'}"] += 1
    return "compiled", [f"{json.dumps(schema)}\n  {text}" for text in wrong], counts


def main(arguments: list[str]) -> int:
    """Run; 1 if something invalid was taken, or anything crashed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz schemas", description=__doc__)
    parser.add_argument("--count", type=int, default=3_000)
    parser.add_argument("--seed", type=int, default=1, help="of the first schema; each next one adds 1")
    options = parser.parse_args(arguments)
    counts: collections.Counter[str] = collections.Counter()
    failed, slowest = 0, (0.0, 0)
    for seed in range(options.seed, options.seed + options.count):
        began = time.process_time()
        try:
            outcome, wrong, texts = try_schema(seed)
        except Exception as error:  # a crash is a finding
            outcome, wrong, texts = "crashed", [f"{type(error).__name__}: {error}"], collections.Counter()
        slowest = max(slowest, (time.process_time() - began, seed))
        counts[outcome] += 1
        counts += texts
        failed += len(wrong)
        for each in wrong:
            print(f"seed {seed}: {each}", flush=True)
    print(dict(counts), f"slowest {slowest[0]:.1f} s (seed {slowest[1]}), {failed} wrong")
    return 1 if failed else 0
