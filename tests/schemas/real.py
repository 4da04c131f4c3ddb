"""Schemas of real files, and ``jsonschema`` as the judge of what is valid."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import jsonschema

PER_PACKAGE = 60
MAX_BYTES = 300_000
_KEYWORDS = {"properties", "$ref", "items", "oneOf", "anyOf", "allOf", "enum", "additionalProperties"}


def is_schema(file: Path, content: bytes) -> bool:
    """Whether a JSON file says that it is a JSON Schema, is named one, or looks like one."""
    if len(content) > MAX_BYTES:
        return False
    try:
        schema = json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return False
    if not isinstance(schema, dict):
        return False
    declared = "json-schema.org" in str(schema.get("$schema")) and bool(_KEYWORDS & schema.keys())
    named = "schema" in file.name.lower() and "type" in schema and bool(_KEYWORDS & schema.keys())
    shaped = "type" in schema and isinstance(schema.get("properties"), dict)
    try:
        validator(schema).check_schema(schema)
    except Exception:
        return False
    return (declared or named or shaped) and not any(_outside(schema))


def _outside(node: Any) -> Iterator[bool]:
    """Whether each reference leaves the document, which neither side can follow."""
    if isinstance(node, dict):
        yield isinstance(node.get("$ref"), str) and not node["$ref"].startswith("#")
        node = list(node.values())
    if isinstance(node, list):
        for item in node:
            yield from _outside(item)


def validator(schema: Any) -> Any:
    """What says which instances are valid. Patterns are ECMA-262's, in which ``\\d`` and ``\\w`` are ASCII; 0.47 is a
    multiple of 0.01, whatever floats say."""
    schema = _ascii(schema)
    kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    kind = jsonschema.validators.extend(kind, {"multipleOf": _multiple_of})
    return kind(schema, format_checker=kind.FORMAT_CHECKER)


def _multiple_of(check: Any, factor: Any, value: Any, schema: Any) -> Iterator[Any]:
    if check.is_type(value, "number") and Fraction(str(value)) % Fraction(str(factor)):
        yield jsonschema.ValidationError(f"{value} is not a multiple of {factor}")


def _ascii(node: Any) -> Any:
    if isinstance(node, list):
        return [_ascii(item) for item in node]
    if not isinstance(node, dict):
        return node
    out = {key: _ascii(item) for key, item in node.items()}
    if isinstance(out.get("pattern"), str):
        out["pattern"] = f"(?a:{out['pattern']})"
    if isinstance(out.get("patternProperties"), dict):
        out["patternProperties"] = {f"(?a:{key})": item for key, item in out["patternProperties"].items()}
    return out


def collect(folder: Path, rng: random.Random) -> list[Path]:
    """Files that hold a JSON Schema, no content twice, at most ``PER_PACKAGE`` from one package."""
    found: list[Path] = []
    seen: set[bytes] = set()
    for package in sorted(path for path in folder.iterdir() if path.is_dir()):
        files = sorted(path for path in package.rglob("*.json") if path.is_file())
        rng.shuffle(files)
        own: list[Path] = []
        for file in files:
            content = file.read_bytes()
            digest = hashlib.sha256(content).digest()
            if len(own) < PER_PACKAGE and digest not in seen and is_schema(file, content):
                seen.add(digest)
                own.append(file)
        found += own
    return found
